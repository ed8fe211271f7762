// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of registers of AMD's units that sample: from a configuration to a value and
 * back, and from values to what a sample says. Needs no such unit.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/perf_event.h>

#include <asm/amd/ibs_memprof.h>
#include <asm/amd/ibs_op_hints.h>

#include "random.h"

#define NR_RANDOM	20000

/* ===== Memory Profiler: control ===== */

/* Bits of IbsMemCtl by number, apart from the definitions under test. */
static u64 ctl_by_hand(const struct pghot_hint_config *c)
{
	u64 ctl = 1ULL << 19;
	unsigned int bit;

	/* Count bits 4..19 are bits 0..15, and 20..26 are where they are. */
	for (bit = 4; bit < 27; bit++)
		if (c->period >> bit & 1)
			ctl |= 1ULL << (bit < 20 ? bit - 4 : bit);
	if (c->l3miss_only)
		ctl |= 1ULL << 16;
	if (c->latency)
		ctl |= 1ULL << 63 | (u64)(c->latency / 128 - 1) << 59;
	return ctl;
}

static void expect_config(struct kunit *test, const struct pghot_hint_config *c)
{
	struct pghot_hint_config back;
	u64 ctl = ibs_memprof_ctl(c);

	KUNIT_ASSERT_EQ_MSG(test, ctl, ctl_by_hand(c), "period %u latency %u l3 %d",
			    c->period, c->latency, c->l3miss_only);
	back = ibs_memprof_config(ctl);
	KUNIT_ASSERT_EQ(test, back.period, c->period);
	KUNIT_ASSERT_EQ(test, back.latency, c->latency);
	KUNIT_ASSERT_EQ(test, back.l3miss_only, c->l3miss_only);
	/* Neither starts the unit. */
	KUNIT_ASSERT_FALSE(test, ctl & (BIT_ULL(17) | BIT_ULL(18)));
}

/* Values that can be read in AMD's description of the fields. */
static void ctl_values(struct kunit *test)
{
	struct pghot_hint_config c = { .period = 10000 };

	KUNIT_EXPECT_EQ(test, ibs_memprof_ctl(&c), 0x80271ULL);
	c.period = 16;
	KUNIT_EXPECT_EQ(test, ibs_memprof_ctl(&c), 0x80001ULL);
	c.period = (1 << 27) - 16;
	KUNIT_EXPECT_EQ(test, ibs_memprof_ctl(&c), 0x7f8ffffULL);
	c.period = 1 << 20;
	c.l3miss_only = true;
	KUNIT_EXPECT_EQ(test, ibs_memprof_ctl(&c), 0x190000ULL);
	c.latency = 128;
	KUNIT_EXPECT_EQ(test, ibs_memprof_ctl(&c), 0x8000000000190000ULL);
	c.latency = 2048;
	KUNIT_EXPECT_EQ(test, ibs_memprof_ctl(&c), 0xf800000000190000ULL);
}

/* Each bit of the period, each latency, and both limits. */
static void ctl_fields(struct kunit *test)
{
	struct pghot_hint_config c = {};
	unsigned int bit;

	for (bit = 4; bit < 27; bit++) {
		c.period = 1U << bit;
		expect_config(test, &c);
	}
	c.period = IBSMEM_MIN_PERIOD;
	expect_config(test, &c);
	c.period = IBSMEM_MAX_PERIOD;
	expect_config(test, &c);
	for (c.latency = 0; c.latency <= PGHOT_HINT_LATENCY_MAX;
	     c.latency += PGHOT_HINT_LATENCY_STEP)
		expect_config(test, &c);
}

static void ctl_random(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < NR_RANDOM; i++) {
		struct pghot_hint_config c = {
			.period		= pghot_random(&rnd, 1 << 27) & ~15,
			.latency	= pghot_random(&rnd, 17) * 128,
			.l3miss_only	= pghot_random(&rnd, 2),
		};

		expect_config(test, &c);
	}
}

/* Bits that are not the configuration's do not change what is read. */
static void ctl_other_bits(struct kunit *test)
{
	const u64 others = ~(GENMASK_ULL(26, 20) | GENMASK_ULL(16, 0) | GENMASK_ULL(63, 59));
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 2);
	for (i = 0; i < NR_RANDOM; i++) {
		u64 ctl = pghot_random64(&rnd);
		struct pghot_hint_config a = ibs_memprof_config(ctl);
		struct pghot_hint_config b = ibs_memprof_config(ctl ^ (pghot_random64(&rnd) &
								       others));

		KUNIT_ASSERT_EQ(test, a.period, b.period);
		KUNIT_ASSERT_EQ(test, a.latency, b.latency);
		KUNIT_ASSERT_EQ(test, a.l3miss_only, b.l3miss_only);
		KUNIT_ASSERT_EQ(test, a.period % 16, 0);
		KUNIT_ASSERT_EQ(test, a.latency % 128, 0);
		KUNIT_ASSERT_LE(test, a.latency, 2048);
	}
}

