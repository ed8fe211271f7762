#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""ibs.py [--only NAME] [--statistics] QEMU ELF: runs the program in ibs/ on
machines with different capabilities, and judges what its samples say.

TAP on stdout, one series over all machines. Exit status 0 if all is ok."""

import argparse
import math
import re
import shlex
import subprocess
import sys

MB = 1 << 20
ZEN3 = 0x3ff
ZEN4 = 0xbff
ZEN5 = 0x81bff
ZEN6 = 0xdfbff

# Name, -cpu's features, what the leaf says, what the units can do
MACHINES = [
    ("zen6", "ibs-preset=zen6", ZEN6, ZEN6),
    ("zen5", "ibs-preset=zen5", ZEN5, ZEN5),
    ("zen4", "ibs-preset=zen4", ZEN4, ZEN4),
    ("zen3", "ibs-preset=zen3", ZEN3, ZEN3),
    ("zen6-no-dis", "ibs-preset=zen6,ibs-dis=off", ZEN6 & ~(1 << 13), ZEN6 & ~(1 << 13)),
    ("zen6-no-filters", "ibs-preset=zen6,ibs-rip63=off,ibs-op-ldlat=off,ibs-stream-store=off",
     ZEN6 & ~(1 << 12 | 1 << 15 | 1 << 16), ZEN6 & ~(1 << 12 | 1 << 15 | 1 << 16)),
    ("zen3-small-counter", "ibs-preset=zen3,ibs-op-cnt-ext=off,ibs-rdwr-op-cnt=off",
     ZEN3 & ~(1 << 3 | 1 << 6), ZEN3 & ~(1 << 3 | 1 << 6)),
    ("memprof-only", "ibs=on,extapic=on,ibs-avail=on,ibs-memprof=on", 1 | 1 << 18, 1 | 1 << 18),
    ("single-bits", "ibs-preset=zen4,ibs-op-data4=on,ibs-brn-trgt=off,ibs-fetch-sam=off",
     (ZEN4 | 1 << 10) & ~(1 << 5 | 1 << 1), (ZEN4 | 1 << 10) & ~(1 << 5 | 1 << 1)),
    # Without a leaf that is valid: the first processors with IBS
    ("no-leaf", "ibs=on,extapic=on,min-xlevel=0x8000001b", 0, 6),
]

# Name, arguments, what the program is told
MODES = {
    "plain": (["-accel", "tcg,thread=multi"], "big=1"),
}
# Set by main() when the emulator has a memory model
MODEL_MODES = {
    "fast": (["-accel", "tcg,thread=multi", "-object", "memory-model,id=mm,prefetch=off"], "model=1"),
    "time": (["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off,lockstep=1000",
              "-object", "memory-model,id=mm,prefetch=off"], "model=1 stall=1"),
}


def gamma_q(a, x):
    """The regularized upper incomplete gamma function."""
    if x <= 0:
        return 1.0
    front = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1.0 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return 1.0 - front * total
    tiny = 1e-300
    b = x + 1 - a
    c = 1 / tiny
    d = 1 / b
    h = d
    for i in range(1, 100000):
        an = -i * (i - a)
        b += 2
        d = an * d + b
        d = 1 / (d if abs(d) > tiny else tiny)
        c = b + an / c
        c = c if abs(c) > tiny else tiny
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front * h


def chi_square(truth, samples):
    """Statistic, degrees of freedom, probability of a worse one by chance."""
    pairs = [(t, s) for t, s in zip(truth, samples) if t]
    scale = sum(s for _, s in pairs) / sum(t for t, _ in pairs)
    stat = sum((s - t * scale) ** 2 / (t * scale) for t, s in pairs)
    return stat, len(pairs) - 1, gamma_q((len(pairs) - 1) / 2, stat / 2)


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0
        self.skipped = 0

    def result(self, good, text):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} {text}", flush=True)

    def note(self, text):
        print(f"# {text}", flush=True)


def judge(tap, where, unit, what, taken, truth, samples):
    got = sum(samples)
    if what == "period":
        # 4 ops a turn; the next count starts at 64 on the average.
        expected = 4 * truth[0] / (20000 - 64)
        error = taken / expected - 1
        tap.result(abs(error) < 0.01, f"{where}: {unit}: period: {taken} samples, {expected:.1f} expected, error {error:+.3%}")
        return
    stat, freedom, p = chi_square(truth, samples)
    enough = got >= 80000
    text = f"{where}: {unit}: {what}: {got} samples, chi-square {stat:.1f} of {freedom} degrees of freedom, p {p:.3f}"
    if what.startswith("block"):
        # The first access of a block must not get more than its share.
        share = samples[0] * len(samples) / got - 1
        text += f", first access {share:+.2%}"
    if what == "block":
        # After an interrupt the loop goes on from its start, since interrupts
        # come between blocks. The next sample's place is then one of 127, and
        # each of ten ops has 12 or 13 of those: no more even than that.
        most = max(abs(s * len(samples) / got - 1) for s in samples)
        tap.result(enough and most < 13 / 12 - 1 + 0.025, text + f", largest deviation {most:.2%}")
        return
    # Few and fixed runs (-seed): one in 10000 would be bad luck.
    tap.result(enough and p > 1e-4, text)


def qemu_command(args, features, mode_args, line):
    nodes = []
    for n, (start, cpu) in enumerate(((0, 0), (256, 1), (512, None))):
        size = 256 if n < 2 else 512
        nodes += ["-object", f"memory-backend-ram,id=m{n},size={size}M"]
        numa = f"node,nodeid={n},memdev=m{n}"
        numa += f",cpus={cpu}" if cpu is not None else ""
        nodes += ["-numa", numa + f",initiator={cpu if cpu is not None else 0}"]
        assert start < 1024
    for src in (0, 1):
        for dst, latency in enumerate((90, 110, 250) if src == 0 else (110, 90, 250)):
            nodes += ["-numa", f"hmat-lb,initiator={src},target={dst},hierarchy=memory,data-type=access-latency,latency={latency}",
                      "-numa", f"hmat-lb,initiator={src},target={dst},hierarchy=memory,data-type=access-bandwidth,bandwidth=200G"]
    return shlex.split(args.qemu) + [
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "q35,smm=off,hmat=on", "-cpu", f"EPYC-Milan,{features}",
        "-smp", "2,sockets=2,maxcpus=2", "-m", "1024", "-seed", "1", *nodes, *mode_args,
        "-debugcon", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
        "-kernel", args.elf, "-append", line]


def run(args, tap, name, features, leaf, caps, mode):
    mode_args, told = args.modes[mode]
    where = f"{name}, {mode}"
    line = f"caps={caps:#x} leaf={leaf:#x} near={64 * MB:#x} far={272 * MB:#x} ext={528 * MB:#x} {told}"
    if args.statistics and name == "zen6" and mode != "time":
        line += " statistics=1"
    command = qemu_command(args, features, mode_args, line)
    if args.verbose:
        tap.note(shlex.join(command))
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=args.timeout, check=False)
    except subprocess.TimeoutExpired:
        tap.result(False, f"{where}: stopped after {args.timeout} s")
        return
    plan = None
    seen = 0
    data = None
    for text in done.stdout.splitlines():
        if m := re.match(r"(not ok|ok) (\d+) (.*)", text):
            seen += 1
            tap.skipped += "# SKIP" in m[3]
            tap.result(m[1] == "ok", f"{where}: {m[3]}")
        elif m := re.match(r"1\.\.(\d+)$", text):
            plan = int(m[1])
        elif m := re.match(r"# data (\S+) (\S+) taken (\d+) others (\d+)", text):
            data = (m[1], m[2], int(m[3]), [], [])
        elif m := re.match(r"# page \d+ (\d+) (\d+)", text):
            data[3].append(int(m[1]))
            data[4].append(int(m[2]))
        elif text == "# end":
            judge(tap, where, *data)
        elif text.startswith("#"):
            tap.note(text[2:])
        elif text.startswith("Bail out!"):
            tap.note(text)
    # isa-debug-exit: twice the value and one
    whole = plan is not None and plan == seen and done.returncode in (1, 3)
    if not whole:
        for text in done.stderr.splitlines()[-5:]:
            tap.note(text)
    tap.result(whole, f"{where}: came to its end")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="machines whose name begins so")
    parser.add_argument("--mode", default="", help="this mode only")
    parser.add_argument("--statistics", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--timeout", type=int, default=600)
    parser.add_argument("qemu")
    parser.add_argument("elf")
    args = parser.parse_args()
    helped = subprocess.run(shlex.split(args.qemu) + ["-object", "help"], stdout=subprocess.PIPE, text=True, check=True)
    args.modes = dict(MODES)
    if "memory-model" in helped.stdout:
        args.modes.update(MODEL_MODES)
    tap = Tap()
    print("TAP version 13")
    for name, features, leaf, caps in MACHINES:
        for mode in args.modes:
            if not name.startswith(args.only) or (args.mode and mode != args.mode):
                continue
            # Without a counter of ops it counts cycles, and those differ.
            if not caps & 1 << 4 and not caps & 1 << 18 and mode != "plain":
                continue
            run(args, tap, name, features, leaf, caps, mode)
    print(f"1..{tap.count}")
    print(f"{tap.count - tap.failed - tap.skipped} passed, {tap.failed} failed, {tap.skipped} skipped")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
