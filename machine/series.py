#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes the patch series: one commit for each patch of patches/series.

Every commit is computed from contents (git's plumbing, no checkout in between),
then the branch is checked out once and mailed out with git format-patch.
"""
import argparse
import os
import shutil
import subprocess
import time

import overlay
from overlay import File, Problem, say


class Git:
    def __init__(self, path):
        self.path = path

    def __call__(self, *args, data=None, env=None):
        r = subprocess.run(["git", "-C", self.path, "-c", "core.autocrlf=false", "-c", "commit.gpgSign=false",
                            "-c", "gc.auto=0", "-c", "advice.detachedHead=false"] + list(args), input=data,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
        if r.returncode:
            raise Problem(f"git {args[0]} failed in {self.path}:\n\t" + r.stderr.decode("utf-8", "replace").strip())
        return r.stdout.decode("utf-8", "surrogateescape").strip("\n")


def prepare(args, base):
    """A repository beside the imported source that borrows its objects."""
    path = os.path.join(args.out, "linux")
    alternates = os.path.join(path, ".git", "objects", "info", "alternates")
    want = os.path.join(args.git, "objects") + "\n"
    if os.path.exists(path) and not (os.path.exists(alternates) and overlay.read(alternates).decode() == want):
        shutil.rmtree(path)
    git = Git(path)
    if not os.path.exists(path):
        os.makedirs(path)
        git("init", "-q", "-b", "pghot")
        with open(alternates, "w") as f:
            f.write(want)
        with open(os.path.join(path, ".git", "info", "attributes"), "w") as f:
            f.write("* -text -ident -filter\n")
    git("update-ref", f"refs/tags/v{args.release}", base)
    return git


def author(git):
    """The person who runs this; patches are signed off by whoever submits them."""
    def get(key):
        r = subprocess.run(["git", "-C", overlay.TOP, "config", key], stdout=subprocess.PIPE, text=True)
        return r.stdout.strip()
    name, email = get("user.name"), get("user.email")
    if not name or not email:
        say("warning: git does not know your name: the series gets a neutral author "
            "(git config --global user.name and user.email)")
        name, email = name or "pghot", email or "pghot@localhost"
    # The date of the project's last commit: equal input gives equal commits.
    r = subprocess.run(["git", "-c", "safe.directory=*", "-C", overlay.TOP, "log", "-1", "--format=%cI"],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    date = r.stdout.strip() or "2026-01-01T00:00:00+00:00"
    return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", email), ("DATE", date))}


def contents(args, patches):
    """For each patch the {path: File or None} that its commit changes."""
    files = overlay.load_overlay(args.pristine)
    owner = overlay.assign_overlay(patches, sorted(files))
    fragment = overlay.maintainers_fragment()
    holders = [p for p in patches if p.maintainers]
    if fragment and len(holders) != 1:
        raise Problem("MAINTAINERS has an entry to add, so exactly one patch says 'Maintainers: yes'; now "
                      + (", ".join(p.name for p in holders) or "none") + " does")
    trimmed = [p for p in files if p.startswith("mm/pghot/") and os.path.basename(p) in ("Makefile", "Kbuild")]
    tree = {}                       # what stands there so far, beside the pristine source
    entry_done = False

    def exists(path):
        f = tree.get(path, ...)
        return os.path.exists(os.path.join(args.pristine, path)) if f is ... else f is not None

    with overlay.Applier(args.pristine) as applier:
        for i, p in enumerate(patches):
            change = applier.apply(p)
            clash = sorted(set(change) & set(files))
            if clash:
                raise Problem(f"patches/{p.name} changes {clash[0]}, which is an overlay file: it stands as a whole")
            change.update({path: files[path] for path, n in owner.items() if n == i})
            entry_done = entry_done or (p.maintainers and bool(fragment))
            if entry_done and (p.maintainers or "MAINTAINERS" in change):
                base = change.get("MAINTAINERS") or tree.get("MAINTAINERS.base") \
                    or File.load(os.path.join(args.pristine, "MAINTAINERS"))
                change["MAINTAINERS"] = File(overlay.merge_maintainers(base.data, fragment))
            elif "MAINTAINERS" in change:
                tree["MAINTAINERS.base"] = change["MAINTAINERS"]
            tree.update(change)
            for path in trimmed:
                if owner[path] <= i:
                    text = overlay.trim_makefile(files[path].data.decode(), path, exists).encode()
                    if path not in tree or tree[path].data != text:
                        tree[path] = File(text, files[path].executable)
                        change[path] = tree[path]
                    elif path in change:
                        change[path] = tree[path]
            # An overlay Makefile that was just added whole stands trimmed.
            yield p, {k: tree[k] for k in change}
    for path in trimmed:
        if tree[path].data != files[path].data:
            say(f"warning: {path} names an object whose source nobody adds; at the end of the series it is shorter "
                "than in the overlay")


def commit_all(args, git, base, patches):
    env = author(git)
    env["GIT_INDEX_FILE"] = os.path.join(git.path, ".git", "pghot-index")
    git("read-tree", base, env=env)
    parent = base
    for p, change in contents(args, patches):
        info = ""
        for path, file in sorted(change.items()):
            if file is None:
                info += f"0 {'0' * 40}\t{path}\n"
            else:
                blob = git("hash-object", "-w", "--stdin", "--no-filters", data=file.data)
                info += f"{'100755' if file.executable else '100644'} {blob}\t{path}\n"
        git("update-index", "--add", "--index-info", data=os.fsencode(info), env=env)
        tree = git("write-tree", env=env)
        if tree == git("rev-parse", parent + "^{tree}"):
            raise Problem(f"patches/{p.name} changes nothing: it has no diff and no overlay file of its own")
        message = p.subject + "\n" + ("\n" + p.body + "\n" if p.body else "")
        parent = git("commit-tree", tree, "-p", parent, data=message.encode("utf-8", "surrogateescape"), env=env)
    os.unlink(env["GIT_INDEX_FILE"])
    return parent, env


def cover_letter(mail, release):
    """Fills in patches/cover-letter.txt: a Subject line, an empty line, text."""
    path = os.path.join(overlay.TOP, "patches", "cover-letter.txt")
    if not os.path.exists(path):
        say("note: no patches/cover-letter.txt; the cover letter is git's empty form")
        return
    head, _, body = overlay.read(path).decode().partition("\n")
    if not head.startswith("Subject:"):
        raise Problem("patches/cover-letter.txt starts with a line 'Subject: ...'")
    body = body.strip("\n") + f"\n\nBased on Linux {release}."
    name = next(f for f in sorted(os.listdir(mail)) if f.startswith("0000-"))
    full = os.path.join(mail, name)
    text = overlay.read(full).decode("utf-8", "surrogateescape")
    text = text.replace("*** SUBJECT HERE ***", head[len("Subject:"):].strip()).replace("*** BLURB HERE ***", body)
    with open(full, "wb") as f:
        f.write(text.encode("utf-8", "surrogateescape"))


def main():
    p = argparse.ArgumentParser()
    for a in ("pristine", "git", "out", "release"):
        p.add_argument("--" + a, required=True)
    args = p.parse_args()
    start = time.monotonic()
    patches = overlay.load_series()
    base = Git(args.git)("rev-parse", "HEAD")
    git = prepare(args, base)
    head, env = commit_all(args, git, base, patches)
    git("update-ref", "refs/heads/pghot", head)
    git("symbolic-ref", "HEAD", "refs/heads/pghot")
    say(f"series: {len(patches)} commits on v{args.release}; checking out")
    # Only files that differ are written; a person's work in there is not kept.
    git("reset", "-q", "--hard", "pghot")
    git("clean", "-q", "-fd")
    mail = os.path.join(args.out, "mail")
    shutil.rmtree(mail, ignore_errors=True)
    os.makedirs(mail)
    if patches:
        git("format-patch", "-q", "--cover-letter", "--no-signature", f"--base={base}", "-o", mail, f"{base}..pghot",
            env={k: v for k, v in env.items() if k != "GIT_INDEX_FILE"})
        cover_letter(mail, args.release)
    say(f"series: {os.path.join(args.out, 'linux')} (branch pghot on v{args.release}), "
        f"mails in {mail} ({time.monotonic() - start:.0f} s)")
    for line in git("log", "--reverse", "--format=%h %s", f"{base}..pghot").splitlines():
        say("  " + line)


if __name__ == "__main__":
    overlay.run_main(main)
