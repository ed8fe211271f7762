// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what people write into knobs: text to numbers, ranges, and that bad
 * input changes nothing.
 */
#include <kunit/test.h>
#include <linux/memory-tiers.h>
#include <linux/nodemask.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "../internal.h"
#include "random.h"

/* What a value is before a parser that fails. */
#define UNTOUCHED	0x5a5a5a

/* A copy that ends where the text ends: KASAN sees who reads on. */
static char *exact_copy(struct kunit *test, const char *text)
{
	char *copy = kunit_kstrdup(test, text, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	return copy;
}

/* ===== Numbers ===== */

struct number_case {
	const char	*text;
	int		err;
	long long	val;
};

static void number_texts(struct kunit *test)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 }, { "1", 0, 1 }, { "-1", 0, -1 }, { "+7", 0, 7 },
		{ "15\n", 0, 15 }, { "0x10", 0, 16 }, { "0X1f\n", 0, 31 },
		{ "010", 0, 8 }, { "-0", 0, 0 }, { "-0x8", 0, -8 },
		{ "9223372036854775807", 0, LLONG_MAX },
		{ "-9223372036854775808", 0, LLONG_MIN },
		{ "9223372036854775808", -ERANGE }, { "-9223372036854775809", -ERANGE },
		{ "18446744073709551616", -ERANGE }, { "99999999999999999999", -ERANGE },
		{ "0xfffffffffffffffff", -ERANGE },
		{ "", -EINVAL }, { "\n", -EINVAL }, { "\n1", -EINVAL },
		{ "1\n\n", -EINVAL }, { "1\n2", -EINVAL }, { "1\r\n", -EINVAL },
		{ " 1", -EINVAL }, { "1 ", -EINVAL }, { "1 2", -EINVAL },
		{ "\t1", -EINVAL }, { "x", -EINVAL }, { "1x", -EINVAL },
		{ "x1", -EINVAL }, { "0x", -EINVAL }, { "0xg", -EINVAL },
		{ "08", -EINVAL }, { "1.5", -EINVAL }, { "1e3", -EINVAL },
		{ "1k", -EINVAL }, { "1,2", -EINVAL }, { "-", -EINVAL },
		{ "+", -EINVAL }, { "--1", -EINVAL }, { "+-1", -EINVAL },
		{ "- 1", -EINVAL }, { "-\n", -EINVAL }, { "ten", -EINVAL },
		{ "\xff", -EINVAL }, { "1\xff", -EINVAL }, { "%d", -EINVAL },
	};
	long long val, want;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		val = UNTOUCHED;
		want = UNTOUCHED;
		if (!cases[i].err)
			want = cases[i].val;
		KUNIT_EXPECT_EQ_MSG(test,
				    pghot_parse_number(exact_copy(test, cases[i].text), &val),
				    cases[i].err, "text '%s'", cases[i].text);
		KUNIT_EXPECT_EQ_MSG(test, val, want, "text '%s'", cases[i].text);
	}
}

static void range_borders(struct kunit *test)
{
	static const struct number_case cases[] = {
		{ "-5", 0, -5 }, { "0", 0, 0 }, { "12\n", 0, 12 },
		{ "-6", -ERANGE }, { "13", -ERANGE },
		{ "4294967296", -ERANGE }, { "4294967297", -ERANGE },
		{ "-4294967296", -ERANGE }, { "9223372036854775807", -ERANGE },
		{ "-9223372036854775808", -ERANGE }, { "9223372036854775808", -ERANGE },
		{ "", -EINVAL }, { "\n", -EINVAL }, { "12x", -EINVAL }, { "a", -EINVAL },
	};
	long long val;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_EXPECT_EQ_MSG(test,
				    pghot_parse_range(exact_copy(test, cases[i].text),
						      -5, 12, &val),
				    cases[i].err, "text '%s'", cases[i].text);
		if (!cases[i].err)
			KUNIT_EXPECT_EQ(test, val, cases[i].val);
	}
	/* The widest and the narrowest one. */
	KUNIT_EXPECT_EQ(test, pghot_parse_range("9223372036854775807", LLONG_MIN,
						LLONG_MAX, &val), 0);
	KUNIT_EXPECT_EQ(test, val, LLONG_MAX);
	KUNIT_EXPECT_EQ(test, pghot_parse_range("3", 3, 3, &val), 0);
	KUNIT_EXPECT_EQ(test, pghot_parse_range("2", 3, 3, &val), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_parse_range("4", 3, 3, &val), -ERANGE);
}

