# SPDX-License-Identifier: GPL-2.0
"""What this repository adds to a kernel tree: overlay files and patches.

The format of patches/ is described in machine/README.md. This module computes
contents only; tree.py writes them into a tree, series.py into commits.
"""
import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The directories of a kernel tree. Whatever else stands in the repository's top
# directory belongs to the project and not into Linux.
KERNEL_DIRS = ("Documentation", "LICENSES", "arch", "block", "certs", "crypto",
               "drivers", "fs", "include", "init", "io_uring", "ipc", "kernel",
               "lib", "mm", "net", "rust", "samples", "scripts", "security",
               "sound", "tools", "usr", "virt")


HINT = (f"\tThe patches are made for Linux {os.environ.get('PG_SERIES', '7.3')}.x. Use that (leave KSRC out, to have "
        "it fetched), or mend the patch.")


class Problem(Exception):
    """Something the person at the keyboard has to mend."""


def say(text):
    print("pghot: " + text, file=sys.stderr)


def run_main(main):
    try:
        sys.exit(main())
    except Problem as e:
        print("pghot: error: " + str(e), file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def read(path):
    with open(path, "rb") as f:
        return f.read()


class File:
    """Content and mode of one file of the kernel tree."""

    def __init__(self, data, executable=False):
        self.data = data
        self.executable = executable

    @classmethod
    def load(cls, path):
        return cls(read(path), bool(os.stat(path).st_mode & 0o100))

    def digest(self):
        return hashlib.sha256(b"x" * self.executable + b"\0" + self.data).hexdigest()


def overlay_paths():
    """The overlay files of the checkout, new ones that git does not know yet
    included, ignored ones not."""
    out = None
    if os.path.exists(os.path.join(TOP, ".git")):
        # Whoever runs this as root on another user's checkout gets told by
        # git that it will not; the checkout is ours to read all the same.
        r = subprocess.run(["git", "-c", "safe.directory=*", "-C", TOP, "ls-files", "-z", "--cached",
                            "--others", "--exclude-standard", "--"] + list(KERNEL_DIRS),
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if r.returncode == 0:
            out = [os.fsdecode(p) for p in r.stdout.split(b"\0") if p]
    if out is None:
        out = []
        for d in KERNEL_DIRS:
            for root, dirs, files in os.walk(os.path.join(TOP, d)):
                dirs[:] = [x for x in dirs if x != "__pycache__"]
                out += [os.path.relpath(os.path.join(root, f), TOP) for f in files
                        if not f.endswith((".o", ".cmd", "~", ".orig", ".rej", ".swp"))]
    return sorted({p for p in out if os.path.isfile(os.path.join(TOP, p))})


class Patch:
    """One patches/NNNN-name.patch, which becomes one commit."""

    def __init__(self, name, data):
        self.name = name
        self.overlay = []           # names and globs
        self.maintainers = False
        lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        cut = len(lines)
        rest = cut
        for i, line in enumerate(lines):
            if line.rstrip("\n") == "---":
                cut, rest = i, i + 1
                break
            if line.startswith("diff --git ") or (line.startswith("--- a/") and i + 1 < len(lines)
                                                  and lines[i + 1].startswith("+++ ")):
                cut = rest = i
                break
        message = []
        subject = None
        for line in lines[:cut]:
            line = line.rstrip()
            m = re.match(r"(Subject|Overlay|Maintainers): *(.*)$", line)
            if not m:
                message.append(line)
            elif m[1] == "Subject" and subject is None:
                subject = re.sub(r"^\[PATCH[^]]*\] *", "", m[2])
            elif m[1] == "Overlay":
                self.overlay += m[2].split()
            elif m[1] == "Maintainers":
                self.maintainers = m[2].lower() in ("yes", "y", "true", "1")
            else:
                message.append(line)
        if not subject:
            raise Problem(f"patches/{name}: has no 'Subject: ' line")
        # mail-style continuation of the subject
        while message and re.match(r"[ \t]+\S", message[0]):
            subject += " " + message.pop(0).strip()
        self.subject = subject
        self.body = re.sub(r"\n{3,}", "\n\n", "\n".join(message)).strip("\n")
        diff = lines[rest:]
        # A diffstat or notes may stand between '---' and the diff.
        for i, line in enumerate(diff):
            if line.startswith(("diff --git ", "--- a/", "--- /dev/null")):
                diff = diff[i:]
                break
        else:
            diff = []
        # git's mail signature is no part of the diff
        for i in range(len(diff) - 1, max(len(diff) - 4, 0), -1):
            if diff[i].rstrip("\n") in ("-- ", "--"):
                diff = diff[:i]
                break
        self.diff = "".join(diff).encode("utf-8", "surrogateescape")
        self.files = sorted({m for line in diff
                             for m in re.findall(r"^(?:--- a/|\+\+\+ b/|rename from |rename to )([^\t\n]+)", line)})
        # Those that must be there already: not what the diff creates.
        self.changes = {m for line in diff for m in re.findall(r"^(?:--- a/|rename from )([^\t\n]+)", line)}
        if diff and not self.files:
            raise Problem(f"patches/{name}: its diff names no file as a/path and b/path (make it with git diff)")


def load_series():
    """The patches in the order of patches/series."""
    path = os.path.join(TOP, "patches", "series")
    if not os.path.exists(path):
        return []
    out = []
    for line in read(path).decode().splitlines():
        name = line.split("#", 1)[0].strip()
        if not name:
            continue
        f = os.path.join(TOP, "patches", name)
        if not os.path.exists(f):
            raise Problem(f"patches/series names {name}, which is not in patches/")
        out.append(Patch(name, read(f)))
    return out


class Applier:
    """Applies patches one after the other to copies of the files they touch."""

    def __init__(self, pristine):
        self.pristine = pristine
        self.dir = tempfile.mkdtemp(prefix="pghot-apply.")
        self.seen = set()

    def __enter__(self):
        return self

    def __exit__(self, *a):
        shutil.rmtree(self.dir, ignore_errors=True)

    def apply(self, patch):
        """Returns {path: File or None (removed)} of the files that changed."""
        if not patch.diff:
            return {}
        for path in patch.files:
            src, dst = os.path.join(self.pristine, path), os.path.join(self.dir, path)
            if path not in self.seen:
                self.seen.add(path)
                os.makedirs(os.path.dirname(dst), exist_ok=True)
                if os.path.exists(src):
                    shutil.copy(src, dst)
            if not os.path.exists(dst) and path in patch.changes:
                raise Problem(f"patches/{patch.name} changes {path}, which this kernel source does not have.\n" + HINT)
        r = subprocess.run(["patch", "-p1", "--force", "--no-backup-if-mismatch", "-F2",
                            "--reject-file=-", "-d", self.dir],
                           input=patch.diff, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = r.stdout.decode("utf-8", "replace")
        self.report(patch, text, r.returncode)
        out = {}
        for path in patch.files:
            f = os.path.join(self.dir, path)
            out[path] = File.load(f) if os.path.exists(f) else None
        return out

    def report(self, patch, text, status):
        file, bad = "?", []
        hunks = self.hunks(patch)
        for line in text.splitlines():
            m = re.match(r"(?:patching|checking) file '?([^']+?)'?(?: \(.*\))?$", line)
            if m:
                file = m[1]
                continue
            m = re.match(r"Hunk #(\d+) (FAILED|succeeded|ignored|NOT MERGED)(.*)", line)
            if not m:
                if "can't find file to patch" in line or "malformed" in line or "No file to patch" in line:
                    bad.append(line.replace("patch: ****", "").strip())
                continue
            n = int(m[1])
            head = hunks.get((file, n), "")
            if m[2] == "succeeded" and "fuzz" in m[3]:
                say(f"patches/{patch.name}: {file}: hunk {n} applied with fuzz: {m[3].strip()}")
            elif m[2] != "succeeded":
                bad.append(f"{file}: hunk {n} does not apply{m[3].rstrip('.')}\n\t    {head}")
        if status or bad:
            detail = "\n\t".join(bad) or text.strip()
            raise Problem(f"patches/{patch.name} does not apply to this kernel source:\n\t{detail}\n" + HINT)

    @staticmethod
    def hunks(patch):
        out, file, n = {}, "?", 0
        for line in patch.diff.decode("utf-8", "replace").splitlines():
            if line.startswith("+++ "):
                file, n = re.sub(r"^b/", "", line[4:].split("\t")[0]), 0
            elif line.startswith("@@ "):
                n += 1
                out[file, n] = line
        return out


def maintainers_fragment():
    path = os.path.join(TOP, "MAINTAINERS")
    return read(path).decode() if os.path.exists(path) else None


def merge_maintainers(kernel, fragment):
    """Puts the fragment's entries into the kernel's MAINTAINERS, by name."""
    blocks = kernel.decode("utf-8", "surrogateescape").split("\n\n")
    entries = [b.strip("\n") for b in
               "\n".join(x for x in fragment.splitlines() if not x.startswith("#")).split("\n\n")]

    def title(block):
        lines = block.strip("\n").split("\n")
        if len(lines) > 1 and re.match(r"[A-Z]:\t", lines[1]) and not re.match(r"[A-Z]:\s", lines[0]):
            return lines[0]
        return None

    for e in filter(None, entries):
        if not title(e):
            raise Problem("MAINTAINERS: an entry is a line with its name, then lines like 'M:<tab>...'")
        name = title(e).upper()
        # The file is nearly sorted, no more: go by the entries whose names are
        # most alike. The last entry, THE REST, stays the last.
        alike, place = 0, None
        for i, b in enumerate(blocks):
            t = (title(b) or "").upper()
            if not t or t == "THE REST":
                continue
            n = len(os.path.commonprefix([t, name]))
            if n > alike:
                alike, place = n, i + (t < name)
            elif n == alike and place is not None and t < name:
                place = i + 1
        if place is None:
            raise Problem("the kernel's MAINTAINERS has a form that is not understood")
        blocks.insert(place, e)
    return "\n\n".join(blocks).encode("utf-8", "surrogateescape")


def load_overlay(pristine):
    """{path: File} of all overlay files."""
    out = {}
    for p in overlay_paths():
        if os.path.exists(os.path.join(pristine, p)):
            raise Problem(f"{p} exists in Linux already: change it by a patch in patches/, not in the overlay")
        out[p] = File.load(os.path.join(TOP, p))
    return out


def complete(pristine):
    """{path: File or None} of the whole project: all patches, all overlay."""
    out = {}
    with Applier(pristine) as a:
        for p in load_series():
            out.update(a.apply(p))
    overlay = load_overlay(pristine)
    for path in overlay:
        if path in out:
            raise Problem(f"{path} is an overlay file and a patch changes it too: an overlay file stands as a whole")
    out.update(overlay)
    fragment = maintainers_fragment()
    if fragment:
        base = out.get("MAINTAINERS") or File.load(os.path.join(pristine, "MAINTAINERS"))
        out["MAINTAINERS"] = File(merge_maintainers(base.data, fragment))
    return out


def inputs_digest():
    """Changes with anything in the repository that complete() reads."""
    h = hashlib.sha256()
    paths = overlay_paths()
    pdir = os.path.join(TOP, "patches")
    if os.path.isdir(pdir):
        paths += sorted("patches/" + f for f in os.listdir(pdir) if f == "series" or f.endswith(".patch"))
    for p in paths + [p for p in ("MAINTAINERS", "machine/overlay.py") if os.path.exists(os.path.join(TOP, p))]:
        h.update(p.encode() + b"\0" + File.load(os.path.join(TOP, p)).digest().encode())
    return h.hexdigest()


def assign_overlay(patches, paths):
    """{path: index of the one patch that adds it}. An exact name wins over a
    directory or pattern; two patches that name a file equally are an error."""
    owner, exact, bad = {}, {}, []
    for i, p in enumerate(patches):
        for spec in p.overlay:
            hit = False
            for path in paths:
                is_exact = path == spec
                if not (is_exact or fnmatch.fnmatchcase(path, spec)
                        or path.startswith(spec.rstrip("/") + "/")):
                    continue
                hit = True
                if path in owner and exact[path] == is_exact and owner[path] != i:
                    bad.append(f"{path} is named by both {patches[owner[path]].name} and {p.name}")
                elif path not in owner or is_exact > exact[path]:
                    owner[path], exact[path] = i, is_exact
            if not hit:
                bad.append(f"{p.name} names {spec}, but there is no such overlay file")
    bad += [f"{path} is named by no patch (add 'Overlay: {path}' to one)" for path in paths if path not in owner]
    if bad:
        raise Problem("patches/ and the overlay do not fit together:\n\t" + "\n\t".join(bad))
    return owner


def trim_makefile(text, path, exists):
    """The Makefile without the objects whose sources are not in the tree yet."""
    here = os.path.dirname(path)
    composite = set(re.findall(r"^\s*([\w-]+?)-(?:y|objs|m|\$\([^)]*\))\s*[:+]?=", text, re.M)) - {"obj", "lib"}

    def missing(token):
        m = re.fullmatch(r"([\w./-]+)\.o", token)
        if m:
            base = os.path.normpath(os.path.join(here, m[1]))
            return m[1] not in composite and not any(exists(base + s) for s in (".c", ".S", ".rs"))
        m = re.fullmatch(r"([\w.-]+)/", token)
        return bool(m) and not any(exists(os.path.join(here, m[1], f)) for f in ("Makefile", "Kbuild"))

    out, logical = [], []

    def flush():
        # logical: physical lines of one logical line, each with its tokens
        kept, dropped = [], False
        for line in logical:
            comment = line.lstrip().startswith("#")
            parts = re.split(r"(\s+)", line)
            if comment or not any(missing(t) for t in parts[::2]):
                kept.append(line)
                continue
            dropped = True
            text = ""
            for i in range(0, len(parts), 2):
                if missing(parts[i]):
                    continue
                text += (parts[i - 1] if i and (text or i == 2 and not parts[0]) else "") + parts[i]
            if text.strip(" \t\\"):
                kept.append(text)
        if dropped:
            if kept and not logical[-1].endswith("\\"):
                kept[-1] = kept[-1].rstrip().removesuffix("\\").rstrip()
            whole = " ".join(k.rstrip("\\") for k in kept)
            # nothing left to assign
            if re.fullmatch(r"\s*[\w$(){}-]+\s*[:+?]?=\s*", whole) or not whole.strip():
                kept = []
        out.extend(kept)
        logical.clear()

    for line in text.split("\n"):
        logical.append(line)
        if not line.endswith("\\"):
            flush()
    flush()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out))
