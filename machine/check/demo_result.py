#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""demo_result.py DIR: is what "make demo" left in DIR complete and good enough?"""
import json
import os
import sys

KEYS = ("hot_pages", "hot_on_dram", "cold_pages", "cold_on_dram", "seconds_to_95", "seconds_to_95_numa_balancing",
        "pgpromote_success", "pgpromote_candidate", "bytes_in_use", "visited", "kernel_version")


def main():
    out = sys.argv[1]
    with open(os.path.join(out, "result.json")) as f:
        r = json.load(f)
    bad = [f"result.json has no {k}" for k in KEYS if k not in r]
    if not bad:
        # 32 of 128 MB are hot.
        if r["hot_pages"] != 8192 or r["cold_pages"] != 24576:
            bad.append(f"{r['hot_pages']} hot and {r['cold_pages']} cold pages are not 32 and 96 MB")
        if r["hot_on_dram"] < 0.99 * r["hot_pages"]:
            bad.append(f"only {r['hot_on_dram']} of {r['hot_pages']} hot pages are in DRAM")
        if r["cold_on_dram"] > 0.01 * r["cold_pages"]:
            bad.append(f"{r['cold_on_dram']} of {r['cold_pages']} cold pages are in DRAM")
        # Records of 2 bytes a page, a bit a page, and little else; 1 GB is slow.
        if not 0 < r["bytes_in_use"] <= 262144 * 2.25:
            bad.append(f"{r['bytes_in_use']} bytes in use")
        if not 0 < r["visited"] <= 2 * r["pgpromote_success"]:
            bad.append(f"{r['visited']} pages were visited to promote {r['pgpromote_success']}")
    pictures = {os.path.splitext(n)[1] for n in os.listdir(out) if os.path.getsize(os.path.join(out, n)) > 1000}
    bad += [f"there is no {x} picture" for x in (".png", ".svg") if x not in pictures]
    for b in bad:
        print(b)
    return 1 if bad else 0


sys.exit(main())
