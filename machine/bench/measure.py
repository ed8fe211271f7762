# SPDX-License-Identifier: GPL-2.0
"""From the files of a row's run to its figures. See machine/README.md for what they are."""
import json
import os

import machine
import truth

NR_BINS = machine.INTERVALS


def read(path):
    with open(path) as f:
        return f.read()


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def read_values(path):
    """"name value" lines as a dictionary, whole numbers as such."""
    values = {}
    for line in read(path).splitlines():
        name, value = line.rsplit(None, 1)
        try:
            values[name] = int(value)
        except ValueError:
            values[name] = value
    return values


# --------------------------------------------------------------------------
# Arithmetic

def rate_series(samples, threads, step):
    """[(seconds, ns per access of a thread)] of stretches of at least STEP seconds."""
    out = []
    t0, n0 = samples[0][0], samples[0][1]
    for t, n in samples[1:]:
        if t - t0 < step * 0.999:
            continue
        if n > n0:
            out.append((round(t, 3), round(threads * (t - t0) * 1e9 / (n - n0), 2)))
        t0, n0 = t, n
    return out


def rate(samples, threads, begin, end):
    """ns per access of a thread between two times, or from the last sample before."""
    begin = max((t for t, _ in samples if t <= begin), default=begin)
    inside = [(t, n) for t, n in samples if begin <= t <= end]
    if len(inside) < 2 or inside[-1][1] == inside[0][1]:
        return None
    return threads * (inside[-1][0] - inside[0][0]) * 1e9 / (inside[-1][1] - inside[0][1])


def share(part, of):
    return part / of if of else None


def over(pages_on_dram, hot):
    """How much more of DRAM the workload takes than is hot."""
    return (pages_on_dram - hot) / hot if hot else None


def seconds_to(curve, want):
    """When a curve [(seconds, share)] first reached WANT, between two points by the line
    through them; None if it never did."""
    before = None
    for t, value in curve:
        if value is not None and value >= want:
            if before is None or value == before[1]:
                return t
            return before[0] + (want - before[1]) / (value - before[1]) * (t - before[0])
        if value is not None:
            before = (t, value)
    return None


