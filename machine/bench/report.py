# SPDX-License-Identifier: GPL-2.0
"""The bench's table and pictures."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from picture import plot  # noqa: E402

COLORS = ["#404040", "#909090", "#d9730d", "#8e44ad", "#c0392b", "#1f5fa8", "#1f7a4d", "#b8860b", "#17a2b8", "#e377c2"]
RANK_ROWS = 64


# --------------------------------------------------------------------------
# Text

def number(value, digits=1, unit=""):
    return "-" if value is None else f"{value:.{digits}f}{unit}"


def percent(value, digits=1, sign=False):
    return "-" if value is None else f"{100 * value:{'+' if sign else ''}.{digits}f} %"


def mb(pages):
    return "-" if pages is None else f"{pages * 4 / 1024:.1f}"


def columns(table):
    """Rows of cells as text: the first two columns to the left, the others to the right."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def dram_mb(r):
    slow = str(r["system"]["slow_node"])
    return sum(n for nid, n in r["pages_on_node"].items() if nid != slow)


def table_t1(rows, scenario):
    """The layout of T1 in the published results."""
    head = ["id", "promoter", "ns/access", "published", "DRAM MB", "over", "hot there", "to 95 %", "promoted MB",
            "demoted", "promoter CPU", "irq CPU", "DRAM serves"]
    table = [head]
    for r in rows:
        to95 = "never" if r["seconds_to_95"] is None else f"{r['seconds_to_95']:.1f} s"
        cpu = f"{r['promoter_cpu_s']:.2f} s ({100 * r['promoter_cpu_s'] / r['seconds']:.1f} %)"
        table.append([r["id"], r["name"], number(r["ns_access"]), scenario.published.get(r["id"], {}).get("ns_access", ""),
                      mb(dram_mb(r)), percent(r["over"], 0, True), percent(r["hot_share"]), to95, mb(r["promoted"]),
                      mb(r["demoted"]), cpu, f"{r['irq_cpu_s']:.2f} s", percent(r["dram_share"])])
    return columns(table)


def table_t2(rows, scenario):
    """The layout of T2: a column for each row of the bench."""
    base = next((r for r in rows if r["id"] == "B0"), None)

    def tokens(kind):
        cells = []
        for r in rows:
            value = (r.get("tokens_per_s") or {}).get(kind)
            first = (base.get("tokens_per_s") or {}).get(kind) if base else None
            ratio = f" ({value / first:.2f}x)" if value and first and r is not base else ""
            cells.append(number(value, 3) + ratio)
        return cells

    def published(kind):
        cells = [scenario.published.get(r["id"], {}).get(kind, "") for r in rows]
        return [[f"  published, {kind}", ""] + cells] if any(cells) else []

    table = [["", ""] + [r["id"] for r in rows]]
    for kind, text in (("decode", "decode, tokens/s (memory bound)"), ("prefill", "prefill, tokens/s (compute bound)")):
        table.append([text, ""] + tokens(kind))
        table += published(kind)
    names = ["pgpromote_success", "pgpromote_candidate", "pgdemote_kswapd", "pgmigrate_success", "numa_pte_updates",
             "numa_hint_faults", "pghot_recorded_accesses", "pghot_reported_hwhints"]
    for name in names:
        if any(r["vmstat"].get(name) for r in rows):
            table.append([name, ""] + [str(r["vmstat"].get(name, 0)) for r in rows])
    table.append(["pgdemote_kswapd before the run", ""] + [str(r["demoted_before"]) for r in rows])
    table.append(["promoter CPU, s", ""] + [number(r["promoter_cpu_s"], 2) for r in rows])
    table.append(["kswapd CPU, s", ""] + [number(r["cpu"].get("kswapd", 0), 2) for r in rows])
    table.append(["accesses to pages on DRAM", ""] + [percent(r["dram_access_share"]) for r in rows])
    return columns(table)


def orders(rows, scenario):
    """Does the published order come out?"""
    by_id = {r["id"]: r for r in rows}
    out = []
    for quantity, *want in scenario.order:
        have = [x for x in want if x in by_id and by_id[x].get(quantity) is not None]
        if len(have) < 2:
            continue
        values = [by_id[x][quantity] for x in have]
        good = all(a <= b for a, b in zip(values, values[1:]))
        out.append(f"published order by {quantity}: {' < '.join(have)}: {'the same here' if good else 'NOT so here'}"
                   f" ({', '.join(f'{x} {v:g}' for x, v in zip(have, values))})")
    return out


