#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""bench_result.py DIRECTORY ROW...: is the bench's result complete, and can it be true?"""
import json
import os
import sys

FIELDS = {"id": str, "name": str, "judged_by": str, "seconds": float, "ns_access": float, "ns_series": list,
          "hot_share": (int, float), "over": (int, float), "promoted": int, "demoted": int, "promoter_cpu_s": float,
          "irq_cpu_s": (int, float), "vmstat": dict}
bad = []


def expect(good, text):
    print(("ok: " if good else "not ok: ") + text)
    if not good:
        bad.append(text)


def main():
    directory, want = sys.argv[1], sys.argv[2:]
    with open(os.path.join(directory, "result.json")) as f:
        result = json.load(f)
    rows = {r["id"]: r for r in result["rows"]}
    expect(set(rows) == set(want), f"rows {' '.join(want)}, found {' '.join(rows)}")
    expect(len(result["failed"]) == 1, "one row failed")
    for r in rows.values():
        for name, kind in FIELDS.items():
            expect(isinstance(r.get(name), kind), f"{r['id']}: {name} = {str(r.get(name))[:60]}")
        for name in ("dram_share", "seconds_to_95"):
            expect(name in r, f"{r['id']}: has {name}")
        expect(len(r["ns_series"]) >= 2, f"{r['id']}: a series of latencies")
        # The kernel's counters and what was seen tell the same, as nothing is demoted here.
        expect(r["demoted_seen"] == r["demoted"] == 0, f"{r['id']}: nothing is demoted")
        # What arrived after the last look was not seen.
        expect(0 <= r["promoted"] - r["promoted_seen"] <= 0.2 * r["promoted"],
               f"{r['id']}: promoted {r['promoted']}, seen {r['promoted_seen']}")
    ideal, none, own = rows["IDEAL"], rows["B0"], rows["HF"]
    expect(ideal["hot_share"] == 1 and ideal["over"] == 0, "IDEAL: all that is hot is on DRAM, and no more")
    expect(none["hot_share"] == 0 and none["promoted"] == 0, "B0: nothing is promoted")
    expect(own["promoted"] > 0 and own["hot_share"] > 0, "HF: something is promoted")
    if result["machine"] != "stock":
        expect(all(r["judged_by"] == "truth" for r in rows.values()), "the truth judges")
        expect(ideal["dram_share"] > 0.98 and none["dram_share"] < 0.02, "DRAM serves all in IDEAL, nothing in B0")
        expect(none["ns_access"] > 1.5 * ideal["ns_access"], "slow memory is slow")
    for name in ("latency", "placement"):
        for kind in ("png", "svg"):
            expect(os.path.getsize(os.path.join(directory, f"{name}.{kind}")) > 1000, f"{name}.{kind}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
