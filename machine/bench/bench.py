#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The bench: runs each row of a scenario in a guest of its own, and reports.

bench.py --kernel BZIMAGE --work BINARY --out DIRECTORY [--qemu BINARY]
         [--scenario NAME] [--rows A,B] [--quick] [--jobs N] [--twice]

--twice: runs each row two times and compares all that the guest and the emulator wrote.
Rows whose kernel, emulator, workload and settings are those of an earlier run are not
run again. The exit status is 1 if a row failed.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine as machines  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import spec  # noqa: E402
import truth  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = os.path.dirname(HERE)
# Until it is known: host seconds for a guest second, and for boot, preparation and report.
GUESS_PER_SECOND, GUESS_BOOT = 14, 40


def say(text):
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"pghot: {text}", file=sys.stderr, flush=True)


def die(text):
    say(f"error: {text}")
    sys.exit(1)


def hms(seconds):
    seconds = int(seconds)
    return f"{seconds // 60}m{seconds % 60:02d}s" if seconds >= 60 else f"{seconds}s"


def shown(path):
    return os.path.relpath(path)


def digest_of(*paths):
    h = hashlib.sha256()
    for p in paths:
        with open(p, "rb") as f:
            while chunk := f.read(1 << 20):
                h.update(chunk)
    return h.hexdigest()


