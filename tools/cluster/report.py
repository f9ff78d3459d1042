# SPDX-License-Identifier: BSD-3-Clause
"""The results of a run's jobs in one place: results.json, results.xml (JUnit) and results.txt."""
import json
import os
import re
import time
from xml.sax.saxutils import escape, quoteattr

STATUSES = ("passed", "failed", "skipped", "notrun")
MARKS = {"passed": ".", "failed": "F", "signal": "S", "hung": "H", "skipped": "-", "ended": "e", "vanished": "V"}


def clean(text):
    """XML has no place for most control characters."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


def counts(jobs):
    sums = dict.fromkeys(STATUSES, 0)
    for job in jobs:
        sums[job["status"]] += 1
    return sums


def merge(run, jobs, why):
    """All that is known, for results.json."""
    return {
        "schema": 1, "contd": run["version"], "run": run["run"], "arguments": run["arguments"],
        "launcher": run["launcher"], "hosts": run["hosts"], "begin": run["begin"], "end": time.time(),
        "seconds": sum(job["seconds"] for job in jobs),
        "complete": not any(job["status"] == "notrun" for job in jobs), "ended": why, "counts": counts(jobs),
        "left_out": run["left_out"], "tests": jobs,
    }


def junit(result):
    suites = {}
    for job in result["tests"]:
        suites.setdefault(job["suite"], []).append(job)
    sums = result["counts"]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>',
             '<testsuites name="contd" tests="%d" failures="%d" errors="0" skipped="%d" time="%.3f">' %
             (len(result["tests"]), sums["failed"], sums["skipped"] + sums["notrun"], result["seconds"])]
    for suite, jobs in sorted(suites.items()):
        mine = counts(jobs)
        lines.append('<testsuite name=%s tests="%d" failures="%d" errors="0" skipped="%d" time="%.3f" timestamp="%s">' %
                     (quoteattr(suite), len(jobs), mine["failed"], mine["skipped"] + mine["notrun"],
                      sum(job["seconds"] for job in jobs),
                      time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(result["begin"]))))
        for job in jobs:
            lines.append('<testcase classname=%s name=%s time="%.3f">' % (quoteattr(suite), quoteattr(title(job)),
                                                                         job["seconds"]))
            if job["status"] == "failed":
                lines.append("<failure message=%s>%s</failure>" % (quoteattr(clean(job["reason"])),
                                                                  escape(clean(detail(job)))))
            elif job["status"] == "skipped":
                lines.append("<skipped message=%s/>" % quoteattr(clean(job["reason"])))
            elif job["status"] == "notrun":
                lines.append('<skipped message="not run"/>')
            if job["ranks_detail"]:
                said = "".join("rank %d on %s: %s, %.2f s\n" % (rank["rank"], rank["host"], rank["status"],
                                                              rank.get("seconds", 0)) for rank in job["ranks_detail"])
                lines.append("<system-out>%s</system-out>" % escape(clean(said)))
            lines.append("</testcase>")
        lines.append("</testsuite>")
    return "\n".join(lines + ["</testsuites>", ""])


def title(job):
    return job["name"] + (" #%d" % (job["repeat"] + 1) if job["of"] > 1 else "")


def detail(job, lines=15):
    first = job.get("first")
    if not first:
        return job["reason"]
    text = job["reason"] + "\n"
    if job["kind"] == "ranks":
        text += "rank %d on %s: %s\n" % (first["rank"], first["host"], first["status"])
    text += "".join("  | %s\n" % line for line in first.get("output", "").strip().splitlines()[-lines:])
    if first.get("stack"):
        text += "where it was:\n"
        text += "".join("  | %s\n" % line for line in first["stack"].strip().splitlines()[:3 * lines])
    return text


def page(result, folder):
    sums = result["counts"]
    lines = ["contd %s on %s, by %s, %s" % (
        result["contd"] or "(version unknown)", ", ".join(result["hosts"][:8]) +
        (" and %d more" % (len(result["hosts"]) - 8) if len(result["hosts"]) > 8 else ""), result["launcher"],
        time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(result["begin"])))]
    lines.append("%d tests: %d passed, %d failed, %d skipped, %d not run, in %.0f s%s" % (
        len(result["tests"]), sums["passed"], sums["failed"], sums["skipped"], sums["notrun"], result["seconds"],
        "" if result["complete"] else "; NOT COMPLETE" + (": " + result["ended"] if result["ended"] else "")))
    for why, number in result["left_out"]:
        lines.append("left out: %d, %s" % (number, why))
    # Suites by numbers of ranks: passed/all.
    columns = sorted({(job["kind"] == "host", job["ranks"]) for job in result["tests"]})
    table = {}
    for job in result["tests"]:
        cell = table.setdefault(job["suite"], {}).setdefault((job["kind"] == "host", job["ranks"]), [0, 0])
        cell[0] += job["status"] == "passed"
        cell[1] += 1
    lines += ["", "passed of all, by ranks:", "%-14s" % "suite" + "".join(
        "%11s" % (("%d hosts" if own else "%d ranks") % ranks) for own, ranks in columns)]
    for suite in sorted(table):
        cells = ["%d/%d" % tuple(table[suite][column]) if column in table[suite] else "" for column in columns]
        lines.append(("%-14s" % suite + "".join("%11s" % cell for cell in cells)).rstrip())
    bad = [job for job in result["tests"] if job["status"] == "failed"]
    if bad:
        lines += ["", "failed, by ranks (. passed, F failed, S signal, H hung, e ended by the launcher, V vanished, "
                  "- skipped):"]
        width = max(len(title(job)) for job in bad)
        for job in bad:
            marks = "".join(MARKS.get(rank["status"], "?") for rank in job["ranks_detail"])
            lines.append("%-*s  %s" % (width, title(job), marks if len(marks) <= 64 else marks[:64] + "..."))
        for job in bad[:20]:
            lines += ["", "-- " + title(job)] + detail(job).rstrip().splitlines() + ["  files: " + job["folder"]]
        if len(bad) > 20:
            lines += ["", "(%d more: results.json)" % (len(bad) - 20)]
    skips = {}
    for job in result["tests"]:
        if job["status"] == "skipped":
            skips.setdefault(job["reason"], []).append(title(job))
    if skips:
        lines += ["", "skipped:"]
        for reason, names in sorted(skips.items(), key=lambda entry: -len(entry[1]))[:20]:
            lines.append("%4d  %s (%s%s)" % (len(names), reason[:160], names[0], ", ..." if len(names) > 1 else ""))
    return "\n".join(lines) + "\n"


def write(folder, result):
    texts = {"results.json": json.dumps(result, indent=1) + "\n", "results.xml": junit(result),
             "results.txt": page(result, folder)}
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with open(path + ".new", "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.rename(path + ".new", path)
    return texts["results.txt"]
