#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Keeps a patched kernel tree up to date.

tree.py sync --pristine DIR --tree DIR --state FILE [--rescan]
tree.py key --state FILE --tree DIR

The tree starts as hard links to the pristine source. Only files whose content
differs from what it should be are written, always under a new name that is then
renamed: the pristine source stays pristine, and make sees new times on exactly
those files. "key" prints an identifier of the tree's content if the tree is
known to fit the repository as it is now, and fails otherwise.
"""
import argparse
import hashlib
import json
import os
import shutil
import time
import uuid

import overlay
from overlay import say


def load(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def save(path, state):
    with open(path + ".new", "w") as f:
        json.dump(state, f)
    os.replace(path + ".new", path)


def stamp(path):
    try:
        st = os.lstat(path)
    except FileNotFoundError:
        return None
    return [st.st_ino, st.st_mtime_ns, st.st_size, st.st_mode & 0o100]


def untouched(tree, state):
    """Nobody has changed the files that we wrote."""
    return all(stamp(os.path.join(tree, p)) == s for p, s in state.get("touched", {}).items())


def write(path, file):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    tmp = path + ".pghot-new"
    with open(tmp, "wb") as f:
        f.write(file.data)
    os.chmod(tmp, 0o755 if file.executable else 0o644)
    os.replace(tmp, path)


def remove(path, tree):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    d = os.path.dirname(path)
    while d != tree:
        try:
            os.rmdir(d)
        except OSError:
            break
        d = os.path.dirname(d)


def same(path, file):
    try:
        if os.path.islink(path):
            return False
        return overlay.File.load(path).digest() == file.digest()
    except FileNotFoundError:
        return False


def restore(src, dst, tree):
    """As pristine, but with the time of now, so that make notices."""
    if os.path.lexists(src):
        os.makedirs(os.path.dirname(dst), exist_ok=True)
        tmp = dst + ".pghot-new"
        shutil.copy(src, tmp, follow_symlinks=False)
        os.replace(tmp, dst)
        return stamp(src)
    remove(dst, tree)
    return None


def rescan(args, desired, copied):
    """Follows a pristine source that may have changed: a person's own tree."""
    changed = 0
    seen = set()
    for root, dirs, files in os.walk(args.pristine):
        rel = os.path.relpath(root, args.pristine)
        rel = "" if rel == "." else rel + "/"
        links = [d for d in dirs if os.path.islink(os.path.join(root, d))]
        for f in files + links:
            path = rel + f
            seen.add(path)
            if path in desired:
                continue
            src, dst = os.path.join(args.pristine, path), os.path.join(args.tree, path)
            s, d = stamp(src), stamp(dst)
            if d and (s[0] == d[0] or copied.get(path) == s):
                continue
            # A link copied by an earlier run has an inode of its own.
            if d and os.path.islink(src) and os.path.islink(dst) and os.readlink(src) == os.readlink(dst):
                continue
            copied[path] = restore(src, dst, args.tree)
            changed += 1
    for root, dirs, files in os.walk(args.tree):
        if root == args.tree:
            dirs[:] = [d for d in dirs if not d.startswith(".build-")]
        rel = os.path.relpath(root, args.tree)
        rel = "" if rel == "." else rel + "/"
        for f in files + [d for d in dirs if os.path.islink(os.path.join(root, d))]:
            if rel + f not in seen and rel + f not in desired:
                remove(os.path.join(root, f), args.tree)
                copied.pop(rel + f, None)
                changed += 1
    return changed


def sync(args):
    state = load(args.state)
    inputs = overlay.inputs_digest()
    if (not args.rescan and state.get("inputs") == inputs and state.get("pristine") == args.pristine
            and untouched(args.tree, state)):
        return
    start = time.monotonic()
    desired = overlay.complete(args.pristine)
    old = state.get("touched", {})
    copied = state.get("copied", {})
    generation = state.get("generation") or uuid.uuid4().hex
    # If we are interrupted, the next run must know what we may have touched,
    # and must not take the tree for complete.
    save(args.state, {"touched": {**dict.fromkeys(desired), **old}, "copied": copied})
    changed = 0
    for path, file in desired.items():
        dst = os.path.join(args.tree, path)
        copied.pop(path, None)
        if file is None:
            if os.path.lexists(dst):
                remove(dst, args.tree)
                changed += 1
        elif not same(dst, file):
            write(dst, file)
            changed += 1
    for path in old:
        if path not in desired:
            copied[path] = restore(os.path.join(args.pristine, path), os.path.join(args.tree, path), args.tree)
            changed += 1
    if args.rescan:
        n = rescan(args, desired, copied)
        if n:
            generation = uuid.uuid4().hex
            changed += n
    h = hashlib.sha256((args.pristine + "\0" + generation * args.rescan).encode())
    kconfig = h.copy()
    for path in sorted(desired):
        item = f"{path}\0{desired[path].digest() if desired[path] else ''}\n".encode()
        h.update(item)
        if os.path.basename(path).startswith("Kconfig"):
            kconfig.update(item)
    save(args.state, {
        "inputs": inputs, "pristine": args.pristine, "generation": generation,
        "key": h.hexdigest(), "kconfig": kconfig.hexdigest(), "copied": copied,
        "touched": {p: stamp(os.path.join(args.tree, p)) for p in desired}})
    say(f"patched tree: {changed} files written, {len(desired)} differ from the kernel's own "
        f"({time.monotonic() - start:.1f} s)")


def key(args):
    state = load(args.state)
    if not state.get("key") or state.get("inputs") != overlay.inputs_digest() or not untouched(args.tree, state):
        return 1
    print(state["key"], state["kconfig"])
    return 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("command", choices=["sync", "key"])
    p.add_argument("--pristine")
    p.add_argument("--tree", required=True)
    p.add_argument("--state", required=True)
    p.add_argument("--rescan", action="store_true")
    args = p.parse_args()
    return sync(args) if args.command == "sync" else key(args)


if __name__ == "__main__":
    overlay.run_main(main)
