#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
ktap.py DIR SUITE...: what became of KUnit suites.

Reads DIR/boot.SUITE and DIR/user.SUITE (KTAP, as debugfs shows it) and
DIR/console.log. Prints a line per test, what failed tests said, and the sums.
"""

import os
import re
import sys

RUNS = ("boot", "user")
RESULT = re.compile(r"^    (ok|not ok) \d+ (\S+)(?: # SKIP ?(.*))?$")
PLAN = re.compile(r"^    1\.\.(\d+)$")
# Not that swapper/0 is blocked: at boot it waits for all the tests.
COMPLAINT = re.compile(r"BUG: |WARNING: |Oops: |KASAN: |UBSAN: |INFO: (?:possible|suspicious|"
                       r"inconsistent|trying to register|task (?!swapper/0:1 ).* blocked)|Kernel panic")


def parse(path):
    """Returns {test: (status, reason, what it said)}; raises ValueError."""
    results, said, plan = {}, [], None
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            m = RESULT.match(line)
            if m:
                status = "skip" if m[3] is not None else "pass" if m[1] == "ok" else "FAIL"
                results[m[2]] = (status, m[3], said)
                said = []
                continue
            m = PLAN.match(line)
            if m:
                plan = int(m[1])
            elif plan is not None:
                said.append(line.strip())
    if plan is None:
        raise ValueError("not run")
    if plan != len(results):
        raise ValueError(f"{len(results)} results of {plan} tests: it did not end")
    return results


def complaints(path):
    """Lines of the console in which the kernel complains."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError:
        return ["no console"]
    found = []
    for i, line in enumerate(lines):
        if COMPLAINT.search(line) and not is_starved_timer(lines[i:i + 40]):
            found.append(line.strip())
    return found


def is_starved_timer(lines):
    """
    The one complaint that is not ours: on a host that gives the guest's CPUs no
    time, the scheduler's deadline server finds its timer queued already. Seen
    with no source enabled.
    """
    if "at hrtimer_forward+" not in lines[0]:
        return False
    for line in lines:
        if "dl_task_timer+" in line:
            return True
        if "end trace" in line:
            break
    return False


def main():
    directory, suites = sys.argv[1], sys.argv[2:]
    count = {"pass": 0, "FAIL": 0, "skip": 0}

    def tell(status, name, reason="", said=()):
        count[status] += 1
        print(f"{status}  {name}" + (f"  ({reason})" if reason else ""))
        for line in said:
            print(f"          {line}")

    for suite in suites:
        tests = {}
        for run in RUNS:
            try:
                results = parse(os.path.join(directory, f"{run}.{suite}"))
            except FileNotFoundError:
                tell("FAIL", suite, f"{run}: no results")
                continue
            except ValueError as e:
                tell("FAIL", suite, f"{run}: {e}")
                continue
            for name, result in results.items():
                tests.setdefault(name, {})[run] = result
        for name, runs in tests.items():
            failed = [run for run, result in runs.items() if result[0] == "FAIL"]
            if failed:
                tell("FAIL", f"{suite}.{name}", "in run: " + ", ".join(failed),
                     runs[failed[0]][2])
                continue
            status, reason, _ = list(runs.values())[-1]
            tell(status, f"{suite}.{name}", reason)

    lines = complaints(os.path.join(directory, "console.log"))
    if lines:
        tell("FAIL", "console", "the kernel complained", lines[:20])
    else:
        tell("pass", "console")

    print(f"{count['pass']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return 1 if count["FAIL"] or not count["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