def text(rows, scenario):
    lines = ["", f"  {scenario.title}"]
    lines += [f"  {x}" for x in scenario.describe()] + [""]
    lines += (table_t2 if scenario.layout == "t2" else table_t1)(rows, scenario)
    lines.append("")
    lines += [f"  {x}" for x in orders(rows, scenario)]
    if any(r["judged_by"] != "truth" for r in rows):
        lines.append("  This machine keeps no record of accesses: what is hot is what the workload says, "
                     "and times mean little.")
    lines += [f"  {x}" for x in scenario.notes]
    return "\n".join(lines)


# --------------------------------------------------------------------------
# Pictures

def escaped(s):
    return s.replace("\\", "").replace("_", "\\\\_").replace('"', "'")


def write_data(out, name, points):
    file = os.path.join(out, "data", name)
    with open(file, "w") as f:
        for p in points:
            f.write(" ".join("NaN" if x is None else f"{x:g}" for x in p) + "\n")
    return file


def color_of(i):
    return COLORS[i % len(COLORS)]


HEAD = """
set grid lc rgb '#e0e0e0'
set border 3
set tics nomirror
set key outside right top Left reverse samplen 2
"""


def draw_latency(rows, scenario, out):
    curves = []
    for i, r in enumerate(rows):
        points = list(r["ns_series"])
        if not points:
            continue
        # Rows in which nothing changes were not run for as long as the others.
        longest = max(x["seconds"] for x in rows)
        file = write_data(out, f"{r['id']}.ns", points)
        curves.append(f"'{file}' using 1:2 with lines lw 2 lc rgb '{color_of(i)}' title \"{r['id']}: {escaped(r['name'])}\"")
        if r["seconds"] < 0.99 * longest:
            file = write_data(out, f"{r['id']}.ns2", [points[-1], (longest, points[-1][1])])
            curves.append(f"'{file}' using 1:2 with lines lw 1 dt 3 lc rgb '{color_of(i)}' notitle")
    if not curves:
        return
    plot(f"""{HEAD}
set title "{escaped(scenario.title)}: what an access costs"
set xlabel "time since the promoter was switched on (guest seconds)"
set ylabel "ns per access"
set yrange [0:*]
plot {", ".join(curves)}
""", out, "latency", (1200, 520))


def draw_placement(rows, details, scenario, out):
    hot_curves, over_curves = [], []
    for i, r in enumerate(rows):
        d = details[r["id"]]
        if not any(d["hot_sets"]):
            continue
        points = []
        for (a, b), hot, curve in zip(d["times"], d["hot_sets"], d["curves"]):
            n = max(1, len(hot))
            points += [(t, 100 * x / n, y * 4 / 1024) for t, x, y in curve if a - 1e-3 <= t <= b + 1e-3]
        file = write_data(out, f"{r['id']}.place", points)
        hot_curves.append(f"'{file}' using 1:2 with lines lw 2 lc rgb '{color_of(i)}' title \"{r['id']}: {escaped(r['name'])}\"")
        over_curves.append(f"'{file}' using 1:3 with lines lw 2 lc rgb '{color_of(i)}' notitle")
    if not hot_curves:
        return
    judged = "truth" if all(r["judged_by"] == "truth" for r in rows) else "workload"
    plot(f"""{HEAD}
set multiplot
set rmargin at screen 0.68
set lmargin at screen 0.08
set tmargin at screen 0.92
set bmargin at screen 0.55
set title "{escaped(scenario.title)}: what is on DRAM (hot by the {judged})"
set key at screen 0.69,0.92 left top Left reverse samplen 2
set ylabel "hot pages on DRAM (%)"
set yrange [-2:105]
plot {", ".join(hot_curves)}
unset title
unset key
set tmargin at screen 0.47
set bmargin at screen 0.11
set xlabel "time since the promoter was switched on (guest seconds)"
set ylabel "other pages on DRAM (MB)"
set yrange [0:*]
plot {", ".join(over_curves)}
unset multiplot
""", out, "placement", (1200, 640))


def matrix(out, name, lines):
    file = os.path.join(out, "data", name)
    with open(file, "w") as f:
        for line in lines:
            f.write(" ".join(f"{x:g}" for x in line) + "\n")
    return file


