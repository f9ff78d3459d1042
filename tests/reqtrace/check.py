#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check.py PREFIX [EXPECTATIONS]: is the tool's timeline what its summary says, and are both what the program expects?"""
import collections
import json
import re
import sys

OUTCOMES = ["completed", "cancelled", "failed", "freed", "never completed"]


def fail(what):
    sys.exit(f"check.py: {what}")


prefix = sys.argv[1]
summary = {}
rank = None
for line in open(prefix + ".txt"):
    if match := re.match(r"rank (\d+): (\d+) operations", line):
        rank = int(match[1])
        summary[rank] = (int(match[2]), {})
    elif match := re.match(r"  (\w+)((?: +\d+){6}) ", line):
        summary[rank][1][match[1]] = [int(n) for n in match[2].split()]
    elif "not seen" in line or "lost" in line:
        fail(f"rank {rank}: {line.strip()}")

events = json.load(open(prefix + ".json"))
found = collections.defaultdict(lambda: [0] * 6)
lanes = collections.defaultdict(list)
for event in events:
    if event["ph"] == "M":
        continue
    if event["ph"] != "X" or event["ts"] < 0 or event["dur"] < 0:
        fail(f"an event that is none: {event}")
    counts = found[event["pid"], event["name"]]
    counts[0] += 1
    counts[1 + OUTCOMES.index(event["args"]["ended"])] += 1
    lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
for lane, spans in lanes.items():
    spans.sort()
    for (_, end), (start, _) in zip(spans, spans[1:]):
        if start < end - 0.002:  # written with three digits
            fail(f"events of lane {lane} overlap at {start}")
if {event["pid"] for event in events} != set(summary):
    fail("not every rank is in the timeline")
for rank, (total, kinds) in summary.items():
    if total != sum(counts[0] for counts in kinds.values()):
        fail(f"rank {rank}: {total} operations are not the sum of {kinds}")
    for kind, counts in kinds.items():
        if counts[0] != sum(counts[1:]):
            fail(f"rank {rank}: {kind}: not all are accounted for: {counts}")
        if found[rank, kind] != counts:
            fail(f"rank {rank}: {kind}: timeline {found[rank, kind]}, summary {counts}")
for key in found:
    if key[1] not in summary[key[0]][1]:
        fail(f"{key} is not in the summary")
if len(sys.argv) > 2:
    expected = 0
    for line in open(sys.argv[2]):
        if line.startswith("expect "):
            _, rank, kind, *counts = line.split()
            counts = [int(n) for n in counts]
            expected += 1
            if summary[int(rank)][1].get(kind) != counts:
                fail(f"rank {rank}: {kind}: {summary[int(rank)][1].get(kind)}, expected {counts}")
    if expected != sum(len(kinds) for _, kinds in summary.values()):
        fail("the summary has kinds that were not expected")
