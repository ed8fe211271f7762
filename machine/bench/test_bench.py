# SPDX-License-Identifier: GPL-2.0
"""Tests of the bench's arithmetic: python3 -m unittest discover -s machine/bench"""
import io
import os
import struct
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import spec  # noqa: E402
import truth  # noqa: E402

MS = 1000000
SLOW = 2
NODES = "0 0 1000\n1 1000 2000\n2 2000 9000\n"


def block(end, records):
    """An interval's block as the emulator writes it; records: (pfn, cpu, node, r, w, rm, wm)."""
    return struct.pack("<IIQII", 0x31544d51, 2, end, len(records), 0) + \
        b"".join(struct.pack("<IHHIIII", *r) for r in records)


def look(tsc, changes, seconds=0.0):
    return struct.pack("<IIQQd", 0x50414d50, len(changes), tsc, tsc + 1, seconds) + \
        b"".join(struct.pack("<II", *c) for c in changes)


class Files(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def file(self, name, data):
        path = os.path.join(self.tmp.name, name)
        with open(path, "wb" if isinstance(data, bytes) else "w") as f:
            f.write(data)
        return path

    def join(self, blocks, looks, pages, begin, end, bins):
        t = truth.read_truth(self.file("truth", b"".join(blocks)))
        return truth.join(t, truth.read_looks(self.file("pages", b"".join(looks))), pages, begin, end, bins)


class Join(Files):
    def test_counts_and_nodes(self):
        # Page 0 on node 2, page 1 on node 0; frame 77 is somebody else's.
        bins = self.join(
            [block(0, []), block(10, [(2000, 0, 2, 5, 1, 4, 1), (5, 1, 0, 7, 0, 2, 0), (77, 0, 0, 100, 0, 100, 0)])],
            [look(0, [(0, 2000), (1, 5)])], 2, 0, 10, 1)
        self.assertEqual(list(bins[0].accesses), [6, 7])
        self.assertEqual(bins[0].misses, {2: 5, 0: 2})
        self.assertEqual(bins[0].by_node, {2: 6, 0: 7})

    def test_first_block_has_no_start(self):
        # What happened before the first end of an interval began at a time unknown.
        bins = self.join([block(10, [(2000, 0, 2, 9, 0, 9, 0)]), block(20, [(2000, 0, 2, 1, 0, 1, 0)])],
                         [look(0, [(0, 2000)])], 1, 0, 20, 1)
        self.assertEqual(list(bins[0].accesses), [1])

    def test_moves_within_an_interval(self):
        # Both frames are page 0's in the interval in which it moves, the new one alone later.
        bins = self.join(
            [block(0, []),
             block(10, [(2000, 0, 2, 3, 0, 3, 0), (6, 0, 0, 4, 0, 4, 0)]),
             block(20, [(2000, 0, 2, 50, 0, 50, 0), (6, 0, 0, 2, 0, 2, 0)])],
            [look(0, [(0, 2000)]), look(9, [(0, 6)]), look(20, [])], 1, 0, 20, 2)
        self.assertEqual([list(b.accesses) for b in bins], [[7], [2]])
        self.assertEqual(bins[0].misses, {2: 3, 0: 4})
        self.assertEqual(bins[1].misses, {0: 2})

    def test_frame_is_taken_over(self):
        # Page 1 gets the frame that page 0 left.
        bins = self.join(
            [block(0, []), block(10, [(2000, 0, 2, 1, 0, 0, 0)]), block(20, [(2000, 0, 2, 8, 0, 0, 0)]),
             block(30, [(2000, 0, 2, 16, 0, 0, 0)])],
            [look(0, [(0, 2000), (1, 2001)]), look(9, [(0, 6), (1, 2000)]), look(20, [])], 2, 0, 30, 1)
        self.assertEqual(bins[0].accesses[1], 25)
        self.assertEqual(bins[0].accesses[0], 0)

    def test_page_comes_back(self):
        bins = self.join(
            [block(0, [])] + [block(10 * i, [(2000, 0, 2, 1, 0, 0, 0)]) for i in range(1, 6)],
            [look(0, [(0, 2000)]), look(10, [(0, 6)]), look(20, [(0, 2000)]), look(30, [])], 1, 0, 50, 5)
        # In the second interval it came back, so it was there for a part of it.
        self.assertEqual([b.accesses[0] for b in bins], [1, 1, 1, 1, 1])

    def test_out_of_range(self):
        bins = self.join([block(10 * i, [(2000, 0, 2, 1, 0, 1, 0)]) for i in range(10)],
                         [look(0, [(0, 2000)])], 1, 20, 50, 3)
        self.assertEqual([b.accesses[0] for b in bins], [1, 1, 1])

    def test_cut_off(self):
        whole = block(0, []) + block(10, [(2000, 0, 2, 1, 0, 1, 0)])
        for cut in (1, 23, 24, 30, 47):
            with self.subTest(cut=cut):
                blocks = list(truth.read_truth(self.file("t", whole + block(20, [(1, 0, 0, 1, 0, 0, 0)])[:cut])))
                self.assertEqual([e for e, _ in blocks], [0, 10])

    def test_damaged(self):
        with self.assertRaises(truth.Damaged):
            list(truth.read_truth(self.file("t", block(0, []) + b"x" * 24)))
        with self.assertRaises(truth.Damaged):
            truth.read_looks(self.file("p", look(0, [(0, 1)])[:-1]))
        with self.assertRaises(truth.Damaged):
            truth.read_looks(self.file("p", b"x" * 32))

    def test_large(self):
        # A million records must not take minutes.
        pages = 16384
        records = struct.Struct("<IHHIIII")
        body = b"".join(records.pack(2000 + p, 0, 2, 1, 0, 1, 0) for p in range(pages))
        blocks = [block(0, [])] + [struct.pack("<IIQII", 0x31544d51, 2, 10 * i, pages, 0) + body for i in range(1, 65)]
        t = time.process_time()
        bins = self.join(blocks, [look(0, [(p, 2000 + p) for p in range(pages)])], pages, 0, 640, 60)
        self.assertLess(time.process_time() - t, 10)
        self.assertEqual(sum(map(sum, (b.accesses for b in bins))), 64 * pages)


class Sums(unittest.TestCase):
    def test_hottest(self):
        self.assertEqual(truth.hottest([0, 9, 1, 5, 0], 2), {1, 3})
        # What is never accessed is not hot, however few others there are.
        self.assertEqual(truth.hottest([0, 9, 1, 5, 0], 4), {1, 2, 3})
        self.assertEqual(truth.hottest([0, 0], 1), set())

    def test_over(self):
        # The published figures: 23.9 and 11.6 GB on DRAM, 16 GB hot.
        self.assertAlmostEqual(measure.over(23.9, 16), 0.49, places=2)
        self.assertAlmostEqual(measure.over(11.6, 16), -0.275, places=3)
        self.assertIsNone(measure.over(5, 0))

    def test_seconds_to(self):
        self.assertAlmostEqual(measure.seconds_to([(0, 0.0), (1, 0.5), (2, 1.0)], 0.95), 1.9)
        self.assertEqual(measure.seconds_to([(0, 1.0)], 0.95), 0)
        self.assertIsNone(measure.seconds_to([(0, 0.0), (9, 0.94)], 0.95))
        # It counts that it was there, although it did not stay.
        self.assertEqual(measure.seconds_to([(0, 0.0), (1, 0.95), (2, 0.1)], 0.95), 1)

    def test_median_or_none(self):
        self.assertEqual(measure.median_or_none([3, 1, 2]), 2)
        self.assertIsNone(measure.median_or_none([None, None, 1]))
        self.assertEqual(measure.median_or_none([None, 1, 2]), 2)

    def test_rate(self):
        samples = [(0, 0), (1, 10_000_000), (2, 30_000_000)]
        self.assertAlmostEqual(measure.rate(samples, 2, 1, 2), 100)
        self.assertEqual(measure.rate_series(samples, 2, 1), [(1, 200.0), (2, 100.0)])
        self.assertIsNone(measure.rate(samples, 2, 5, 9))

    def test_counters(self):
        self.assertEqual(measure.counters("a - b + c", {"a": 5, "b": 2}), 3)

    def test_set_times(self):
        samples = [(0.0, 0, 0), (1.0, 0, 0), (1.0, 0, 1), (2.0, 0, 1), (3.0, 0, 0)]
        self.assertEqual(measure.set_times(samples), [(0.0, 1.0), (1.0, 3.0)])

    def test_placement(self):
        def a_look(seconds, changes):
            return truth.Look(0, 0, seconds, [c[0] for c in changes], [c[1] for c in changes])

        place = measure.Placement(
            [a_look(0, [(0, 2000), (1, 2001), (2, 5)]), a_look(1, [(0, 10), (1, 1500)]), a_look(2, [(1, 2500), (0, 11)])],
            truth.Nodes(NODES), SLOW)
        # Moves from one DRAM node or frame to another are neither promotions nor demotions.
        self.assertEqual((place.promoted, place.demoted), (2, 1))
        self.assertEqual(place.curves({0}), [(0, 0, 1), (1, 1, 2), (2, 1, 1)])

    def test_cpu(self):
        before = {"kdamond.0/50": 1_000_000_000, "irq": 0, "kswapd0/30": 5}
        after = {"kdamond.0/50": 3_500_000_000, "irq": 20_000_000, "softirq": 10_000_000, "kswapd0/30": 5, "kthreadd/2": 9}
        self.assertEqual(measure.cpu_seconds(before, after), {"kdamond": 2.5, "irq": 0.03, "kswapd": 0})


class Scale(unittest.TestCase):
    def test_published_t1(self):
        v = spec.scale(256, 4, 240, 65536, 262144)
        self.assertEqual(v["seconds"], 60)
        self.assertEqual(v["scan_size_mb"], 4)
        self.assertEqual(v["damon_quota"], 2 << 20)
        self.assertEqual(v["damon_regions"], 391)
        # There: 64 GB in steps of 256 MB, 100 ms to 234 ms between them. Here the same
        # times, and the kernel divides by the 64 steps of 4 MB that 256 MB have.
        self.assertEqual(v["scan_period_min_ms"] // 64, 100)
        self.assertEqual(v["scan_period_max_ms"] // 64, 234)

    def test_scan_speed_follows(self):
        # MB of scan per second, relative to the size of the program and the length of the run.
        for s, t in ((256, 4), (256, 16), (512, 4), (100, 3)):
            v = spec.scale(s, t, 240, 65536, 262144)
            period = v["scan_period_min_ms"] / 1000 / max(1, v["buffer_mb"] / v["scan_size_mb"])
            self.assertAlmostEqual(v["scan_size_mb"] / period / (2560 / (s / t)), 1, delta=0.02)

    def test_expressions(self):
        names = {"S": 256, "T": 4, "k": 64}
        self.assertEqual(spec.expand("a {65536/S} b {round(1024/k)+1}", names), "a 256 b 17")
        for bad in ("{x}", "{__import__('os')}", "{S.real}", "{1/0}", "{}", "{'a'}", "{max(S)}"):
            with self.subTest(bad=bad), self.assertRaises(spec.SpecError):
                spec.expand(bad, names)
        # A rate of nothing is another thing than a low rate.
        with self.assertRaises(spec.SpecError):
            spec.expand("{1/k}", names)


class Specs(Files):
    def test_all_files(self):
        for s in spec.names_in("scenarios"):
            for quick in (False, True):
                scenario = spec.Scenario(s, quick)
                self.assertTrue(scenario.describe())
                for r in spec.names_in("rows"):
                    before, on = spec.Row(r, scenario).scripts(scenario)
                    self.assertIn("measure ", before)
                    self.assertNotIn("{", before + on)
                for r in scenario.rows:
                    self.assertIn(r, spec.names_in("rows"))

    def parse_row(self, text):
        return spec.parse(self.file("row", text), spec.ROW_WORDS, spec.ROW_NEEDS)

    def test_broken(self):
        for text, said in (("nme x\n", "no keyword"), ("set /x 1\n", "missing"), ("name a\nname b\n", "second time"),
                           (" name a\n", "continues none")):
            with self.subTest(text=text), self.assertRaisesRegex(spec.SpecError, said):
                self.parse_row(text)
        for text in ("/proc/x", "relative 1", '/x "1"', "/x $(reboot)", "/x `reboot`"):
            with self.subTest(text=text), self.assertRaises(spec.SpecError):
                spec.Row.assignment(text, {})
        self.assertEqual(spec.Row.assignment("$A/x  a b", {}), ("$A/x", "a b"))
        self.assertEqual(spec.Row.step("sleep 1.5", {}), ("sleep", "1.5"))

    def test_continued(self):
        self.assertEqual(self.parse_row("# c\nname\ta\n\tb\n\n  # c\n"), {"name": ["a b"]})

    def test_unknown(self):
        for call in (lambda: spec.Scenario("../rows/N2"), lambda: spec.Scenario("none"),
                     lambda: bench.choose_rows(spec.Scenario("t1"), "B0,none"), lambda: bench.choose_rows(spec.Scenario("t1"), ",")):
            with self.assertRaises(spec.SpecError):
                call()
        self.assertEqual([r.name for r in bench.choose_rows(spec.Scenario("t1"), "B0, N2,B0")], ["B0", "N2"])


class WholeRow(Files):
    """A run of ten seconds as the guest and the emulator leave it."""

    def test_row(self):
        pages, hot = 8, [1, 4]
        ms = [i * 100 for i in range(101)]
        tsc0 = 5000 * MS

        def frame(page, t):
            # Page 1 is promoted at 4 s, page 4 at 6 s, cold page 0 at 5 s.
            return {1: 4000, 4: 6000, 0: 5000}.get(page, 10 ** 9) <= t and 10 + page or 2000 + page

        self.file("work.result", "mode chase\npages 8\nhot_pages 2\nsets 1\nthreads 1\nslow_node 2\nsystem_s 0.250\nuser_s 9\n")
        self.file("work.samples", "# head\n" + "".join(
            f"{t / 1000:.4f} {tsc0 + t * MS} {t * 4000 if t <= 6000 else 24000000 + (t - 6000) * 10000} 0\n" for t in ms))
        looks, seen = b"", {}
        for t in range(0, 10001, 1000):
            changes = [(p, frame(p, t)) for p in range(pages) if seen.get(p) != frame(p, t)]
            seen.update(dict(changes))
            looks += look(tsc0 + t * MS, changes, t / 1000)
        self.file("work.pages", looks)
        self.file("work.ranges", NODES)
        # The workload says that pages 2 and 3 were hot. It is not to be believed.
        self.file("work.sets", bytes([0, 0, 1, 1, 0, 0, 0, 0]))
        blocks = block(tsc0 - 100 * MS, [])
        for t in ms:
            recs = [(frame(p, t), 0, 0 if frame(p, t) < 2000 else 2, 100, 0, 90, 0) for p in hot]
            recs.append((frame(7, t), 0, 2, 1, 0, 1, 0))
            blocks += block(tsc0 + t * MS, recs)
        self.file("truth", blocks)
        self.file("work.vmstat-start", "pgpromote_success 5\n")
        self.file("work.vmstat-before", "pgpromote_success 5\npgdemote_kswapd 1\n")
        self.file("work.vmstat-after", "pgpromote_success 8\npgdemote_kswapd 1\n")
        self.file("work.cpu-before", "irq 0\nkmigrated2/9 0\n")
        self.file("work.cpu-after", "irq 10000000\nkmigrated2/9 500000000\n")
        self.file("system", "kernel_version 7.3.4\nslow_node 2\n")
        r, d = measure.row(self.tmp.name, "X", "a row", "pgpromote_success")
        self.assertEqual(r["judged_by"], "truth")
        self.assertEqual(d["hot_sets"], [{1, 4}])
        self.assertEqual(r["hot_share"], 1)
        self.assertEqual(r["over"], 0.5)
        self.assertEqual(r["promoted"], 3)
        self.assertEqual((r["promoted_seen"], r["demoted_seen"]), (3, 0))
        # From half at 5 s to all at 6 s
        self.assertAlmostEqual(r["seconds_to_95"], 5.9)
        self.assertAlmostEqual(r["ns_access"], 100, places=1)
        self.assertAlmostEqual(r["dram_share"], 180 / 181, places=3)
        self.assertEqual(r["promoter_cpu_s"], 0.75)
        self.assertEqual(r["irq_cpu_s"], 0.01)
        text = "\n".join(report.table_t1([r], spec.Scenario("t1")))
        self.assertIn("+50 %", text)
        self.assertIn("5.9 s", text)

        # Without the truth, the workload has to be believed, and that is said.
        os.unlink(os.path.join(self.tmp.name, "truth"))
        r, _ = measure.row(self.tmp.name, "X", "a row", "pgpromote_success")
        self.assertEqual((r["judged_by"], r["hot_share"], r["dram_share"]), ("workload", 0, None))


class Order(unittest.TestCase):
    def test_order(self):
        scenario = spec.Scenario("t1")
        rows = [{"id": "B0", "ns_access": 250, "over": -1}, {"id": "N2", "ns_access": 130, "over": 0},
                {"id": "D3", "ns_access": 110, "over": 0.5}]
        self.assertTrue(all("the same here" in x for x in report.orders(rows, scenario)))
        rows[2]["ns_access"] = 140
        self.assertIn("NOT so", report.orders(rows, scenario)[0])


class Twice(Files):
    def test_differing(self):
        dirs = []
        for name, data in (("a", b"abcd"), ("b", b"abXd")):
            d = os.path.join(self.tmp.name, name)
            os.mkdir(d)
            dirs.append(d)
            for file, text in (("work.samples", data), ("truth", b"1234" if name == "a" else b"123"), ("log", data * 9)):
                with open(os.path.join(d, file), "wb") as f:
                    f.write(text)
        self.assertEqual(bench.differing(*dirs), (2, 8))
        self.assertEqual(bench.differing(dirs[0], dirs[0]), (0, 8))


class Left(unittest.TestCase):
    def test_estimate(self):
        class Waiting:
            class row:
                seconds = 60
        # Four rows, two at a time
        self.assertEqual(bench.left([], [Waiting] * 4, 10, 2), 2 * (bench.GUESS_BOOT + 600))


if __name__ == "__main__":
    sys.stderr = sys.stderr or io.StringIO()
    unittest.main()