/* ===== Memory Profiler: data ===== */

/* The source has 5 bits, of which the upper two stand apart. */
static const u8 level_of_source[32] = {
	[1] = PGHOT_HINT_CACHE,
	[2] = PGHOT_HINT_CACHE,
	[3] = PGHOT_HINT_DRAM,
	[5] = PGHOT_HINT_CACHE,
	[7] = PGHOT_HINT_DRAM,
	[8] = PGHOT_HINT_EXTMEM,
};

/* What a sample says, bit by bit. */
static struct pghot_hint sample_by_hand(u64 data2, u64 data3, u64 lin, u64 phys)
{
	unsigned int source = (data2 & 7) | (data2 >> 6 & 3) << 3;
	bool load = data3 & 1, store = data3 >> 1 & 1, prefetch = data3 >> 21 & 1;
	bool missed = (data3 >> 7 & 1) && (data3 >> 20 & 1);
	struct pghot_hint h = {
		.phys		= phys,
		.addr		= lin,
		.phys_valid	= data3 >> 18 & 1,
		.addr_valid	= data3 >> 17 & 1,
	};

	if (load)
		h.kind = PGHOT_HINT_LOAD;
	if (prefetch)
		h.kind = PGHOT_HINT_PREFETCH;
	if (store)
		h.kind = PGHOT_HINT_STORE;
	if (!missed)
		h.level = PGHOT_HINT_CACHE;
	else if (!store)
		h.level = level_of_source[source];
	return h;
}

static void expect_sample(struct kunit *test, u64 data2, u64 data3, u64 lin, u64 phys)
{
	struct pghot_hint h = ibs_memprof_decode(data2, data3, lin, phys);
	struct pghot_hint want = sample_by_hand(data2, data3, lin, phys);

	KUNIT_ASSERT_EQ_MSG(test, h.kind, want.kind, "data2 %llx data3 %llx", data2, data3);
	KUNIT_ASSERT_EQ_MSG(test, h.level, want.level, "data2 %llx data3 %llx", data2, data3);
	KUNIT_ASSERT_EQ(test, h.phys, want.phys);
	KUNIT_ASSERT_EQ(test, h.addr, want.addr);
	KUNIT_ASSERT_EQ(test, h.phys_valid, want.phys_valid);
	KUNIT_ASSERT_EQ(test, h.addr_valid, want.addr_valid);
	KUNIT_ASSERT_FALSE(test, h.guest);
}

/* A load that missed everything, from each source. */
static void data_sources(struct kunit *test)
{
	const u64 data3 = 1 | 1 << 7 | 1 << 17 | 1 << 18 | 1 << 20;
	unsigned int source;

	for (source = 0; source < 32; source++) {
		u64 data2 = (source & 7) | (u64)(source >> 3) << 6;
		struct pghot_hint h = ibs_memprof_decode(data2, data3, 1, 2);

		KUNIT_EXPECT_EQ(test, ibs_memprof_source(data2), source);
		KUNIT_EXPECT_EQ_MSG(test, h.level, level_of_source[source], "source %u", source);
		KUNIT_EXPECT_EQ(test, h.kind, PGHOT_HINT_LOAD);
		/* Remote node and remote socket are no part of it. */
		KUNIT_EXPECT_EQ(test, ibs_memprof_source(data2 | 1 << 4 | 1 << 9), source);
		/* The source is not that of a store. */
		h = ibs_memprof_decode(data2, data3 | 2, 1, 2);
		KUNIT_EXPECT_EQ(test, h.level, PGHOT_HINT_UNKNOWN);
		KUNIT_EXPECT_EQ(test, h.kind, PGHOT_HINT_STORE);
	}
}

/* All combinations of the bits that mean something. */
static void data3_bits(struct kunit *test)
{
	static const u8 bits[] = { 0, 1, 7, 17, 18, 20, 21 };
	unsigned int mask, i;

	for (mask = 0; mask < BIT(ARRAY_SIZE(bits)); mask++) {
		u64 data3 = 0;

		for (i = 0; i < ARRAY_SIZE(bits); i++)
			if (mask & BIT(i))
				data3 |= BIT_ULL(bits[i]);
		expect_sample(test, 8ULL << 3 & 0xc0, data3, 3, 4);
		expect_sample(test, 3, data3, 3, 4);
		expect_sample(test, 0, data3, 3, 4);
	}
}

