#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the figures that machine/figures.sh measured, each with its limit.

report.py DIRECTORY     where the measurements are; result.json goes there
"""
import json
import os
import sys


def values(path):
    with open(path) as f:
        return {name: int(value) for name, value in (line.split() for line in f if line.strip())}


class Figures:
    def __init__(self):
        self.rows = []

    def add(self, figure, name, value, limit, ok, command, digits=None):
        shown = value if digits is None or value is None else f"{value:.{digits}f}"
        self.rows.append({"figure": figure, "name": name, "value": value, "shown": str(shown),
                          "limit": limit, "ok": bool(ok), "command": command})

    def missing(self, figure, name, command):
        self.rows.append({"figure": figure, "name": name, "value": None, "shown": "not measured",
                          "limit": "", "ok": False, "command": command})


def demo(f, directory):
    command = "make demo"
    path = os.path.join(directory, "demo.json")
    if not os.path.exists(path):
        f.missing("1", "the demo", command)
        return
    with open(path) as file:
        r = json.load(file)
    hot = 100 * r["hot_on_dram"] / r["hot_pages"]
    cold = 100 * r["cold_on_dram"] / r["cold_pages"]
    f.add("1", f"hot pages on DRAM after {r['seconds']:.0f} s, %", hot, ">= 99", hot >= 99, command, 2)
    f.add("1", "cold pages on DRAM, %", cold, "<= 1", cold <= 1, command, 2)
    f.add("1", "pgpromote_success", r["pgpromote_success"], f"= {r['pages_moved']} moved",
          r["pgpromote_success"] == r["pages_moved"], command)
    f.add("2", "seconds to 95 %, pghot (median)", r["seconds_to_95"], "reached", r["seconds_to_95"] is not None, command, 2)
    f.add("2", "the same, NUMA balancing", r["seconds_to_95_numa_balancing"], "", True, command, 2)
    ratio = r["ratio_to_numa_balancing"]
    if ratio is None and r["seconds_to_95"] is not None:
        # NUMA balancing did not get there at all.
        f.add("2", "ratio", None, "<= 1.25", True, command)
    else:
        f.add("2", "ratio", ratio, "<= 1.25", ratio is not None and ratio <= 1.25, command, 2)


def paths(f, directory):
    command = "machine/figures.sh 3"
    files = [os.path.join(directory, name) for name in ("paths.small", "paths.off")]
    if not all(map(os.path.exists, files)):
        f.missing("3", "instructions with all sources off", command)
        return
    with_pghot, without = map(values, files)
    bytes_in_use = with_pghot.pop("bytes_in_use")
    without.pop("bytes_in_use")
    for name, count in with_pghot.items():
        f.add("3", f"{name}, change in %", 100 * (count / without[name] - 1), "", True, command, 3)
    total, base = sum(with_pghot.values()), sum(without.values())
    change = 100 * (total / base - 1)
    f.add("3", f"all of {base / 1e6:.0f} million, change in %", change, "within 0.1", abs(change) <= 0.1, command, 3)
    f.add("3", "bytes in use with all sources off", bytes_in_use, "0", bytes_in_use == 0, command)


# Two bytes and a bit for each page, and what a section needs besides.
RECORD_BYTES = 2 + 1 / 8
SECTION_PAGES = 32768
SECTION_BYTES = 256


def work(f, directory):
    command = "machine/figures.sh 4"
    for pages in (8192, 1):
        path = os.path.join(directory, f"work-{pages}")
        if not os.path.exists(path):
            f.missing("4", f"visited per promoted, {pages} hot", command)
            continue
        r = values(path)
        if pages == 8192:
            each = r["bytes_in_use"] / r["pages"]
            limit = RECORD_BYTES + SECTION_BYTES / SECTION_PAGES
            f.add("4", f"bytes a page, {r['pages'] * 4 // 1024} MB of slow memory", each, f"<= {limit:.4f}",
                  RECORD_BYTES <= each <= limit, command, 4)
            f.add("4", "bytes after the source is off", r["bytes_in_use_after"], "0", r["bytes_in_use_after"] == 0, command)
        ratio = r["visited"] / r["promoted"] if r["promoted"] else None
        f.add("4", f"visited per promoted, {pages} hot", ratio, "<= 2", ratio is not None and ratio <= 2 and
              r["promoted"] >= 0.99 * pages, command, 3)


def record(f, directory):
    command = "machine/figures.sh 5"
    path = os.path.join(directory, "record")
    if not os.path.exists(path):
        f.missing("5", "instructions of a report", command)
        return
    r = values(path)
    f.add("5", "instructions: a touch of a warm record", r["warm"], "< 200", 0 < r["warm"] < 200, command)
    f.add("5", "the same, a candidate already", r["hot"], "< 200", 0 < r["hot"] < 200, command)
    f.add("5", "the touch that makes it a candidate", r["crossing"], "", True, command)


def main():
    directory = sys.argv[1]
    f = Figures()
    for part in (demo, paths, work, record):
        part(f, directory)
    with open(os.path.join(directory, "result.json"), "w") as file:
        json.dump(f.rows, file, indent="\t")
        file.write("\n")
    widths = [max(len(r[key]) for r in f.rows) for key in ("name", "shown", "limit")]
    print(f"  {'':2} {'figure':<{widths[0]}}  {'value':>{widths[1]}}  {'limit':<{widths[2]}}        command")
    for r in f.rows:
        verdict = ("ok" if r["ok"] else "NOT OK") if r["limit"] or not r["ok"] else ""
        print(f"  {r['figure']:2} {r['name']:<{widths[0]}}  {r['shown']:>{widths[1]}}  {r['limit']:<{widths[2]}}"
              f"  {verdict:6}  {r['command']}")
    return 0 if all(r["ok"] for r in f.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
