#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns what the guest measured into a table, a chart and pictures.

report.py RUN-DIRECTORY OUTPUT-DIRECTORY

Reads the files that machine/demo/in-guest.sh left; writes result.json,
promotion.{png,svg} and placement.{png,svg}. The exit status is 1 if the hot
pages did not arrive, cold ones did, or the counters do not say what happened.
"""
import json
import os
import shutil
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from picture import BLUE, GREY, ORANGE, plot  # noqa: E402

MAX_COLD = 0.01
MIN_HOT = 0.99
MAX_RATIO = 1.25
PAGES_PER_ROW = 256
SAMPLE_SECONDS = 0.05       # hotset's --period-ms


def die(text):
    sys.exit(f"pghot: error: {text}")


def read(path):
    with open(path) as f:
        return f.read()


def read_values(path):
    """'name value' lines as a dictionary, numbers as numbers."""
    values = {}
    for line in read(path).splitlines():
        name, value = line.split(None, 1)
        try:
            values[name] = int(value)
        except ValueError:
            try:
                values[name] = float(value)
            except ValueError:
                values[name] = value
    return values


class Run:
    """One run of hotset."""

    def __init__(self, directory, promoter, number):
        self.prefix = os.path.join(directory, f"{promoter}-{number}")
        self.result = read_values(self.prefix + ".result")
        lines = read(self.prefix + ".samples").splitlines()
        names = lines[0].lstrip("# ").split()
        # Counters are sampled more often than the placement is looked at.
        self.samples = [dict(zip(names, map(float, line.split()))) for line in lines[1:]]
        self.fill()
        self.seconds_to_95 = self.reached(0.95)

    def fill(self):
        """Estimates the placement between two looks: hot and cold pages are taken to
        arrive in proportion to the promotions that were counted."""
        looks = [i for i, s in enumerate(self.samples) if "hot_on_dram" in s]
        for a, b in zip(looks, looks[1:]):
            first, last = self.samples[a], self.samples[b]
            done = last["pgpromote_success"] - first["pgpromote_success"]
            for s in self.samples[a + 1:b]:
                # Without promotions in between, nothing moved in between.
                part = (s["pgpromote_success"] - first["pgpromote_success"]) / done if done else 0
                for name in ("hot_on_dram", "cold_on_dram"):
                    s[name] = first[name] + part * (last[name] - first[name])

    def reached(self, share):
        """When that share of the hot pages was on DRAM, or None."""
        want = share * self.result["hot_pages"]
        before = None
        for s in self.samples:
            if s["hot_on_dram"] >= want:
                if before is None:
                    return s["seconds"]
                part = (want - before["hot_on_dram"]) / (s["hot_on_dram"] - before["hot_on_dram"])
                return round(before["seconds"] + part * (s["seconds"] - before["seconds"]), 3)
            before = s
        return None

    def map(self, what):
        return read(f"{self.prefix}.{what}").strip()

    def in_time(self):
        """Share of the samples that were taken when they were due: little of it says
        that the host had no time for the guest."""
        return min(1, len(self.samples) * SAMPLE_SECONDS / max(self.samples[-1]["seconds"], SAMPLE_SECONDS))

    def hot_percent(self, seconds):
        """Share of the hot pages on DRAM at that time."""
        share = 0
        for s in self.samples:
            if s["seconds"] > seconds:
                break
            share = s["hot_on_dram"]
        return 100 * share / self.result["hot_pages"]


def runs(directory, promoter):
    found = []
    while os.path.exists(os.path.join(directory, f"{promoter}-{len(found) + 1}.result")):
        found.append(Run(directory, promoter, len(found) + 1))
    if not found:
        die(f"{directory} has no results of {promoter}")
    return found


def median_95(some):
    """Runs that did not get there count as later than all others."""
    times = sorted(r.seconds_to_95 if r.seconds_to_95 is not None else float("inf") for r in some)
    middle = statistics.median_high(times)
    return None if middle == float("inf") else middle


def middle_run(some):
    """The run whose time is the median that the table states."""
    return next((r for r in some if r.seconds_to_95 == median_95(some)), some[0])


def judge(first, core, success, moved):
    """What must hold, as (what, is it so) pairs."""
    r = first.result
    return [
        (f"at least {MIN_HOT:.0%} of the hot pages are on DRAM", r["hot_on_dram"] >= MIN_HOT * r["hot_pages"]),
        (f"at most {MAX_COLD:.0%} of the cold pages are", r["cold_on_dram"] <= MAX_COLD * r["cold_pages"]),
        ("pgpromote_success is the number of pages that moved", success == moved),
        ("so is what the slow node's pghot says", core["promoted"] == moved),
    ]


def make_result(directory, pghot, numa):
    system = read_values(os.path.join(directory, "system"))
    first = pghot[0]
    core = read_values(first.prefix + ".core")
    own, other = median_95(pghot), median_95(numa)
    result = {"kernel_version": system["kernel_version"]}
    result.update(first.result)
    result.update(core)
    result["seconds"] = first.samples[-1]["seconds"]
    result["samples_in_time"] = round(statistics.median(r.in_time() for r in pghot + numa), 2)
    result["seconds_to_95"] = own
    result["seconds_to_95_runs"] = [r.seconds_to_95 for r in pghot]
    result["seconds_to_95_numa_balancing"] = other
    result["seconds_to_95_numa_balancing_runs"] = [r.seconds_to_95 for r in numa]
    result["ratio_to_numa_balancing"] = round(own / other, 3) if own and other else None
    result["numa_balancing"] = [r.result for r in numa]
    result["guest"] = system
    result["bytes_in_use_after"] = system["bytes_in_use_after"]
    checks = judge(first, core, result["pgpromote_success"], result["pages_moved"])
    # The shorter runs must not have moved what is cold, or miscounted, either.
    for number, r in enumerate(pghot[1:], 2):
        checks.append((f"run {number}: the same for cold pages and pgpromote_success",
                       r.result["cold_on_dram"] <= MAX_COLD * r.result["cold_pages"] and
                       r.result["pgpromote_success"] == r.result["pages_moved"]))
    result["checks"] = dict(checks)
    return result


# --------------------------------------------------------------------------
# Text

def seconds(value):
    return "not reached" if value is None else f"{value:.2f} s"


def table(result, pghot, numa):
    r = result
    hot, cold = r["hot_pages"], r["cold_pages"]

    def list_of(some):
        return ", ".join(seconds(x.seconds_to_95) for x in some)

    rows = [
        ("kernel", r["kernel_version"]),
        ("buffer", f"{r['pages'] * 4 // 1024} MB on slow node {r['guest']['slow_node']}, without a policy"),
        (f"hot pages on DRAM after {r['seconds']:.0f} s", f"{r['hot_on_dram']} of {hot} ({100 * r['hot_on_dram'] / hot:.1f} %)"),
        ("cold pages on DRAM", f"{r['cold_on_dram']} of {cold} ({100 * r['cold_on_dram'] / cold:.1f} %)"),
        ("pages moved / pgpromote_success", f"{r['pages_moved']} / {r['pgpromote_success']}"),
        ("pgpromote_candidate", r["pgpromote_candidate"]),
        ("candidates visited", f"{r['visited']} ({r['visited'] / max(r['promoted'], 1):.2f} per promoted page)"),
        ("hint faults / accesses recorded", f"{r['numa_hint_faults']} / {r['recorded_accesses']}"),
        ("memory for records", f"{r['bytes_in_use']} bytes for {r['records']} pages; {r['bytes_in_use_after']} with all sources off"),
        ("time to 95 % of the hot pages", ""),
        ("  pghot (median of its runs)", f"{seconds(r['seconds_to_95'])}   ({list_of(pghot)})"),
        ("  NUMA balancing (the same)", f"{seconds(r['seconds_to_95_numa_balancing'])}   ({list_of(numa)})"),
        ("  ratio", "unknown" if r["ratio_to_numa_balancing"] is None else
         f"{r['ratio_to_numa_balancing']:.2f} (the goal is at most {MAX_RATIO})"),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def time_range(pghot, numa):
    """Until when something happens, with some room."""
    last = 1.0
    for r in pghot + numa:
        for s in r.samples:
            if s["hot_on_dram"] < 0.995 * r.result["hot_pages"]:
                last = max(last, s["seconds"])
    # Up to a multiple of half a second.
    return min(-(-last * 1.15 // 0.5) * 0.5, pghot[0].samples[-1]["seconds"])


def text_chart(pghot, numa, end, width=64, height=12):
    rows = [[" "] * width for _ in range(height + 1)]
    for r, mark in ((numa, "o"), (pghot, "#")):
        for x in range(width):
            y = round(height * r.hot_percent((x + 0.5) * end / width) / 100)
            rows[y][x] = "@" if rows[y][x] not in (" ", mark) else mark
    out = ["  hot pages on DRAM, %      # pghot   o NUMA balancing   @ both   (the median run of each)"]
    for y in range(height, -1, -1):
        label = f"{100 * y // height:3d}" if y % 3 == 0 else "   "
        out.append(f"  {label} |{''.join(rows[y]).rstrip()}")
    out.append("      +" + "-" * width)
    ticks = [f"{end * i / 4:.1f}" for i in range(5)]
    line = ""
    for i, t in enumerate(ticks):
        line = line.ljust(7 + i * width // 4 - len(t) // 2) + t
    out.append(line + " s")
    return "\n".join(out)


# --------------------------------------------------------------------------
# Pictures

# Placement: cold or hot, slow or DRAM
KINDS = [("cold, slow node", "#d8d8d8"), ("hot, slow node", "#c0392b"),
         ("hot, DRAM", "#1f7a4d"), ("cold, DRAM", "#e5b700")]


def draw_promotion(result, pghot, numa, end, out):
    curves = []
    for some, color, title in ((numa, ORANGE, "NUMA balancing (kernel.numa\\\\_balancing=2)"),
                               (pghot, BLUE, "pghot, hint-fault source")):
        for i, r in enumerate(some):
            file = os.path.join(out, "data", f"{os.path.basename(r.prefix)}.dat")
            with open(file, "w") as f:
                for s in r.samples:
                    f.write(f"{s['seconds']} {100 * s['hot_on_dram'] / r.result['hot_pages']}"
                            f" {100 * s['cold_on_dram'] / max(r.result['cold_pages'], 1)}\n")
            style = f"with lines lw {3 if i == 0 else 1} lc rgb '{color}'"
            name = f"title \"{title}\"" if i == 0 else "notitle"
            curves.append(f"'{file}' using 1:2 {style} {name}")
            if some is pghot and i == 0:
                cold = f"'{file}' using 1:3 with lines lw 2 dt 2 lc rgb '{GREY}' title \"cold pages, pghot\""
    r = result
    subtitle = (f"pghot after {r['seconds']:.0f} s: {r['hot_on_dram']} of {r['hot_pages']} hot pages and "
                f"{r['cold_on_dram']} of {r['cold_pages']} cold pages are on DRAM. "
                f"{len(pghot)} runs of each, the first one thick")
    plot(f"""