def draw_heat(rows, details, scenario, out):
    """Pages in the order of their heat from bottom to top, time from left to right: what was
    accessed by the truth, and for each row what was on DRAM."""
    import truth
    with_truth = [r for r in rows if details[r["id"]]["bins"]]
    if not with_truth:
        return
    # The truth knows no difference between the workload's accesses and those of who copies its
    # pages: take a row in which few are.
    first = max(with_truth, key=lambda r: (r["seconds"], -r["promoted_seen"] - r["demoted_seen"]))
    panels = []
    for r in with_truth:
        d = details[r["id"]]
        sums = truth.total(d["bins"], d["pages"])
        order = sorted(range(d["pages"]), key=sums.__getitem__, reverse=True)
        # Ties (what is never accessed) by page number: sorted() is stable.
        if len(d["hot_sets"]) > 1:
            # One set above the other, as their turns come
            turn = {}
            for i, hot in enumerate(d["hot_sets"]):
                for page in hot:
                    turn.setdefault(page, i)
            order.sort(key=lambda page: turn.get(page, len(d["hot_sets"])))
        per_row = max(1, d["pages"] // RANK_ROWS)
        if r is first:
            heat = []
            for k in range(0, per_row * RANK_ROWS, per_row):
                part = order[k:k + per_row]
                heat.append([sum(map(b.accesses.__getitem__, part)) / len(part) / max(b.covered, 1) * 1e9 for b in d["bins"]])
            panels.insert(0, ("accesses by the truth, per page and second", matrix(out, "heat", heat), "heat",
                           len(d["bins"]), d["end"]))
        rank = [0] * d["pages"]
        for k, page in enumerate(order):
            rank[page] = min(RANK_ROWS - 1, k // per_row)
        on = [0] * RANK_ROWS
        dram = set()
        lines = []
        for moved in d["place"].changes:
            for page, nid in moved:
                if (nid != d["place"].slow) != (page in dram):
                    dram ^= {page}
                    on[rank[page]] += 1 if page in dram else -1
            lines.append([100 * x / per_row for x in on])
        panels.append((f"{r['id']}: % on DRAM", matrix(out, f"{r['id']}.rank", map(list, zip(*lines))), "share",
                       len(lines), d["end"]))
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    script = [f"set multiplot layout {down},{across} title \"{escaped(scenario.title)}: what was hot, and what was on DRAM "
              f"(pages in the order of their heat, the hottest at the bottom)\" font ',12'",
              "set tics out nomirror", "unset key", f"set yrange [-0.5:{RANK_ROWS - 0.5}]",
              f"set ytics ('0' -0.5, '50' {RANK_ROWS / 2 - 0.5}, '100' {RANK_ROWS - 0.5})", "set colorbox"]
    for i, (title, file, kind, width, end) in enumerate(panels):
        script.append(f"set title \"{escaped(title)}\"")
        script.append(f"set xrange [0:{end:g}]")
        script.append(f"set ylabel \"{'pages by heat (%)' if i % across == 0 else ''}\"")
        script.append(f"set xlabel \"{'seconds' if i // across == down - 1 else ''}\"")
        if kind == "heat":
            script.append("set palette defined (0 '#000004', 1 '#57106e', 2 '#bc3754', 3 '#f98e09', 4 '#fcffa4')")
            script.append("set cbrange [0:*]")
        else:
            script.append("set palette defined (0 '#f0f0f0', 1 '#1f7a4d')")
            script.append("set cbrange [0:100]")
        script.append(f"plot '{file}' matrix using (($1+0.5)*{end / width:g}):2:3 with image")
    script.append("unset multiplot")
    plot("\n".join(script), out, "heat", (330 * across + 60, 300 * down + 60))


def draw_tokens(rows, scenario, out):
    """T2: both phases next to each other."""
    names = [r["id"] for r in rows]
    base = next((r for r in rows if r["id"] == "B0"), rows[0])
    lines = []
    for i, r in enumerate(rows):
        t = r["tokens_per_s"]
        lines.append((i, 100 * (t["decode"] or 0) / (base["tokens_per_s"]["decode"] or 1),
                      100 * (t["prefill"] or 0) / (base["tokens_per_s"]["prefill"] or 1)))
    file = write_data(out, "tokens", lines)
    tics = ", ".join(f"'{n}' {i}" for i, n in enumerate(names))
    plot(f"""{HEAD}
set title "{escaped(scenario.title)}: tokens per second, % of {base['id']}"
set boxwidth 0.35
set style fill solid
set xrange [-0.6:{len(rows) - 0.4}]
set yrange [0:*]
set xtics ({tics})
plot '{file}' using ($1-0.19):2 with boxes lc rgb '#1f5fa8' title 'decode (memory bound)', \\
     '{file}' using ($1+0.19):3 with boxes lc rgb '#d9730d' title 'prefill (compute bound)'
""", out, "tokens", (900, 480))


def pictures(rows, details, scenario, out):
    os.makedirs(os.path.join(out, "data"), exist_ok=True)
    draw_latency(rows, scenario, out)
    draw_placement(rows, details, scenario, out)
    draw_heat(rows, details, scenario, out)
    if rows and all("tokens_per_s" in r for r in rows):
        draw_tokens(rows, scenario, out)
    shutil.rmtree(os.path.join(out, "data"))
    return [x for x in ("latency", "placement", "heat", "tokens") if os.path.exists(os.path.join(out, x + ".png"))]