/* As much as a write to a file in sysfs can bring. */
static void four_kib_of_garbage(struct kunit *test)
{
	static const char fills[] = "aA-+,\n \t.x/%\\\x01\x7f\xff";
	static const char * const lists[] = { "hintfaults,", "off", "1,", "0x" };
	unsigned int i, seed, pos;
	unsigned long mask;
	struct rnd_state rnd;
	long long val;
	size_t len;
	char *buf;

	buf = kunit_kzalloc(test, SZ_4K, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);

	for (i = 0; fills[i]; i++) {
		memset(buf, fills[i], SZ_4K - 1);
		KUNIT_EXPECT_EQ_MSG(test, pghot_parse_number(buf, &val), -EINVAL,
				    "filled with %#x", (u8)fills[i]);
		KUNIT_EXPECT_EQ_MSG(test, pghot_parse_range(buf, 0, 9, &val), -EINVAL,
				    "filled with %#x", (u8)fills[i]);
		KUNIT_EXPECT_EQ_MSG(test, pghot_parse_sources(buf, &mask), -EINVAL,
				    "filled with %#x", (u8)fills[i]);
	}

	memset(buf, '9', SZ_4K - 1);
	KUNIT_EXPECT_EQ(test, pghot_parse_number(buf, &val), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_parse_range(buf, 0, 9, &val), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_parse_sources(buf, &mask), -ERANGE);

	/* Lists without an end, or with half a word at it. */
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		len = strlen(lists[i]);
		for (pos = 0; pos < SZ_4K - 1; pos++)
			buf[pos] = lists[i][pos % len];
		KUNIT_EXPECT_EQ_MSG(test, pghot_parse_sources(buf, &mask), -EINVAL,
				    "filled with '%s'", lists[i]);
		KUNIT_EXPECT_EQ(test, pghot_parse_number(buf, &val), -EINVAL);
	}

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		for (pos = 0; pos < SZ_4K - 1; pos++)
			buf[pos] = 1 + pghot_random(&rnd, 255);
		mask = UNTOUCHED;
		KUNIT_EXPECT_EQ_MSG(test, pghot_parse_number(buf, &val), -EINVAL,
				    "seed %u", seed);
		KUNIT_EXPECT_EQ_MSG(test, pghot_parse_sources(buf, &mask), -EINVAL,
				    "seed %u", seed);
		KUNIT_EXPECT_EQ(test, mask, UNTOUCHED);
	}
}

/* ===== Sources ===== */

static void source_texts(struct kunit *test)
{
	static const struct number_case cases[] = {
		{ "off", 0, 0 }, { "off\n", 0, 0 }, { "0", 0, 0 }, { "0\n", 0, 0 },
		{ "hintfaults", 0, 1 }, { "hwhints\n", 0, 2 }, { "pgscan", 0, 4 },
		{ "hintfaults,hwhints", 0, 3 }, { "pgscan,hintfaults\n", 0, 5 },
		{ "hwhints,hwhints", 0, 2 }, { "hintfaults,hwhints,pgscan", 0, 7 },
		{ "1", 0, 1 }, { "0x6\n", 0, 6 }, { "7", 0, 7 },
		{ "8", -ERANGE }, { "-1", -ERANGE }, { "255", -ERANGE },
		{ "4294967297", -ERANGE }, { "99999999999999999999", -ERANGE },
		{ "", -EINVAL }, { "\n", -EINVAL }, { ",", -EINVAL }, { ",\n", -EINVAL },
		{ "on", -EINVAL }, { "none", -EINVAL }, { "all", -EINVAL },
		{ "hintfault", -EINVAL }, { "hintfaultss", -EINVAL },
		{ "Hintfaults", -EINVAL }, { "h", -EINVAL },
		{ "hintfaults,", -EINVAL }, { ",hintfaults", -EINVAL },
		{ "hintfaults,,hwhints", -EINVAL }, { "hintfaults, hwhints", -EINVAL },
		{ "hintfaults hwhints", -EINVAL }, { "hintfaults\n\n", -EINVAL },
		{ "hintfaults\nhwhints", -EINVAL }, { "hintfaults,\n", -EINVAL },
		{ "hintfaults\n,hwhints", -EINVAL }, { " hintfaults", -EINVAL },
		{ "off,hintfaults", -EINVAL }, { "hintfaults,off", -EINVAL },
		{ "1,2", -EINVAL }, { "hintfaults,1", -EINVAL }, { "1,hintfaults", -EINVAL },
		{ "off\n\n", -EINVAL }, { "offf", -EINVAL }, { "1x", -EINVAL },
	};
	unsigned long mask, want;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		mask = UNTOUCHED;
		want = UNTOUCHED;
		if (!cases[i].err)
			want = cases[i].val;
		KUNIT_EXPECT_EQ_MSG(test,
				    pghot_parse_sources(exact_copy(test, cases[i].text), &mask),
				    cases[i].err, "text '%s'", cases[i].text);
		KUNIT_EXPECT_EQ_MSG(test, mask, want, "text '%s'", cases[i].text);
	}
}

