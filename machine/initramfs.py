#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes initramfs archives (cpio "newc"), without root and without a scratch tree.

initramfs.py base OUTPUT BUSYBOX INIT
    the guest's small world: busybox, its links, device nodes, the init script
initramfs.py files OUTPUT COMMAND-FILE SETTINGS-FILE PATH...
    what one run adds: /pghot/command, /pghot/settings, and each PATH (a
    directory with all below it) in /root, with the libraries that programs need

Archives may be concatenated: the kernel unpacks one after the other.
"""
import os
import stat
import subprocess
import sys


class Cpio:
    def __init__(self, path):
        self.f = open(path, "wb")
        self.ino = 0
        self.seen = set()

    def entry(self, name, mode, data=b"", rdev=(0, 0)):
        name = name.strip("/")
        if name in self.seen:
            return
        parent = os.path.dirname(name)
        if parent and parent not in self.seen:
            self.entry(parent, stat.S_IFDIR | 0o755)
        self.seen.add(name)
        self.ino += 1
        raw = os.fsencode(name) + b"\0"
        fields = (self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev, len(raw), 0)
        head = b"070701" + b"".join(b"%08x" % x for x in fields) + raw
        self.f.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def dir(self, name, mode=0o755):
        self.entry(name, stat.S_IFDIR | mode)

    def file(self, name, data, mode=0o644):
        self.entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        self.entry(name, stat.S_IFLNK | 0o777, os.fsencode(target))

    def node(self, name, major, minor, mode=0o600):
        self.entry(name, stat.S_IFCHR | mode, rdev=(major, minor))

    def close(self):
        self.seen.discard("TRAILER!!!")
        self.entry("TRAILER!!!", 0)
        self.f.write(b"\0" * (-self.f.tell() % 512))
        self.f.close()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def base(output, busybox, init):
    c = Cpio(output)
    for d in ("bin", "sbin", "etc", "proc", "sys", "dev", "run", "tmp", "mnt", "root", "root/out", "usr/bin",
              "usr/sbin", "pghot", "host", "lib64"):
        c.dir(d)
    # The kernel opens /dev/console before init can mount anything.
    c.node("dev/console", 5, 1)
    c.node("dev/null", 1, 3, 0o666)
    c.file("bin/busybox", read(busybox), 0o755)
    c.file("init", read(init), 0o755)
    names = subprocess.run([busybox, "--list"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    for n in names:
        if n != "busybox":
            c.link("bin/" + n, "busybox")
    c.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n")
    c.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    c.file("etc/profile", b"PS1='guest:\\w# '\n")
    c.close()


def libraries(path):
    """(name in the guest, path here) of what a dynamically linked program loads."""
    r = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out = []
    if r.returncode == 0:
        for line in r.stdout.splitlines():
            words = line.split()
            if "=>" in words and len(words) > 2 and words[2].startswith("/"):
                out.append((words[2], words[2]))
            elif words and words[0].startswith("/"):
                out.append((words[0], words[0]))
            elif "not found" in line:
                sys.exit(f"pghot: error: {path}: its library {words[0]} is not on this machine")
    return out


def add(c, name, path):
    st = os.lstat(path)
    if stat.S_ISLNK(st.st_mode):
        c.link(name, os.readlink(path))
    elif stat.S_ISDIR(st.st_mode):
        c.dir(name, st.st_mode & 0o7777)
        for n in sorted(os.listdir(path)):
            add(c, name + "/" + n, os.path.join(path, n))
    elif stat.S_ISREG(st.st_mode):
        data = read(path)
        c.file(name, data, st.st_mode & 0o7777)
        if data[:4] == b"\x7fELF" and st.st_mode & 0o111:
            for lib, here in libraries(path):
                c.file(lib, read(here), 0o755)


def files(output, command, settings, paths):
    c = Cpio(output)
    c.file("pghot/command", read(command), 0o755)
    c.file("pghot/settings", read(settings))
    used = {}
    for p in paths:
        name = os.path.basename(os.path.abspath(p))
        if not os.path.exists(p):
            sys.exit(f"pghot: error: FILES names {p}, which does not exist")
        if name in used:
            sys.exit(f"pghot: error: FILES names two files {name}: {used[name]} and {p}; /root has room for one of them")
        used[name] = p
        # A link that is named itself means what it points to.
        add(c, "root/" + name, os.path.realpath(p))
    c.close()


if __name__ == "__main__":
    try:
        if sys.argv[1] == "base":
            base(*sys.argv[2:5])
        else:
            files(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    except OSError as e:
        sys.exit(f"pghot: error: {e.filename}: {e.strerror}" if e.filename else f"pghot: error: {e}")