class Run:
    """A row in a guest."""

    def __init__(self, args, machine, scenario, row, directory):
        self.args, self.machine, self.scenario, self.row = args, machine, scenario, row
        self.dir = directory
        self.process = None
        self.began = self.chase_began = None
        self.at = 0.0
        self.error = None
        self.before, self.on = row.scripts(scenario)
        env = {"MEM_MB": scenario.memory, "CPUS": str(scenario.cpus),
               "APPEND": " ".join(x for x in ("nokaslr norandmaps", scenario.append, row.append) if x)}
        env.update(machine.environment(os.path.join(directory, "truth"), row.seconds))
        self.env = env
        h = hashlib.sha256()
        plain = {k: v.replace(directory, "") for k, v in env.items()}
        for text in (args.input_digest, self.before, self.on, repr(sorted(plain.items()))):
            h.update(text.encode() + b"\0")
        self.key = h.hexdigest()

    def kept(self):
        try:
            return measure.read(os.path.join(self.dir, "key")).strip() == self.key
        except OSError:
            return False

    def start(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(os.path.join(self.dir, "in"))
        scripts = {"before.sh": self.before, "on.sh": self.on}
        for name, text in scripts.items():
            with open(os.path.join(self.dir, "in", name), "w") as f:
                f.write(text)
        files = [os.path.join(self.dir, "in", n) for n in scripts]
        files += [self.args.work, os.path.join(HERE, "in-guest.sh")]
        # A guest that hangs: 60 host seconds for each of its own are more than a slow machine needs.
        timeout = int(self.row.seconds * 60 * max(1, self.scenario.threads / 4) + 900)
        env = dict(os.environ, **self.env)
        self.log = open(os.path.join(self.dir, "log"), "w")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [os.path.join(MACHINE, "guest.sh"), "--kernel", self.args.kernel, "--files", " ".join(files),
             "--out", self.dir, "--timeout", str(timeout), "--", "sh ./before.sh"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, env=env, start_new_session=True)

    def look(self):
        """How far is it? Returns True when it has ended."""
        try:
            found = re.findall(r"^at ([0-9.]+) of", measure.read(self.log.name), re.M)
        except OSError:
            found = []
        if found:
            if self.chase_began is None:
                self.chase_began = time.monotonic()
            self.at = float(found[-1])
        # Not poll(): the CPU time is wanted too. It includes the emulator's.
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if not pid:
            return False
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.log.close()
        if self.process.returncode:
            self.error = f"the guest ended with status {self.process.returncode}"
        elif not os.path.exists(os.path.join(self.dir, "work.result")):
            self.error = "the guest left no result"
        elif self.machine.has_truth and not os.path.exists(os.path.join(self.dir, "truth")):
            self.error = "the emulator wrote no record of accesses"
        if not self.error:
            measure.save(os.path.join(self.dir, "took.json"), {
                "host_seconds": round(time.monotonic() - self.began, 1),
                "host_cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1)})
            with open(os.path.join(self.dir, "key.tmp"), "w") as f:
                f.write(self.key + "\n")
            os.replace(os.path.join(self.dir, "key.tmp"), os.path.join(self.dir, "key"))
        return True

    def stop(self):
        if self.process and self.process.poll() is None:
            # guest.sh and the emulator: they are a session of their own.
            try:
                os.killpg(self.process.pid, signal.SIGTERM)
                self.process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(self.process.pid, signal.SIGKILL)


def left(running, waiting, pace, jobs):
    """Estimate of the seconds until all is done."""
    todo = []
    for r in running:
        if r.chase_began and r.at > 0.5:
            own = (time.monotonic() - r.chase_began) / r.at
        else:
            own = pace
        todo.append(max(0, r.row.seconds - r.at) * own)
    for r in waiting:
        todo.append(GUESS_BOOT + r.row.seconds * pace)
    # The longest may be alone at the end.
    return max(sum(todo) / jobs, max(todo, default=0))


def run_all(runs, jobs):
    """Runs them, JOBS at a time. Those that fail say so in .error."""
    waiting, running, done = list(runs), [], []
    paces = []
    tty = sys.stderr.isatty()
    last = time.monotonic()
    start = last
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                r = waiting.pop(0)
                r.start()
                running.append(r)
            time.sleep(0.5)
            for r in list(running):
                ended = r.look()
                if r.chase_began and r.at > 0.9 * r.row.seconds:
                    pace = (time.monotonic() - r.chase_began) / r.at
                else:
                    pace = None
                if not ended:
                    continue
                running.remove(r)
                done.append(r)
                if r.error:
                    tail = measure.read(r.log.name).splitlines()[-8:]
                    say(f"{r.row.name}: FAILED after {hms(time.monotonic() - r.began)}: {r.error} (log: {shown(r.log.name)})")
                    for line in tail:
                        print(f"    {line}", file=sys.stderr)
                else:
                    if pace:
                        paces.append(pace)
                    say(f"{r.row.name}: done in {hms(time.monotonic() - r.began)}")
            if time.monotonic() - last >= (1 if tty else 30) and (running or waiting):
                last = time.monotonic()
                paced = [(last - r.chase_began) / r.at for r in running if r.chase_began and r.at > 1]
                pace = sum(paces + paced) / len(paces + paced) if paces + paced else GUESS_PER_SECOND
                where = ", ".join(f"{r.row.name} {r.at:.0f} of {r.row.seconds:g} s" if r.chase_began else f"{r.row.name} starts"
                                  for r in running)
                text = (f"{where}; {len(done)} of {len(runs)} rows done after {hms(last - start)}, about "
                        f"{hms(left(running, waiting, pace, jobs))} left")
                if tty:
                    print(f"\r{text[:shutil.get_terminal_size().columns - 1]}\033[K", end="", file=sys.stderr, flush=True)
                else:
                    say(text)
    finally:
        for r in running:
            r.stop()


def differing(a, b):
    """(bytes that differ, bytes) of what two runs of a row left: measurements and the truth."""
    names = {n for d in (a, b) for n in os.listdir(d) if n.startswith("work.") or n in ("truth", "system", "scan", "pghot", "damon")}
    bad = size = 0
    for n in names:
        data = []
        for d in (a, b):
            path = os.path.join(d, n)
            data.append(measure.read_bytes(path) if os.path.exists(path) else b"")
        x, y = data
        size += max(len(x), len(y))
        if x != y:
            bad += abs(len(x) - len(y)) + sum(map(int.__ne__, x, y))
    return bad, size


def compare_twice(args, machine, scenario, rows, base):
    """Runs each row twice. True if all are the same to the byte."""
    pairs = [[Run(args, machine, scenario, r, os.path.join(base, "rows", r.name + n)) for n in ("", ".again")] for r in rows]
    todo = [r for pair in pairs for r in pair if not r.kept()]
    run_all(todo, args.jobs)
    good = True
    for first, second in pairs:
        name = first.row.name
        if first.error or second.error:
            print(f"  {name}: FAILED: {first.error or second.error}")
            good = False
            continue
        bad, size = differing(first.dir, second.dir)
        print(f"  {name}: {bad} of {size} bytes differ between two runs")
        good = good and not bad
    return good


def choose_rows(scenario, wanted):
    names = [x for x in re.split(r"[,\s]+", wanted) if x] if wanted else scenario.rows
    if not names:
        raise spec.SpecError("ROWS names no row")
    seen = []
    for n in names:
        if n not in seen:
            seen.append(n)
    rows = [spec.Row(n, scenario) for n in seen]
    if len({r.name for r in rows}) < len(rows):
        raise spec.SpecError("ROWS has two rows of the same name")
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kernel", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--qemu", default="")
    p.add_argument("--scenario", default="t1")
    p.add_argument("--rows", default="")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--twice", action="store_true")
    p.add_argument("--list", action="store_true")
    args = p.parse_args()

    scenario = spec.Scenario(args.scenario, args.quick)
    rows = choose_rows(scenario, args.rows)
    if args.list:
        for r in rows:
            print(f"{r.name}\t{r.seconds:g} s\t{r.title}")
        return 0
    machine = machines.Machine(args.qemu)
    args.input_digest = digest_of(args.kernel, args.work, machine.binary, os.path.join(HERE, "in-guest.sh"),
                                  os.path.join(MACHINE, "guest.sh"), os.path.join(MACHINE, "guest-init"))
    base = os.path.join(args.out, scenario.name + ("-quick" if args.quick else ""))
    if args.twice:
        return 0 if compare_twice(args, machine, scenario, rows, base) else 1
    runs = [Run(args, machine, scenario, r, os.path.join(base, "rows", r.name)) for r in rows]
    todo = [r for r in runs if not r.kept()]
    for line in [scenario.title] + scenario.describe():
        say(line)
    kept = [r.row.name for r in runs if r not in todo]
    if kept:
        say(f"nothing changed since they were run: {' '.join(kept)} (to run them again, remove {shown(base)}/rows/NAME)")
    if todo:
        # The longest first: so none is left alone for long.
        todo.sort(key=lambda r: -r.row.seconds)
        say(f"runs {' '.join(r.row.name for r in todo)}, {args.jobs} at a time; takes about "
            f"{hms(left([], todo, GUESS_PER_SECOND, args.jobs))}")
        run_all(todo, args.jobs)

    entries, details, failed = [], {}, []
    for r in runs:
        if r.error:
            failed.append({"id": r.row.name, "error": r.error})
            continue
        try:
            entry, detail = measure.row(r.dir, r.row.name, r.row.title, r.row.promoted)
            entry.update(json.loads(measure.read(os.path.join(r.dir, "took.json"))))
        except (OSError, ValueError, KeyError, truth.Damaged) as e:
            say(f"{r.row.name}: FAILED: its results are not as they should be: {e}")
            failed.append({"id": r.row.name, "error": str(e)})
            continue
        entries.append(entry)
        details[r.row.name] = detail
    if not entries:
        die("no row has a result")

    for old in ("result.json", *(f"{n}.{k}" for n in ("latency", "placement", "heat", "tokens") for k in ("png", "svg"))):
        for d in (base, args.out):
            if os.path.exists(os.path.join(d, old)):
                os.unlink(os.path.join(d, old))
    result = {"scenario": scenario.name, "title": scenario.title, "quick": args.quick, "machine": machine.name,
              "S": scenario.S, "T": scenario.T, "scale": scenario.vars, "order": report.orders(entries, scenario),
              "rows": entries, "failed": failed}
    measure.save(os.path.join(base, "result.json"), result)
    pictures = report.pictures(entries, details, scenario, base)
    for name in ["result.json"] + [f"{n}.{k}" for n in pictures for k in ("png", "svg")]:
        shutil.copy(os.path.join(base, name), os.path.join(args.out, name))
    print(report.text(entries, scenario))
    for f in failed:
        print(f"  {f['id']}: FAILED: {f['error']}")
    print()
    print("  " + "  ".join([shown(os.path.join(args.out, "result.json"))] +
                           [f"{shown(os.path.join(args.out, n))}.png (.svg)" for n in pictures]))
    return 1 if failed else 0


def interrupted(signum, frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGHUP, interrupted)
    try:
        sys.exit(main())
    except spec.SpecError as e:
        die(e)
    except KeyboardInterrupt:
        say("interrupted; rows that were finished are kept")
        sys.exit(130)
