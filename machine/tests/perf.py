#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""perf.py DIR: judges what perf/in-guest.sh left in DIR. TAP on stdout."""

import os
import re
import sys

CAP_NAMES = {"zen3": set(), "zen4": {"zen4_ibs_extensions"},
             "zen5": {"zen4_ibs_extensions", "ldlat", "dtlb_pgsize"},
             "zen6": {"zen4_ibs_extensions", "ldlat", "dtlb_pgsize", "strmst", "rmtsocket"}}


class Tap:
    def __init__(self):
        self.count = self.failed = self.skipped = 0

    def result(self, good, text):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} {text}")

    def skip(self, text, why):
        self.count += 1
        self.skipped += 1
        print(f"ok {self.count} {text} # SKIP {why}")


def read(name):
    try:
        with open(os.path.join(sys.argv[1], name), encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Walk:
    """What ./walk printed, and the samples of it that perf script printed."""

    def __init__(self, name, phys=True):
        self.status = read(name + ".status").strip()
        self.pages = {}
        self.start = self.size = 0
        for line in read(name + ".walk").splitlines():
            word = line.split()
            if word[:1] == ["buffer"]:
                self.start, self.size = int(word[1], 16), int(word[2])
            elif word[:1] == ["page"]:
                self.pages[int(word[1], 16)] = int(word[2], 16)
        self.samples = []
        # comm [cpu] addr data_src |...| weight ip phys
        pattern = re.compile(r"\s*(\S+)\s+\[(\d+)\]\s+([0-9a-f]+)\s+([0-9a-f]+) (\|.*?)\s{2,}(\d+)?\s*([0-9a-f]+)" +
                             (r"\s+([0-9a-f]+)\s*$" if phys else r"\s*$"))
        self.lines = 0
        for line in read(name + ".script").splitlines():
            self.lines += 1
            if m := pattern.match(line):
                self.samples.append({"comm": m[1], "cpu": int(m[2]), "addr": int(m[3], 16), "src": m[5],
                                     "weight": int(m[6] or 0), "ip": int(m[7], 16),
                                     "phys": int(m[8], 16) if phys else 0})
        self.mine = [s for s in self.samples if self.start <= s["addr"] < self.start + self.size]

    def loads(self):
        return [s for s in self.mine if "OP LOAD" in s["src"]]

    def stores(self):
        return [s for s in self.mine if "OP STORE" in s["src"]]


def share(part, whole):
    return len(part) / len(whole) if whole else 0.0


def physical(tap, name, walk):
    right = [s for s in walk.mine if walk.pages.get(s["addr"] & ~0xfff, -1) + (s["addr"] & 0xfff) == s["phys"]]
    tap.result(len(walk.mine) > 100 and len(right) == len(walk.mine),
               f"{name}: the physical addresses of {len(walk.mine)} samples are right ({len(right)})")


def main():
    tap = Tap()
    preset = sys.argv[2]
    caps = read("ibs_op").split()
    zen4, zen5 = preset != "zen3", preset in ("zen5", "zen6")
    print("TAP version 13")
    print("#", read("version").strip())
    tap.result(CAP_NAMES[preset] <= set(caps) and not (CAP_NAMES["zen6"] - CAP_NAMES[preset]) & set(caps),
               f"the driver sees the capabilities of {preset}: {' '.join(sorted(CAP_NAMES[preset]))}")

    level = {0: "RAM hit", 1: "Remote node", 2: "CXL"} if zen4 else {0: "RAM hit", 1: "Remote node", 2: "Remote node"}
    for node in (0, 1, 2):
        name = f"l3-{node}"
        if not zen4:
            tap.skip(name, "no such filter")
            continue
        w = Walk(name)
        missed = [s for s in w.samples if re.search(r"LVL (L1|L2|L3)", s["src"])]
        where = [s for s in w.loads() if level[node] in s["src"]]
        tap.result(w.status == "0" and len(w.samples) > 300 and not missed,
                   f"l3missonly, node {node}: {len(w.samples)} samples, {len(missed)} of them hits")
        tap.result(share(w.mine, w.samples) > 0.8, f"l3missonly, node {node}: {share(w.mine, w.samples):.1%} of them in the buffer")
        physical(tap, f"l3missonly, node {node}", w)
        tap.result(w.loads() and share(where, w.loads()) == 1, f"l3missonly, node {node}: source of {len(w.loads())} loads is {level[node]}")
        part = share(w.stores(), w.mine)
        tap.result(0.09 < part < 0.16, f"l3missonly, node {node}: one in eight is a store: {part:.1%}")
        weights = {s["weight"] for s in w.loads()}
        tap.result(weights and min(weights) > 50, f"l3missonly, node {node}: latency {min(weights, default=0)} to {max(weights, default=0)} cycles")
    if zen4:
        w = Walk("far-2")
        tap.result(w.loads() and all("CXL" in s["src"] and "Remote" in s["src"] and s["cpu"] == 1 for s in w.loads()),
                   f"node 2 from the other processor: {len(w.loads())} loads are from remote CXL")

    w = Walk("ops-2")
    none = [s for s in w.samples if "OP N/A" in s["src"]]
    tap.result(w.status == "0" and none and w.loads() and w.stores(),
               f"all ops: {len(w.samples)} samples: {len(none)} without access, {len(w.loads())} loads and {len(w.stores())} stores of the buffer")
    physical(tap, "all ops", w)

    for name, wanted in (("user-2", lambda ip: ip < 1 << 63), ("kernel-2", lambda ip: ip >= 1 << 63)):
        if preset != "zen6":
            tap.skip(name, "no such filter")
            continue
        w = Walk(name)
        wrong = [s for s in w.samples if not wanted(s["ip"])]
        tap.result(w.status == "0" and len(w.samples) > 20 and not wrong, f"{name}: {len(w.samples)} samples, {len(wrong)} from the other side")

    for node in (0, 2):
        name = f"ldlat-{node}"
        if not zen5:
            tap.skip(name, "no such filter")
            continue
        w = Walk(name)
        if node == 0:
            tap.result(w.status == "0" and not w.loads(), f"ldlat=128 on node 0: {len(w.loads())} samples of the buffer")
        else:
            tap.result(w.status == "0" and len(w.loads()) > 300 and not w.stores() and all(s["weight"] > 128 for s in w.loads()),
                       f"ldlat=128 on node 2: {len(w.loads())} samples, none below")

    # The processor's own counters pass precise events on to IBS.
    core = "PMU not available" not in read("dmesg")
    lines = [line for line in read("precise-2.script").splitlines() if " walk" in line]
    if core:
        tap.result(read("precise-2.status").strip() == "0" and len(lines) > 100, f"cycles:pp goes to IBS: {len(lines)} samples")
    else:
        tap.skip("cycles:pp goes to IBS", "QEMU has no performance counters, whose driver would pass it on")

    for node in (0, 1, 2):
        w = Walk(f"mem-{node}", phys=False)
        report = read(f"mem-{node}.report")
        # The level's share of the walk's loads, from the report that people see
        tap.result(w.status == "0" and level[node] in report, f"perf mem, node {node}: the report knows {level[node]}")
        where = [s for s in w.loads() if level[node] in s["src"]]
        tap.result(len(w.loads()) > 100 and share(where, w.loads()) > 0.8,
                   f"perf mem, node {node}: {share(where, w.loads()):.1%} of {len(w.loads())} loads are from there")

    w = Walk("online-2")
    if zen4:
        tap.result(w.status == "0" and len(w.loads()) > 300 and all(s["cpu"] == 1 for s in w.loads()),
                   f"a processor that was offline samples again: {len(w.loads())} loads")

    log = read("test.log")
    for name in ("AMD IBS via core pmu", "AMD IBS sample period"):
        part = log.split(f"== {name}\n")[-1].split("== ")[0] if f"== {name}\n" in log else ""
        if "core pmu" in name and not core:
            tap.skip(f"perf test: {name}", "QEMU has no performance counters, whose driver would pass it on")
            continue
        if "Signal (15)" in part:
            # Its shortest periods leave the emulated processor little but interrupts.
            tap.skip(f"perf test: {name}", "it did not end in time: not known")
            continue
        good = "status 0" in part and re.search(rf"{name} *: (.\[\d+m)?Ok", part)
        tap.result(bool(good), f"perf test: {name}")
    complaints = read("complaints").strip()
    tap.result(not complaints, "the kernel does not complain" + (f": {complaints.splitlines()[0]}" if complaints else ""))
    print(f"1..{tap.count}")
    print(f"{tap.count - tap.failed - tap.skipped} passed, {tap.failed} failed, {tap.skipped} skipped")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
