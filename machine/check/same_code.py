#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""same_code.py DIR1 DIR2 OBJECT...: do the objects hold the same code and data?

Compared are the contents and relocations of all sections that end up in the
kernel, but for those that depend on line numbers and on names of files: tables of
WARN(), debug information, and where in a table of strings a string stands.
"""
import re
import subprocess
import sys

# Sections that hold line numbers; .note.* hold hashes of the whole.
IGNORED = re.compile(r"__bug_table|\.rodata.*str|\.comment|\.note|\.debug|\.symtab|\.strtab|\.shstrtab|\.group")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, errors="replace").stdout


def sections(path):
    """{name: [size, flags]} of the sections that are loaded."""
    out = {}
    for line in run("readelf", "-SW", path).splitlines():
        m = re.match(r"\s*\[ *\d+\] (\S+)\s+(\S+)\s+[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +([A-Za-z]*)", line)
        if m and "A" in m[4] and not IGNORED.search(m[1]) and int(m[3], 16):
            out[m[1]] = (int(m[3], 16), m[2])
    return out


def relocations(path):
    """{section: relocations}, with strings by their text, not by their place."""
    strings = {}
    for name in re.findall(r"\] (\.rodata\S*str\S*)", run("readelf", "-SW", path)):
        strings[name] = {}
        for line in run("readelf", "-p", name, path).splitlines():
            m = re.match(r"\s*\[ *([0-9a-f]+)\]  ?(.*)$", line)
            if m:
                strings[name][int(m[1], 16)] = m[2]
    out, current = {}, None
    for line in run("readelf", "-rW", path).splitlines():
        m = re.match(r"Relocation section '\.rela?(\S+)'", line)
        if m:
            current = out.setdefault(m[1], [])
            continue
        m = re.match(r"([0-9a-f]+)\s+[0-9a-f]+ (\S+)\s+[0-9a-f]+ (.*)$", line)
        if m and current is not None:
            target = m[3]
            s = re.match(r"(\.rodata\S*str\S*)(?: \+ ([0-9a-f]+))?", target)
            if s and s[1] in strings:
                at = int(s[2] or "0", 16) + (4 if m[2] in ("R_X86_64_PC32", "R_X86_64_PLT32") else 0)
                target = strings[s[1]].get(at, target)
            current.append((m[1], m[2], target))
    return out


def content(path, name):
    return run("readelf", "-x", name, path)


def compare(a, b):
    sa, sb = sections(a), sections(b)
    ra, rb = relocations(a), relocations(b)
    bad = [f"only in one: {n}" for n in sorted(set(sa) ^ set(sb))]
    for n in sorted(set(sa) & set(sb)):
        if sa[n] != sb[n]:
            bad.append(f"{n}: {sa[n][0]} bytes, {sb[n][0]} bytes")
        elif sa[n][1] != "NOBITS" and content(a, n) != content(b, n):
            bad.append(f"{n}: content differs")
        elif ra.get(n) != rb.get(n):
            bad.append(f"{n}: what it refers to differs")
    return bad


def main():
    first, second, objects = sys.argv[1], sys.argv[2], sys.argv[3:]
    different = 0
    for o in objects:
        try:
            bad = compare(f"{first}/{o}", f"{second}/{o}")
        except subprocess.CalledProcessError:
            bad = ["not in both"]
        for text in bad:
            print(f"{o}: {text}")
        different += bool(bad)
    print(f"{len(objects)} objects, {different} differ")
    return 1 if different else 0


sys.exit(main())