static void data_random(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 3);
	for (i = 0; i < NR_RANDOM; i++)
		expect_sample(test, pghot_random64(&rnd), pghot_random64(&rnd),
			      pghot_random64(&rnd), pghot_random64(&rnd));
}

/* ===== IBS Op ===== */

static void op_levels(struct kunit *test)
{
	static const u8 want[16] = {
		[PERF_MEM_LVLNUM_L1]		= PGHOT_HINT_CACHE,
		[PERF_MEM_LVLNUM_L2]		= PGHOT_HINT_CACHE,
		[PERF_MEM_LVLNUM_L3]		= PGHOT_HINT_CACHE,
		[PERF_MEM_LVLNUM_L4]		= PGHOT_HINT_CACHE,
		[PERF_MEM_LVLNUM_ANY_CACHE]	= PGHOT_HINT_CACHE,
		[PERF_MEM_LVLNUM_RAM]		= PGHOT_HINT_DRAM,
		[PERF_MEM_LVLNUM_CXL]		= PGHOT_HINT_EXTMEM,
		[PERF_MEM_LVLNUM_PMEM]		= PGHOT_HINT_EXTMEM,
		[PERF_MEM_LVLNUM_UNC]		= PGHOT_HINT_DEVICE,
		[PERF_MEM_LVLNUM_IO]		= PGHOT_HINT_DEVICE,
	};
	unsigned int lvl;

	for (lvl = 0; lvl < 16; lvl++) {
		union perf_mem_data_src src = { .mem_lvl_num = lvl };

		KUNIT_EXPECT_EQ_MSG(test, ibs_op_hint_level(src), want[lvl], "level %u", lvl);
	}
}

static void op_samples(struct kunit *test)
{
	unsigned int flags;

	for (flags = 0; flags < 8; flags++) {
		struct perf_sample_data *data;
		struct pghot_hint h;

		data = kunit_kzalloc(test, sizeof(*data), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, data);
		data->phys_addr = 0x12345678;
		data->addr = 0x7000;
		data->data_src.val = PERF_MEM_NA;
		data->data_src.mem_op = PERF_MEM_OP_LOAD;
		data->data_src.mem_lvl_num = PERF_MEM_LVLNUM_CXL;
		if (flags & 1)
			data->sample_flags |= PERF_SAMPLE_PHYS_ADDR;
		if (flags & 2)
			data->sample_flags |= PERF_SAMPLE_ADDR;
		if (flags & 4)
			data->sample_flags |= PERF_SAMPLE_DATA_SRC;

		h = ibs_op_hint(data);
		KUNIT_EXPECT_EQ(test, h.phys_valid, !!(flags & 1));
		KUNIT_EXPECT_EQ(test, h.phys, flags & 1 ? 0x12345678 : 0);
		KUNIT_EXPECT_EQ(test, h.addr_valid, !!(flags & 2));
		KUNIT_EXPECT_EQ(test, h.addr, flags & 2 ? 0x7000 : 0);
		KUNIT_EXPECT_EQ(test, h.kind, flags & 4 ? PGHOT_HINT_LOAD : PGHOT_HINT_NONE);
		KUNIT_EXPECT_EQ(test, h.level,
				flags & 4 ? PGHOT_HINT_EXTMEM : PGHOT_HINT_UNKNOWN);

		data->data_src.mem_op = PERF_MEM_OP_STORE;
		KUNIT_EXPECT_EQ(test, ibs_op_hint(data).kind,
				flags & 4 ? PGHOT_HINT_STORE : PGHOT_HINT_NONE);
		data->data_src.mem_op = PERF_MEM_OP_NA;
		KUNIT_EXPECT_EQ(test, ibs_op_hint(data).kind, PGHOT_HINT_NONE);
	}
}

static struct kunit_case ibs_cases[] = {
	KUNIT_CASE(ctl_values),
	KUNIT_CASE(ctl_fields),
	KUNIT_CASE(ctl_random),
	KUNIT_CASE(ctl_other_bits),
	KUNIT_CASE(data_sources),
	KUNIT_CASE(data3_bits),
	KUNIT_CASE(data_random),
	KUNIT_CASE(op_levels),
	KUNIT_CASE(op_samples),
	{}
};

static struct kunit_suite ibs_suite = {
	.name		= "pghot_ibs",
	.test_cases	= ibs_cases,
};

kunit_test_suite(ibs_suite);
