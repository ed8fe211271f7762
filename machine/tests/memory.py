#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does the modelled machine's memory behave as configured? Prints TAP.

usage: memory.py [--kernel BZIMAGE-OR-BUILDDIR] [TEST...]

latency	what a load costs, for each CPU node and memory node, with 1, 2 and 4
	threads, is what was configured, within 3 %
bandwidth
	threads that read as fast as they can get what a node gives, within 3 %
repeat	a second run gives the same bytes: output, kernel log and truth file; also
	with other load on the host, and when the process is stopped now and then
truth	what the file says that a program read is what it read
"""

import argparse
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

MACHINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Other numbers than the defaults, all different: mixed up ones would show.
LATENCY = (80, 130, 270)
FAST, SLOW, SCALE = 186 * 2**30, 37 * 2**30, 16

number = failed = 0


def result(ok, name, text=''):
    global number, failed
    number += 1
    failed += not ok
    print(f'{"ok" if ok else "not ok"} {number} {name}' + (f' # {text}' if text else ''), flush=True)


def guest(args, tmp, name, command, disturb=None, **env):
    """Runs command in a guest of the modelled machine; returns its output."""
    out = os.path.join(tmp, name)
    cmd = [os.path.join(MACHINE, 'guest.sh'), '--files', os.path.join(tmp, 'memory'), '--out', out]
    if args.kernel:
        cmd += ['--kernel', args.kernel]
    env = {'MACHINE': 'model', 'LATENCY': ','.join(map(str, LATENCY)), 'TIMEOUT': '1800', **env}
    with open(out + '.stderr', 'w+') as err:
        with subprocess.Popen(cmd + ['--', command], stdout=subprocess.PIPE, stderr=err, text=True,
                              env={**os.environ, **env}) as p:
            if disturb:
                disturb(p)
            stdout = p.communicate()[0]
        if p.returncode:
            err.seek(0)
            sys.stderr.write(err.read())
            print(f'Bail out! the guest failed with status {p.returncode}')
            sys.exit(1)
    return stdout


def off(value, wanted):
    return abs(value - wanted) / wanted


def test_latency(args, tmp):
    # 128 MB of a node for the kernel and the test, and four buffers of 4 MB
    out = guest(args, tmp, 'latency', './memory latency 4096 200000 1 2 4',
                CPUS='8', MEM_MB='256,256,256')
    seen = 0
    for cpu, node, threads, ns in re.findall(r'^latency (\d+) (\d+) (\d+) ([\d.]+)$', out, re.M):
        wanted = LATENCY[2 if node == '2' else 0 if cpu == node else 1]
        seen += 1
        result(off(float(ns), wanted) <= 0.03, f'latency: CPU node {cpu}, memory node {node}, {threads} threads',
               f'{ns} ns, configured {wanted}')
    result(seen == 2 * 3 * 3, 'latency: all pairs measured', f'{seen} of 18')


def test_bandwidth(args, tmp):
    out = guest(args, tmp, 'bandwidth', './memory bandwidth 4096 20 1 2 4 8', CPUS='8', MEM_MB='256,256,256')
    got = {(int(n), int(t)): float(mb) * 1e6 for n, t, mb in
           re.findall(r'^bandwidth (\d+) (\d+) ([\d.]+)$', out, re.M)}
    result(len(got) == 12, 'bandwidth: all measured', f'{len(got)} of 12')
    for node in 0, 1, 2:
        limit = (SLOW if node == 2 else FAST) / SCALE
        for threads in 1, 2, 4, 8:
            # One gets less than there is; eight of them more than there is, if they could.
            value = got.get((node, threads), 0)
            ok = 0 < value <= limit * 1.03 and (threads < 8 or off(value, limit) <= 0.03)
            result(ok, f'bandwidth: node {node}, {threads} threads', f'{value / 1e6:.0f} MB/s, limit {limit / 1e6:.0f}')


def qemu_of(popen):
    """The process id of the QEMU that was started below popen, or None."""
    children = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat') as f:
                comm, rest = f.read().split('(', 1)[1].rsplit(')', 1)
        except OSError:
            continue
        children.setdefault(int(rest.split()[1]), []).append((int(pid), comm))
    todo = [popen.pid]
    while todo:
        for pid, comm in children.get(todo.pop(), []):
            if comm.startswith('qemu-system'):
                return pid
            todo.append(pid)
    return None


def stop_and_go(popen):
    stops = 0
    while popen.poll() is None:
        time.sleep(0.7)
        pid = qemu_of(popen)
        if pid:
            try:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.4)
                os.kill(pid, signal.SIGCONT)
                stops += 1
            except ProcessLookupError:
                break
    print(f'# stopped and continued {stops} times', flush=True)


def load(popen):
    busy = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(2)]
    try:
        popen.wait()
    finally:
        for b in busy:
            b.kill()
            b.wait()


def test_repeat(args, tmp):
    runs = []
    for name, disturb in ('first', None), ('second', None), ('loaded', load), ('stopped', stop_and_go):
        truth = os.path.join(tmp, name + '.truth')
        out = guest(args, tmp, name, './memory latency 4096 100000 2; sort /proc/vmstat; date +%s.%N',
                    disturb, CPUS='4', MEM_MB='256,256,256', TRUTH=truth)
        with open(os.path.join(tmp, name, 'console.log'), 'rb') as f:
            console = f.read()
        with open(truth, 'rb') as f:
            runs.append((name, {'output': out.encode(), 'kernel log': console, 'truth': f.read()}))
    for name, run in runs[1:]:
        for what, data in run.items():
            ref = runs[0][1][what]
            differ = sum(a != b for a, b in zip(ref, data)) + abs(len(ref) - len(data))
            result(differ == 0 and len(data) > 0, f'repeat: {name} run, {what}',
                   f'{differ} of {len(ref)} bytes differ')


def read_truth(file):
    """Yields (end_ns, [(pfn, cpu, node, loads, stores, load_misses, store_misses)])."""
    with open(file, 'rb') as f:
        while header := f.read(24):
            magic, _, end, nr, _ = struct.unpack('<IIQII', header)
            assert magic == 0x31544d51, hex(magic)
            data = f.read(24 * nr)
            assert len(data) == 24 * nr
            yield end, list(struct.iter_unpack('<IHHIIII', data))


def test_truth(args, tmp):
    truth = os.path.join(tmp, 'truth')
    loads = 1000000
    out = guest(args, tmp, 'truthrun', f'./memory latency 4096 {loads} 2', CPUS='4', MEM_MB='256,256,256',
                TRUTH=truth, MODEL='truth-interval=100')
    blocks = list(read_truth(truth))
    ends = [end for end, _ in blocks]
    result(len(blocks) > 5 and all(b - a == 100000000 for a, b in zip(ends[:-2], ends[1:-1])),
           'truth: a block each 100 ms', f'{len(blocks)} blocks')
    misses = sum(r[5] for _, records in blocks for r in records if r[2] == 2)
    wanted = 2 * 2 * loads    # two threads on either CPU node
    # The chains are made on node 2 as well, which takes a miss or two a line.
    lines = 4 * 4096 * 1024 // 64
    result(wanted <= misses <= wanted + 6 * lines, 'truth: load misses on node 2',
           f'{misses}, of which {wanted} by the chase')
    frames = {r[0] for _, records in blocks for r in records if r[2] == 2}
    result(all(0x20000 <= pfn < 0x30000 for pfn in frames), 'truth: node 2 is where it is', f'{len(frames)} frames')
    cpus = {r[1] for _, records in blocks for r in records}
    result(cpus == {0, 1, 2, 3}, 'truth: all vCPUs appear', str(sorted(cpus)))
    result('latency 1 2 2' in out, 'truth: the program ran')


def main():
    tests = {n[5:]: f for n, f in globals().items() if n.startswith('test_')}
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--kernel')
    p.add_argument("test", nargs="*", metavar="TEST", help=", ".join(tests))
    args = p.parse_args()
    print('TAP version 13')
    with tempfile.TemporaryDirectory(prefix='pghot-memory.') as tmp:
        subprocess.run(['gcc', '-O2', '-Wall', '-Wextra', '-static', '-pthread', '-o', f'{tmp}/memory',
                        f'{MACHINE}/tests/memory.c'], check=True)
        for name in args.test or tests:
            print(f'# {name}', flush=True)
            tests[name](args, tmp)
    print(f'1..{number}')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