set title "{{/*1.2 Hot pages leave the slow node: {r['hot_pages'] * 4 // 1024} MB hot of {r['pages'] * 4 // 1024} MB, Linux {r['kernel_version']}}}\\n{{/*0.85 {subtitle}}}"
set xlabel "time since the promoter was switched on (guest seconds)"
set ylabel "pages on DRAM (% of the hot or the cold ones)"
set xrange [0:{end}]
set yrange [-2:105]
set ytics 0,20,100
set grid lc rgb '#e0e0e0'
set arrow from graph 0, first 95 to graph 1, first 95 nohead dt 3 lc rgb '#404040'
set label "95 %" at graph 0.01, first 97.5 tc rgb '#404040'
set key at graph 0.98,0.40 right box lc rgb '#c0c0c0' opaque samplen 3 width 1
set border 3
set tics nomirror
plot {", ".join(curves + [cold])}
""", out, "promotion", (960, 560))


def draw_placement(result, first, out):
    hot = first.map("hot")
    slow = str(result["guest"]["slow_node"])
    for when in ("before", "after"):
        nodes = first.map(when)
        kinds = [(1 if h == "1" else 0) if n == slow else (2 if h == "1" else 3) for h, n in zip(hot, nodes)]
        with open(os.path.join(out, "data", f"{when}.dat"), "w") as f:
            for i in range(0, len(kinds), PAGES_PER_ROW):
                f.write(" ".join(map(str, kinds[i:i + PAGES_PER_ROW])) + "\n")
    rows = len(hot) // PAGES_PER_ROW
    palette = ", ".join(f"{i} '{color}'" for i, (_, color) in enumerate(KINDS))
    keys = ", ".join(f"NaN with points pt 5 ps 2 lc rgb '{color}' title \"{name}\"" for name, color in KINDS)
    data = os.path.join(out, "data")
    plot(f"""