/* The reference: cut at commas, each piece must be a name. */
static int parse_reference(char *text, unsigned long *mask)
{
	static const char * const names[] = { "hintfaults", "hwhints", "pgscan" };
	unsigned long found = 0;
	size_t len = strlen(text);
	long long val;
	char *piece;
	int i, err;

	err = kstrtoll(text, 0, &val);
	if (!err && (val < 0 || val > 7))
		err = -ERANGE;
	if (!err)
		*mask = val;
	if (err != -EINVAL)
		return err;

	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	if (!strcmp(text, "off")) {
		*mask = 0;
		return 0;
	}
	while ((piece = strsep(&text, ","))) {
		i = match_string(names, ARRAY_SIZE(names), piece);
		if (i < 0)
			return -EINVAL;
		found |= BIT(i);
	}
	*mask = found;
	return 0;
}

static void sources_like_reference(struct kunit *test)
{
	static const char * const pieces[] = {
		"hintfaults", "hwhints", "pgscan", ",", ",", ",", "\n", "off", "3", "8",
		"0x", "-", " ", "hint", "s",
	};
	char text[128], copy[128];
	unsigned long mask, want;
	unsigned int seed, round, nr, valid = 0;
	struct rnd_state rnd;
	int err;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		for (round = 0; round < 1000; round++) {
			text[0] = '\0';
			for (nr = pghot_random(&rnd, 7); nr; nr--)
				strlcat(text, pieces[pghot_random(&rnd, ARRAY_SIZE(pieces))],
					sizeof(text));
			strscpy(copy, text);
			mask = UNTOUCHED;
			want = UNTOUCHED;
			err = parse_reference(copy, &want);
			KUNIT_ASSERT_EQ_MSG(test, pghot_parse_sources(text, &mask), err,
					    "seed %u, text '%s'", seed, text);
			KUNIT_ASSERT_EQ_MSG(test, mask, want, "seed %u, text '%s'", seed, text);
			valid += !err;
		}
	}
	/* It was not all nonsense. */
	KUNIT_EXPECT_GT(test, valid, 100);
}

static int no_enable(void)
{
	return 0;
}

static void no_disable(void)
{
}

/* Nothing incomplete gets in, and nothing takes another's place. */
static void register_errors(struct kunit *test)
{
	static const struct pghot_source bad[] = {
		{ NULL, PGHOT_SRC_PGSCAN, PGHOT_CAP_ACCESS, NULL, no_enable, no_disable },
		{ "x", PGHOT_SRC_PGSCAN, 0, NULL, no_enable, no_disable },
		{ "x", PGHOT_SRC_PGSCAN, PGHOT_CAP_ACCESS, NULL, NULL, no_disable },
		{ "x", PGHOT_SRC_PGSCAN, PGHOT_CAP_ACCESS, NULL, no_enable, NULL },
		{ "x", PGHOT_NR_SOURCES, PGHOT_CAP_ACCESS, NULL, no_enable, no_disable },
		{ "x", -1, PGHOT_CAP_ACCESS, NULL, no_enable, no_disable },
	};
	static const struct pghot_source rival = {
		"rival", PGHOT_SRC_HINTFAULTS, PGHOT_CAP_ACCESS, NULL, no_enable, no_disable,
	};
	const struct pghot_source *before[PGHOT_NR_SOURCES];
	unsigned int i;

	for (i = 0; i < PGHOT_NR_SOURCES; i++)
		before[i] = pghot_source(i);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, pghot_register_source(&bad[i]), -EINVAL,
				    "source %u", i);
	if (before[PGHOT_SRC_HINTFAULTS])
		KUNIT_EXPECT_EQ(test, pghot_register_source(&rival), -EEXIST);
	for (i = 0; i < PGHOT_NR_SOURCES; i++)
		KUNIT_EXPECT_PTR_EQ(test, pghot_source(i), before[i]);
}

