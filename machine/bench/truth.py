# SPDX-License-Identifier: GPL-2.0
"""Who accessed which page of the workload: the emulator's record of accesses by page
frame, joined with the guest's record of which page was in which frame when.

Both may be large (some million records): what is done for each record stays few steps,
most of them in the array and map functions of the interpreter.
"""
import itertools
import os
import struct
import sys
from array import array

TRUTH_MAGIC = 0x31544d51    # "QMT1"
TRUTH_HEAD = struct.Struct("<IIQII")
TRUTH_WORDS = 6             # 32-bit words of a record
LOOK_MAGIC = 0x50414d50     # "PMAP"
LOOK_HEAD = struct.Struct("<IIQQd")


class Damaged(Exception):
    pass


def words(data):
    a = array("I")
    assert a.itemsize == 4
    a.frombytes(data)
    if sys.byteorder == "big":
        a.byteswap()
    return a


def read_truth(path):
    """Yields (ns at the end of the interval, records as 32-bit words)."""
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        while True:
            raw = f.read(TRUTH_HEAD.size)
            if not raw:
                return
            # A machine that was switched off may leave a part of a block at the end.
            if len(raw) < TRUTH_HEAD.size:
                return
            magic, _, end, nr, _ = TRUTH_HEAD.unpack(raw)
            if magic != TRUTH_MAGIC:
                raise Damaged(f"{path}: no block of records at byte {f.tell() - len(raw)}")
            length = nr * TRUTH_WORDS * 4
            if f.tell() + length > size:
                return
            yield end, words(f.read(length))


class Look:
    """A look at where the workload's pages are."""

    def __init__(self, tsc, tsc_end, seconds, pages, frames):
        self.tsc = tsc
        self.tsc_end = tsc_end
        self.seconds = seconds
        self.pages = pages      # those found elsewhere than before, and
        self.frames = frames    # where


def read_looks(path):
    looks = []
    with open(path, "rb") as f:
        while True:
            raw = f.read(LOOK_HEAD.size)
            if len(raw) < LOOK_HEAD.size:
                return looks
            magic, nr, tsc, tsc_end, seconds = LOOK_HEAD.unpack(raw)
            if magic != LOOK_MAGIC:
                raise Damaged(f"{path}: no look at byte {f.tell() - len(raw)}")
            data = f.read(nr * 8)
            if len(data) != nr * 8:
                raise Damaged(f"{path}: ends early")
            changes = words(data)
            looks.append(Look(tsc, tsc_end, seconds, changes[0::2], changes[1::2]))


class Nodes:
    """Page frames of nodes: "node first end" lines."""

    def __init__(self, text):
        self.ranges = [tuple(map(int, line.split())) for line in text.splitlines()]

    def of(self, frame):
        for nid, start, end in self.ranges:
            if start <= frame < end:
                return nid
        return -1


class Owners:
    """frame -> page at a time that only goes forward.

    During an interval a page may have been in the frame where the look before found it,
    and in that where the look after does. A frame that a page has left is its no more
    from the look on that found it elsewhere: others get it then.
    """

    def __init__(self, looks):
        self.looks = looks
        self.next = 0
        self.page_of = {}
        self.frame_of = {}
        self.left = []      # (time of the look, frame, page)

    def during(self, start, end):
        # Looks up to the first that begins after the interval
        while self.next < len(self.looks) and (self.next == 0 or self.looks[self.next - 1].tsc < end):
            look = self.looks[self.next]
            for page, frame in zip(look.pages, look.frames):
                old = self.frame_of.get(page)
                if old is not None:
                    self.left.append((look.tsc_end, old, page))
                self.frame_of[page] = frame
                self.page_of[frame] = page
            self.next += 1
        if self.left and self.left[0][0] <= start:
            for time, frame, page in self.left:
                # Unless it came back, or another page came there
                if time <= start and self.page_of.get(frame) == page and self.frame_of[page] != frame:
                    del self.page_of[frame]
            self.left = [x for x in self.left if x[0] > start]
        return self.page_of


class Bin:
    """A part of the run: accesses of each page, and who served what missed the caches."""

    def __init__(self, start, end, nr_pages):
        self.start, self.end = start, end           # ns of the machine's clock
        self.accesses = array("Q", bytes(8 * nr_pages))
        self.covered = 0                            # ns of the intervals that it got
        self.misses = {}                            # node -> last-level misses on the workload's pages
        self.by_node = {}                           # node -> accesses to them, wherever they were served


def join(blocks, looks, nr_pages, begin, end, nr_bins):
    """Bins of equal length from BEGIN to END (clock of the machine, ns). An interval of
    the record counts for the bin that its middle is in; those that are not between
    BEGIN and END are left out."""
    step = (end - begin) / nr_bins
    bins = [Bin(begin + i * step, begin + (i + 1) * step, nr_pages) for i in range(nr_bins)]
    owners = Owners(looks)
    before = None
    for at, rec in blocks:
        start, before = before, at
        if start is None or (start + at) / 2 < begin or (start + at) / 2 >= end:
            continue
        page_of = owners.during(start, at)
        b = bins[min(nr_bins - 1, int(((start + at) / 2 - begin) / step))]
        b.covered += at - start
        accesses, misses, by_node = b.accesses, b.misses, b.by_node
        # cpu is in the lower, node in the upper half of the second word
        for page, where, reads, writes, read_misses, write_misses in zip(
                map(page_of.get, rec[0::6]), rec[1::6], rec[2::6], rec[3::6], rec[4::6], rec[5::6]):
            if page is not None:
                accesses[page] += reads + writes
                where >>= 16
                by_node[where] = by_node.get(where, 0) + reads + writes
                misses[where] = misses.get(where, 0) + read_misses + write_misses
    return bins


def total(bins, nr_pages):
    out = array("Q", bytes(8 * nr_pages))
    for b in bins:
        out = array("Q", map(int.__add__, out, b.accesses))
    return out


def hottest(accesses, n):
    """The N pages with the most accesses; fewer if the others have none."""
    order = sorted(range(len(accesses)), key=accesses.__getitem__, reverse=True)
    return set(itertools.takewhile(lambda p: accesses[p], order[:n]))
