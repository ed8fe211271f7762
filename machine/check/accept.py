#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""accept.py LIST <messages: lets through what LIST accepts, prints the rest.

A line of LIST is TYPE, a tab, a regular expression for the whole message, a tab,
and the reason why the message is wrong here. Fails if a message is left, or if an
entry accepts nothing (any more).
"""
import re
import sys


def main():
    entries = []
    for line in open(sys.argv[1]):
        line = line.rstrip("\n")
        if line and not line.startswith("#"):
            kind, pattern, reason = re.split(r"\t+", line, maxsplit=2)
            entries.append([kind, re.compile(pattern), reason, 0])
    left = []
    for message in sys.stdin:
        message = message.rstrip("\n")
        if not message.strip():
            continue
        for e in entries:
            if f"{e[0]}:" in message and e[1].search(message):
                e[3] += 1
                print(f"accepted: {message}")
                break
        else:
            left.append(message)
    for message in left:
        print(message)
    unused = [e for e in entries if not e[3]]
    for kind, pattern, reason, _ in unused:
        print(f"{sys.argv[1]}: {kind} {pattern.pattern}: accepts nothing, remove it")
    print(f"{len(left)} messages, {len(unused)} useless entries")
    return 1 if left or unused else 0


sys.exit(main())