/* Masks with a bit that means nothing, or a source that is not there. */
static void set_sources_errors(struct kunit *test)
{
	unsigned long before = pghot_enabled_sources();
	unsigned int id;

	KUNIT_EXPECT_EQ(test, pghot_set_sources(BIT(PGHOT_NR_SOURCES)), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_set_sources(before | BIT(63)), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_set_sources(-1UL), -ERANGE);
	for (id = 0; id < PGHOT_NR_SOURCES; id++) {
		if (pghot_source(id))
			continue;
		KUNIT_EXPECT_EQ(test, pghot_set_sources(before | BIT(id)), -ENODEV);
		KUNIT_EXPECT_EQ(test, pghot_enable_source(id, true), -ENODEV);
		/* Off it is already. */
		KUNIT_EXPECT_EQ(test, pghot_enable_source(id, false), 0);
	}
	KUNIT_EXPECT_EQ(test, pghot_set_sources(before), 0);
	KUNIT_EXPECT_EQ(test, pghot_enabled_sources(), before);
}

/* ===== Knobs ===== */

/* As documented in Documentation/ABI/testing/sysfs-kernel-mm-pghot. */
static const struct {
	enum pghot_knob	knob;
	long long	min, max;
} ranges[] = {
	{ PGHOT_FREQ_THRESHOLD, 1, 15 },
	{ PGHOT_PROMOTE_WINDOW_MS, 100, 600000 },
	{ PGHOT_PROMOTE_RATE_LIMIT_MBPS, 0, 1048576 },
	{ PGHOT_KMIGRATED_SLEEP_MS, 10, 10000 },
	{ PGHOT_KMIGRATED_BATCH_NR, 1, 512 },
};

static_assert(ARRAY_SIZE(ranges) == PGHOT_NR_KNOBS - 1);

static int saved[PGHOT_NR_KNOBS];

static int knobs_init(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < PGHOT_NR_KNOBS; i++)
		saved[i] = pghot_knob_get(i);
	return 0;
}

static void knobs_exit(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < PGHOT_NR_KNOBS; i++)
		if (pghot_knob_get(i) != saved[i])
			pghot_knob_set(i, saved[i]);
}

static void expect_knobs(struct kunit *test, const int *want)
{
	unsigned int i;

	for (i = 0; i < PGHOT_NR_KNOBS; i++)
		KUNIT_EXPECT_EQ_MSG(test, pghot_knob_get(i), want[i], "knob %u", i);
}

static void knob_ranges(struct kunit *test)
{
	static const long long far[] = { LLONG_MIN, LLONG_MAX, INT_MIN, 1LL << 32, -(1LL << 32) };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		enum pghot_knob knob = ranges[i].knob;
		/* Would be in range if it was cut to 32 bits. */
		long long high = ranges[i].max + (1LL << 32);

		KUNIT_EXPECT_EQ(test, pghot_knob_set(knob, ranges[i].min - 1), -ERANGE);
		KUNIT_EXPECT_EQ(test, pghot_knob_set(knob, ranges[i].max + 1), -ERANGE);
		KUNIT_EXPECT_EQ(test, pghot_knob_set(knob, high), -ERANGE);
		for (j = 0; j < ARRAY_SIZE(far); j++)
			KUNIT_EXPECT_EQ_MSG(test, pghot_knob_set(knob, far[j]), -ERANGE,
					    "knob %u, value %lld", knob, far[j]);
		expect_knobs(test, saved);

		KUNIT_EXPECT_EQ(test, pghot_knob_set(knob, ranges[i].min), 0);
		KUNIT_EXPECT_EQ(test, pghot_knob_get(knob), ranges[i].min);
		KUNIT_EXPECT_EQ(test, pghot_knob_set(knob, ranges[i].max), 0);
		KUNIT_EXPECT_EQ(test, pghot_knob_get(knob), ranges[i].max);
		KUNIT_EXPECT_EQ(test, pghot_knob_set(knob, ranges[i].max + 1), -ERANGE);
		KUNIT_EXPECT_EQ(test, pghot_knob_get(knob), ranges[i].max);

		KUNIT_EXPECT_EQ(test, pghot_knob_set(knob, saved[knob]), 0);
		/* One knob does not move another. */
		expect_knobs(test, saved);
	}
}