set multiplot
set palette maxcolors {len(KINDS)} defined ({palette})
set cbrange [-0.5:{len(KINDS) - 0.5}]
unset colorbox
set xrange [-0.5:{PAGES_PER_ROW - 0.5}]
set yrange [{rows - 0.5}:-0.5]
set xtics 64 out nomirror
set ytics 32 out nomirror
set xlabel "page within a row (4 KiB each)"
unset key
set tmargin at screen 0.83
set bmargin at screen 0.21
set lmargin at screen 0.07
set rmargin at screen 0.50
set title "before"
set ylabel "row (1 MiB each)"
plot '{data}/before.dat' matrix with image
set lmargin at screen 0.555
set rmargin at screen 0.985
set title "after {result['seconds']:.0f} s of pghot"
unset ylabel
plot '{data}/after.dat' matrix with image
unset title
unset border
unset tics
unset xlabel
set lmargin at screen 0
set rmargin at screen 1
set tmargin at screen 1
set bmargin at screen 0
set xrange [0:1]
set yrange [0:1]
set label 1 "Where the {result['pages'] * 4 // 1024} MB are: {result['hot_on_dram']} of {result['hot_pages']} hot and {result['cold_on_dram']} of {result['cold_pages']} cold pages are on DRAM" at screen 0.5,0.95 center font ",13"
set key at screen 0.5,0.04 center center horizontal samplen 1 width 2
plot {keys}
unset multiplot
""", out, "placement", (1100, 560))


def main():
    directory, out = sys.argv[1:3]
    os.makedirs(os.path.join(out, "data"), exist_ok=True)
    pghot, numa = runs(directory, "pghot"), runs(directory, "balancing")
    result = make_result(directory, pghot, numa)
    with open(os.path.join(out, "result.json.tmp"), "w") as f:
        json.dump(result, f, indent="\t")
        f.write("\n")
    os.replace(os.path.join(out, "result.json.tmp"), os.path.join(out, "result.json"))

    end = time_range(pghot, numa)
    draw_promotion(result, pghot, numa, end, out)
    draw_placement(result, pghot[0], out)
    shutil.rmtree(os.path.join(out, "data"))

    print()
    shown = middle_run(pghot), middle_run(numa)
    print(text_chart(*shown, time_range(shown[:1], shown[1:])))
    print()
    print(table(result, pghot, numa))
    print()
    place = os.path.relpath(out)
    print(f"  {place}/result.json  {place}/promotion.png (.svg)  {place}/placement.png (.svg)")
    bad = [what for what, good in result["checks"].items() if not good]
    for what in bad:
        print(f"pghot: error: this does not hold: {what}", file=sys.stderr)
    ratio = result["ratio_to_numa_balancing"]
    if ratio is None or ratio > MAX_RATIO:
        print("pghot: warning: pghot took longer than the goal allows, beside NUMA balancing in the same guest; "
              "if this machine was busy, run this again, or with more runs: PAIRS=9", file=sys.stderr)
    if result["samples_in_time"] < 0.6:
        print(f"pghot: the host was busy: {result['samples_in_time']:.0%} of the samples were taken in time. "
              "Times mean little then; run this again on a quiet machine", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