def median_or_none(values):
    """None counts as later than all others."""
    ordered = sorted(float("inf") if v is None else v for v in values)
    middle = ordered[len(ordered) // 2]
    return None if middle == float("inf") else middle


def counters(expression, values):
    """A sum or difference of counters; those that the kernel does not have are 0."""
    sign, out = 1, 0
    for word in expression.split():
        if word in "+-":
            sign = 1 if word == "+" else -1
        else:
            out += sign * values.get(word, 0)
    return out


def set_times(samples):
    """[(begin, end)] during which one hot set was hot."""
    times = []
    begin, now = samples[0][0], samples[0][2]
    for t, _, phase in samples:
        if phase != now:
            times.append((begin, t))
            begin, now = t, phase
    times.append((begin, samples[-1][0]))
    return [x for x in times if x[1] > x[0]]


# --------------------------------------------------------------------------
# Placement

class Placement:
    """Where the pages were at each look."""

    def __init__(self, looks, nodes, slow):
        self.nodes, self.slow = nodes, slow
        self.seconds = [x.seconds for x in looks]
        self.changes = []       # at each look: [(page, node)] of pages that changed their node
        self.promoted = self.demoted = 0
        where = {}
        for look in looks:
            moved = []
            for page, frame in zip(look.pages, look.frames):
                nid = nodes.of(frame)
                old = where.get(page)
                if old == nid:
                    continue
                if old is not None:
                    self.promoted += old == slow
                    self.demoted += nid == slow
                where[page] = nid
                moved.append((page, nid))
            self.changes.append(moved)
        self.last = where

    def curves(self, hot):
        """[(seconds, pages of HOT on DRAM, other pages on DRAM)]"""
        on = [0, 0]
        dram = set()
        out = []
        for t, moved in zip(self.seconds, self.changes):
            for page, nid in moved:
                if (nid != self.slow) != (page in dram):
                    dram ^= {page}
                    on[page not in hot] += 1 if nid != self.slow else -1
            out.append((t, on[0], on[1]))
        return out


# --------------------------------------------------------------------------
# A row

def read_samples(path):
    """[(seconds, tsc, lines, phase)]"""
    out = []
    for line in read(path).splitlines():
        if not line.startswith("#"):
            t, tsc, n, phase = line.split()
            out.append((float(t), int(tsc), int(n), int(phase)))
    return out


def cpu_seconds(before, after):
    """{name of the kernel thread: seconds}; interrupts as "irq"."""
    out = {}
    for name, ns in after.items():
        spent = (ns - before.get(name, 0)) / 1e9
        name = name.split("/")[0].rstrip("0123456789:.")
        if name in ("irq", "softirq"):
            name = "irq"
        elif not name.startswith(("kdamond", "kmigrated", "kswapd", "kcompactd", "ksoftirqd")):
            continue
        out[name] = round(out.get(name, 0) + spent, 4)
    return out


def tokens_per_second(samples, r):
    """Of the prompt that is read and of the text that is written, by the time of each."""
    out = {}
    for phase, name in ((0, "prefill"), (1, "decode")):
        inside = [s for s in samples if s[3] == phase]
        if len(inside) < 2:
            out[name] = None
            continue
        lines = (inside[-1][2] - inside[0][2]) / (inside[-1][0] - inside[0][0])
        if name == "prefill":
            out[name] = lines / r["lines_per_prefill_batch"] * r["tokens_per_prefill_batch"]
        else:
            out[name] = lines / r["lines_per_decode_token"]
    return out


def row(directory, name, title, promoted):
    """The entry of result.json for a row, and what the pictures need besides."""
    work = os.path.join(directory, "work")
    r = read_values(work + ".result")
    samples = read_samples(work + ".samples")
    looks = truth.read_looks(work + ".pages")
    nodes = truth.Nodes(read(work + ".ranges"))
    place = Placement(looks, nodes, r["slow_node"])
    end = samples[-1][0]
    lines = [(s[0], s[2]) for s in samples]
    times = set_times([(s[0], s[2], s[3]) for s in samples]) if r["mode"] == "chase" else [(0, end)]

    bins = None
    file = os.path.join(directory, "truth")
    if os.path.exists(file) and os.path.getsize(file):
        bins = truth.join(truth.read_truth(file), looks, r["pages"], samples[0][1], samples[-1][1], NR_BINS)
        if not sum(map(sum, (b.accesses for b in bins))):
            raise truth.Damaged(f"{file}: holds no access to the workload's pages")
    sets = read_bytes(work + ".sets")

    # The hot set of each stretch: by the truth, or by what the workload meant to do.
    hot_sets = []
    for i, (a, b) in enumerate(times):
        if bins:
            # Of the whole run only the last quarter, as for all that is "at the end".
            first = max(a, 0.75 * end) if len(times) == 1 else a
            inside = [x for x in bins if x.start >= samples[0][1] + (first - 1e-3) * 1e9 and
                      x.end <= samples[0][1] + (b + 1e-3) * 1e9]
            hot_sets.append(truth.hottest(truth.total(inside, r["pages"]), r["hot_pages"]))
        else:
            want = 1 + i % r["sets"]
            hot_sets.append({p for p in range(r["pages"]) if sets[p] == want})

    curves = [place.curves(hot) for hot in hot_sets]
    reached = []
    for (a, b), hot, curve in zip(times, hot_sets, curves):
        if not hot:
            reached.append(None)
            continue
        # From the last look before it began
        first = max((c[0] for c in curve if c[0] <= a + 1e-3), default=0)
        at = seconds_to([(c[0], c[1] / len(hot)) for c in curve if first <= c[0] <= b + 1e-3], 0.95)
        reached.append(None if at is None else max(0, at - a))
    hot = hot_sets[-1]
    last = curves[-1][-1]
    by_node = {}
    for nid in place.last.values():
        by_node[nid] = by_node.get(nid, 0) + 1

    vmstat_start, vmstat_before, vmstat_after = (read_values(f"{work}.vmstat-{x}") for x in ("start", "before", "after"))
    vmstat = {n: v - vmstat_before.get(n, 0) for n, v in vmstat_after.items()
              if n.startswith(("pg", "numa_", "hwhint", "thp_", "workingset", "nr_promote"))
              and v != vmstat_before.get(n, 0)}
    cpu = cpu_seconds(read_values(work + ".cpu-before"), read_values(work + ".cpu-after"))
    kernel_s = sum(v for n, v in cpu.items() if n.startswith(("kdamond", "kmigrated")))
    system_s = float(r["system_s"])

    quarter = [b for b in bins if b.start >= bins[0].start + 0.75 * (bins[-1].end - bins[0].start)] if bins else []

    def dram_share(dicts):
        dram = sum(n for d in dicts for nid, n in d.items() if nid != r["slow_node"])
        return share(dram, sum(n for d in dicts for n in d.values()))

    def rounded(x, digits=4):
        return None if x is None else round(x, digits)

    tokens = tokens_per_second(samples, r) if r["mode"] == "llm" else None
    entry = {
        "id": name,
        "name": title,
        "judged_by": "truth" if bins else "workload",
        "seconds": end,
        "ns_access": rounded(rate(lines, r["threads"], 0.75 * end, end), 2),
        "ns_series": rate_series(lines, r["threads"], max(0.25, end / 240)),
        "hot_pages": len(hot) if hot else None,
        "hot_share": rounded(share(last[1], len(hot))),
        "over": rounded(over(last[1] + last[2], len(hot))),
        "dram_share": rounded(dram_share([b.misses for b in quarter])),
        "dram_access_share": rounded(dram_share([b.by_node for b in quarter])),
        "pages_on_node": {str(n): by_node[n] for n in sorted(by_node)},
        "promoted": counters(promoted, vmstat),
        "demoted": counters("pgdemote_kswapd + pgdemote_direct + pgdemote_proactive + pgdemote_khugepaged", vmstat),
        "demoted_before": vmstat_before.get("pgdemote_kswapd", 0) - vmstat_start.get("pgdemote_kswapd", 0),
        "promoted_seen": place.promoted,
        "demoted_seen": place.demoted,
        "seconds_to_95": rounded(median_or_none(reached), 2),
        "seconds_to_95_sets": [rounded(x, 2) for x in reached],
        "promoter_cpu_s": round(kernel_s + system_s, 3),
        "promoter_thread_s": round(kernel_s, 3),
        "workload_system_s": round(system_s, 3),
        "irq_cpu_s": cpu.get("irq", 0),
        "cpu": cpu,
        "vmstat": vmstat,
        "system": read_values(os.path.join(directory, "system")),
    }
    if tokens:
        entry["tokens_per_s"] = {n: rounded(v) for n, v in tokens.items()}
    return entry, {"bins": bins, "place": place, "curves": curves, "times": times, "hot_sets": hot_sets,
                   "pages": r["pages"], "end": end}


def save(path, value):
    with open(path + ".tmp", "w") as f:
        json.dump(value, f, indent="\t")
        f.write("\n")
    os.replace(path + ".tmp", path)