static void knob_defaults_in_range(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		KUNIT_EXPECT_GE(test, saved[ranges[i].knob], ranges[i].min);
		KUNIT_EXPECT_LE(test, saved[ranges[i].knob], ranges[i].max);
	}
}

/* Only DRAM that is there can be pinned as the target. */
static void knob_target(struct kunit *test)
{
	nodemask_t dram;
	int nid, err;

	KUNIT_EXPECT_EQ(test, pghot_knob_set(PGHOT_TARGET_NID, -2), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_knob_set(PGHOT_TARGET_NID, MAX_NUMNODES), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_knob_set(PGHOT_TARGET_NID, LLONG_MAX), -ERANGE);
	KUNIT_EXPECT_EQ(test, pghot_knob_set(PGHOT_TARGET_NID, 1LL << 32), -ERANGE);
	expect_knobs(test, saved);

	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_TARGET_NID, NUMA_NO_NODE), 0);
	pghot_dram_nodes(&dram);
	for (nid = 0; nid < MAX_NUMNODES; nid++) {
		err = pghot_knob_set(PGHOT_TARGET_NID, nid);
		if (!node_online(nid))
			KUNIT_EXPECT_EQ_MSG(test, err, -ENODEV, "node %d", nid);
		else if (!node_isset(nid, dram))
			KUNIT_EXPECT_EQ_MSG(test, err, -EINVAL, "node %d", nid);
		else
			KUNIT_EXPECT_EQ_MSG(test, err, 0, "node %d", nid);
		KUNIT_EXPECT_EQ_MSG(test, pghot_knob_get(PGHOT_TARGET_NID),
				    err ? NUMA_NO_NODE : nid, "node %d", nid);
		KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_TARGET_NID, NUMA_NO_NODE), 0);
	}
}

/* The real clock: a new window begins an epoch anew, and none is skipped. */
static void knob_window_keeps_epoch(struct kunit *test)
{
	unsigned int epoch, i;

	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_PROMOTE_WINDOW_MS, 600000), 0);
	epoch = pghot_epoch(jiffies);
	for (i = 0; i < 20; i++) {
		KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_PROMOTE_WINDOW_MS,
						     i % 2 ? 600000 : 500000), 0);
		KUNIT_ASSERT_EQ(test, pghot_epoch(jiffies), epoch);
		/* A report from before the change. */
		KUNIT_ASSERT_EQ(test, pghot_epoch(jiffies - 10 * HZ), epoch);
		KUNIT_ASSERT_EQ(test, pghot_epoch(jiffies + 700 * HZ), epoch + 1);
	}
}

static struct kunit_case knobs_cases[] = {
	KUNIT_CASE(number_texts),
	KUNIT_CASE(range_borders),
	KUNIT_CASE(four_kib_of_garbage),
	KUNIT_CASE(source_texts),
	KUNIT_CASE(sources_like_reference),
	KUNIT_CASE(register_errors),
	KUNIT_CASE(set_sources_errors),
	KUNIT_CASE(knob_ranges),
	KUNIT_CASE(knob_defaults_in_range),
	KUNIT_CASE(knob_target),
	KUNIT_CASE(knob_window_keeps_epoch),
	{}
};

static struct kunit_suite knobs_suite = {
	.name		= "pghot_knobs",
	.init		= knobs_init,
	.exit		= knobs_exit,
	.test_cases	= knobs_cases,
};

kunit_test_suite(knobs_suite);
