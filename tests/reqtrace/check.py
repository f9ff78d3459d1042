#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check.py PREFIX [EXPECTATIONS]: is the tool's timeline what its summary says, and are both what the program expects?
check.py --part FILE...: are these whole timelines of a rank each, of a program that died?
"""
import collections
import json
import re
import sys

LANES = 1000
OUTCOMES = ["completed", "cancelled", "failed", "freed", "never completed"]


def fail(what):
    sys.exit(f"check.py: {what}")


def timeline(path):
    """Counts by (rank, kind), and what is wrong by itself: lanes that overlap, slices that do not nest."""
    found = collections.defaultdict(lambda: [0] * 6)
    rows = collections.defaultdict(list)
    names = set()
    for event in json.load(open(path)):
        if event["ph"] == "M":
            names.add((event["pid"], event.get("tid")))
            continue
        if event["ph"] != "X" or event["ts"] < 0 or event["dur"] < 0:
            fail(f"an event that is none: {event}")
        row = event["pid"], event["tid"]
        rows[row].append((event["ts"], -event["dur"]))
        if row not in names and (event["pid"], None) not in names:
            fail(f"row {row} has no name")
        if (event["tid"] < LANES) != (event["cat"] in ("call", "continuation")):
            fail(f"an event in a row of the other kind: {event}")
        if event["cat"] == "continuation" and event["args"]["operations"] < 1:
            fail(f"a continuation of nothing: {event}")
        if event["tid"] > LANES:
            counts = found[event["pid"], event["name"]]
            counts[0] += 1
            counts[1 + OUTCOMES.index(event["args"]["ended"])] += 1
    slack = 0.002  # written with three digits
    for (pid, tid), spans in rows.items():
        spans.sort()
        around = []
        for start, minus in spans:
            end = start - minus
            while around and around[-1] <= start + slack:
                around.pop()
            if around and (tid > LANES or end > around[-1] + slack):
                fail(f"events of row {pid}, {tid} overlap at {start}")
            around.append(end)
    return found, {pid for pid, _ in names}


if sys.argv[1] == "--part":
    for path in sys.argv[2:]:
        found, pids = timeline(path)
        if len(pids) != 1 or not found:
            fail(f"{path}: ranks {pids}, {len(found)} kinds")
    sys.exit()

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

found, pids = timeline(prefix + ".json")
if pids != set(summary):
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
