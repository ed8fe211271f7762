// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the byte budget and of the ranking by heat.
 */
#include <kunit/test.h>

#include "../policy.h"
#include "random.h"

/* ===== Budget ===== */

/* The highest rate that there is: 2^20 MB/s. */
#define MAX_RATE	((u64)SZ_1M * SZ_1M)

/* As kmigrated has it: two cycles, and a cycle takes up to ten seconds. */
static u64 capacity_of(u64 rate, unsigned int sleep_ms)
{
	return div_u64(rate * 2 * sleep_ms, MSEC_PER_SEC);
}

static u64 random_folio(struct rnd_state *rnd)
{
	return (u64)PAGE_SIZE << pghot_random(rnd, 10);
}

/*
 * The reference counts in bytes / HZ, in which nothing is ever rounded. A refill
 * of the bucket may be short by less than a byte, and is never too much.
 */
static void bucket_is_byte_exact(struct kunit *test)
{
	unsigned int seed, step, sleep_ms, refills;
	struct pghot_bucket b;
	struct rnd_state rnd;
	unsigned long dt;
	s64 exact, full;
	u64 rate, bytes;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		rate = pghot_random_rate(&rnd);
		sleep_ms = 10 + pghot_random(&rnd, 9991);
		full = capacity_of(rate, sleep_ms) * HZ;
		b = (struct pghot_bucket) { .last = pghot_random_start(&rnd) };
		exact = 0;
		refills = 0;

		for (step = 0; step < 5000; step++) {
			switch (pghot_random(&rnd, 4)) {
			case 0:
				dt = pghot_random(&rnd, 2 * HZ);
				if (!pghot_random(&rnd, 20))
					dt = pghot_random(&rnd, 60 * HZ);
				pghot_bucket_refill(&b, b.last + dt, rate, full / HZ);
				exact = min(exact + (s64)(rate * dt), full);
				refills++;
				if (b.tokens == full / HZ)
					refills = 0;
				break;
			case 1:
				bytes = random_folio(&rnd);
				if (!pghot_bucket_take(&b, bytes))
					break;
				if (pghot_random(&rnd, 4))
					exact -= bytes * HZ;
				else
					pghot_bucket_return(&b, bytes);
				break;
			default:
				/* Spend all of it now and then. */
				bytes = max_t(s64, b.tokens, 1);
				if (pghot_bucket_take(&b, bytes))
					exact -= bytes * HZ;
				break;
			}
			KUNIT_ASSERT_LE_MSG(test, b.tokens * HZ, exact,
					    "seed %u, step %u", seed, step);
			KUNIT_ASSERT_LE_MSG(test, exact - b.tokens * HZ, (s64)(refills + 1) * HZ,
					    "seed %u, step %u", seed, step);
		}
	}
}

/* A folio passes while there is a byte left, and its debt is paid first. */
static void bucket_debt(struct kunit *test)
{
	struct pghot_bucket b = { .tokens = 1, .last = 1000 };
	const u64 rate = SZ_1M, cap = 4 * SZ_1M;

	KUNIT_EXPECT_TRUE(test, pghot_bucket_take(&b, SZ_2M));
	KUNIT_EXPECT_EQ(test, b.tokens, 1 - (s64)SZ_2M);
	KUNIT_EXPECT_FALSE(test, pghot_bucket_take(&b, 1));
	KUNIT_EXPECT_EQ(test, b.tokens, 1 - (s64)SZ_2M);

	pghot_bucket_refill(&b, 1000 + HZ, rate, cap);
	KUNIT_EXPECT_EQ(test, b.tokens, 1 - (s64)SZ_1M);
	KUNIT_EXPECT_FALSE(test, pghot_bucket_take(&b, 1));

	pghot_bucket_refill(&b, 1000 + 2 * HZ, rate, cap);
	KUNIT_EXPECT_EQ(test, b.tokens, 1);
	KUNIT_EXPECT_TRUE(test, pghot_bucket_take(&b, 1));
	/* Nothing left is not enough. */
	KUNIT_EXPECT_EQ(test, b.tokens, 0);
	KUNIT_EXPECT_FALSE(test, pghot_bucket_take(&b, 1));
}

static void bucket_return_is_undo(struct kunit *test)
{
	static const s64 tokens[] = { 1, 4095, 4096, SZ_2M, 1LL << 40 };
	struct pghot_bucket b = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tokens); i++) {
		b.tokens = tokens[i];
		KUNIT_ASSERT_TRUE(test, pghot_bucket_take(&b, SZ_2M));
		pghot_bucket_return(&b, SZ_2M);
		KUNIT_ASSERT_EQ(test, b.tokens, tokens[i]);
	}
}

/* No stretch of time sees more than rate * t + capacity + one folio. */
static void bucket_burst_bound(struct kunit *test)
{
	unsigned int seed, i, j, nr, sleep_ms;
	unsigned long now, *when;
	struct pghot_bucket b;
	struct rnd_state rnd;
	u64 rate, cap, bytes, sum, *taken;
	const unsigned int max = 600;

	when = kunit_kcalloc(test, max, sizeof(*when), GFP_KERNEL);
	taken = kunit_kcalloc(test, max, sizeof(*taken), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, when);
	KUNIT_ASSERT_NOT_NULL(test, taken);

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		rate = SZ_1M * (1 + pghot_random(&rnd, 64));
		sleep_ms = 10 + pghot_random(&rnd, 2000);
		cap = capacity_of(rate, sleep_ms);
		now = pghot_random_start(&rnd);
		b = (struct pghot_bucket) { .last = now };

		for (nr = 0; nr < max;) {
			/* Always hungry, except for some long breaks. */
			now += pghot_random(&rnd, 30) ? pghot_random(&rnd, HZ / 4) :
							pghot_random(&rnd, 20 * HZ);
			pghot_bucket_refill(&b, now, rate, cap);
			sum = 0;
			while (pghot_bucket_take(&b, bytes = random_folio(&rnd)))
				sum += bytes;
			when[nr] = now;
			taken[nr++] = sum;
		}

		for (i = 0; i < nr; i++) {
			sum = 0;
			for (j = i; j < nr; j++) {
				sum += taken[j];
				KUNIT_ASSERT_LE_MSG(test, sum,
						    div_u64(rate * (when[j] - when[i]), HZ) +
						    cap + ((u64)PAGE_SIZE << 9),
						    "seed %u, %u to %u", seed, i, j);
			}
		}
	}
}

/* Who is always hungry gets the rate, however long a cycle is. */
static void bucket_long_run(struct kunit *test)
{
	static const unsigned int sleeps[] = { 10, 100, 500, 999, 1000, 1001, 3000, 10000 };
	const u64 rate = 64 * SZ_1M;
	struct pghot_bucket b;
	unsigned long now, dt;
	unsigned int i, step;
	u64 sum, due;

	for (i = 0; i < ARRAY_SIZE(sleeps); i++) {
		dt = msecs_to_jiffies(sleeps[i]);
		now = -5000UL;
		b = (struct pghot_bucket) { .last = now };
		sum = 0;
		for (step = 0; step < 1000; step++) {
			now += dt;
			pghot_bucket_refill(&b, now, rate, capacity_of(rate, sleeps[i]));
			while (pghot_bucket_take(&b, PAGE_SIZE))
				sum += PAGE_SIZE;
		}
		due = div_u64(rate * 1000 * dt, HZ);
		KUNIT_EXPECT_GE_MSG(test, sum + 1000, due, "cycles of %u ms", sleeps[i]);
		KUNIT_EXPECT_LE_MSG(test, sum, due + PAGE_SIZE, "cycles of %u ms", sleeps[i]);
	}
}

/* Half a minute fills it and pays a debt, and no more; nothing overflows. */
static void bucket_idle_and_max_rate(struct kunit *test)
{
	static const unsigned int sleeps[] = { 10, 100, 500, 501, 1000, 10000 };
	static const unsigned long idle[] = { 30UL * HZ, 60UL * HZ, 61UL * HZ, 3600UL * HZ,
					      1UL << 40, LONG_MAX - 1, LONG_MAX };
	static const s64 tokens[] = { -(s64)SZ_2M, -1, 0, 1 };
	struct pghot_bucket b;
	unsigned int i, j, k;
	u64 rate, cap;

	for (rate = SZ_1M; rate <= MAX_RATE; rate <<= 1) {
		for (i = 0; i < ARRAY_SIZE(sleeps); i++) {
			cap = capacity_of(rate, sleeps[i]);
			for (j = 0; j < ARRAY_SIZE(idle); j++) {
				for (k = 0; k < ARRAY_SIZE(tokens); k++) {
					b = (struct pghot_bucket) {
						.tokens = tokens[k], .last = 12345,
					};
					pghot_bucket_refill(&b, 12345 + idle[j], rate, cap);
					KUNIT_ASSERT_EQ_MSG(test, b.tokens, cap,
							    "rate %llu, sleep %u, idle %lu",
							    rate, sleeps[i], idle[j]);
				}
			}
		}
	}
}

/* A lower rate takes hold at once; none at all stops everything. */
static void bucket_rate_change(struct kunit *test)
{
	struct pghot_bucket b = { .tokens = SZ_1G, .last = 77 };

	pghot_bucket_refill(&b, 77, SZ_1M, SZ_1M / 5);
	KUNIT_EXPECT_EQ(test, b.tokens, SZ_1M / 5);
	pghot_bucket_refill(&b, 77 + 100 * HZ, 0, 0);
	KUNIT_EXPECT_EQ(test, b.tokens, 0);
	KUNIT_EXPECT_FALSE(test, pghot_bucket_take(&b, PAGE_SIZE));

	/* Debt is not forgiven. */
	b.tokens = -4096;
	pghot_bucket_refill(&b, 77 + 200 * HZ, 0, 0);
	KUNIT_EXPECT_EQ(test, b.tokens, -4096);
}

/* Bytes for the time that passed: twice the same time gives them once. */
static void bucket_same_time(struct kunit *test)
{
	struct pghot_bucket b = { .last = -3UL };

	pghot_bucket_refill(&b, -3UL + HZ, SZ_1M, SZ_16M);
	KUNIT_EXPECT_EQ(test, b.tokens, SZ_1M);
	pghot_bucket_refill(&b, -3UL + HZ, SZ_1M, SZ_16M);
	KUNIT_EXPECT_EQ(test, b.tokens, SZ_1M);
}

/* ===== Ranking ===== */

#define MAX_CANDIDATES	400

struct candidate {
	unsigned int	heat;
	unsigned int	nr_pages;
	bool		taken;
};

/* Take candidates in their order, by the rule in policy.h. */
static unsigned long take_ranked(struct candidate *c, unsigned int nr,
				 struct pghot_rank *r)
{
	unsigned long taken = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		c[i].taken = c[i].heat > r->cutoff ||
			     (c[i].heat == r->cutoff && r->quota);
		if (!c[i].taken)
			continue;
		taken += c[i].nr_pages;
		if (c[i].heat == r->cutoff)
			r->quota -= min_t(unsigned long, r->quota, c[i].nr_pages);
	}
	return taken;
}

/* @max_order: candidates have up to that order. */
static void rank_random(struct kunit *test, unsigned int max_order)
{
	unsigned int seed, round, i, nr, coldest_taken, hottest_left;
	unsigned long sum, budget, taken, want;
	struct candidate *c;
	struct pghot_rank r;
	struct rnd_state rnd;

	c = kunit_kcalloc(test, MAX_CANDIDATES, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		for (round = 0; round < 300; round++) {
			memset(&r, 0, sizeof(r));
			nr = pghot_random(&rnd, MAX_CANDIDATES + 1);
			sum = 0;
			for (i = 0; i < nr; i++) {
				/* Some histograms have one bar, some all. */
				c[i].heat = 1 + pghot_random(&rnd, 1 + round % 15);
				c[i].nr_pages = 1 << pghot_random(&rnd, max_order + 1);
				sum += c[i].nr_pages;
				r.pages[c[i].heat] += c[i].nr_pages;
			}
			budget = pghot_random(&rnd, sum + sum / 4 + 2);

			pghot_rank_cut(&r, budget);
			taken = take_ranked(c, nr, &r);

			coldest_taken = 16;
			hottest_left = 0;
			for (i = 0; i < nr; i++) {
				if (c[i].taken)
					coldest_taken = min(coldest_taken, c[i].heat);
				else
					hottest_left = max(hottest_left, c[i].heat);
			}
			want = min(sum, budget);
			KUNIT_ASSERT_GE_MSG(test, taken, want,
					    "seed %u, round %u", seed, round);
			/* At most a part of one folio more; with pages, nothing. */
			KUNIT_ASSERT_LT_MSG(test, taken, want + (1 << max_order),
					    "seed %u, round %u", seed, round);
			KUNIT_ASSERT_LE_MSG(test, hottest_left, coldest_taken,
					    "seed %u, round %u", seed, round);
		}
	}
}

static void rank_pages(struct kunit *test)
{
	rank_random(test, 0);
}

static void rank_folios(struct kunit *test)
{
	rank_random(test, 9);
}

/* Budgets at the borders between two heats. */
static void rank_borders(struct kunit *test)
{
	struct pghot_rank r = { .pages = { [15] = 10, [7] = 5, [1] = 100 } };

	pghot_rank_cut(&r, 9);
	KUNIT_EXPECT_EQ(test, r.cutoff, 15);
	KUNIT_EXPECT_EQ(test, r.quota, 9);
	pghot_rank_cut(&r, 10);
	KUNIT_EXPECT_EQ(test, r.cutoff, 15);
	KUNIT_EXPECT_EQ(test, r.quota, 10);
	pghot_rank_cut(&r, 11);
	KUNIT_EXPECT_EQ(test, r.cutoff, 7);
	KUNIT_EXPECT_EQ(test, r.quota, 1);
	pghot_rank_cut(&r, 114);
	KUNIT_EXPECT_EQ(test, r.cutoff, 1);
	KUNIT_EXPECT_EQ(test, r.quota, 99);
	/* Enough for all: heat 0 is no candidate's. */
	pghot_rank_cut(&r, 116);
	KUNIT_EXPECT_EQ(test, r.cutoff, 0);
	pghot_rank_cut(&r, 0);
	KUNIT_EXPECT_EQ(test, r.cutoff, 15);
	KUNIT_EXPECT_EQ(test, r.quota, 0);
	pghot_rank_cut(&r, ULONG_MAX);
	KUNIT_EXPECT_EQ(test, r.cutoff, 0);
}

static void rank_all_takes_all(struct kunit *test)
{
	struct candidate c[15] = {};
	struct pghot_rank r = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i].heat = i + 1;
		c[i].nr_pages = 512;
	}
	pghot_rank_all(&r);
	KUNIT_EXPECT_EQ(test, take_ranked(c, ARRAY_SIZE(c), &r), 15 * 512);
}

/*
 * A crowd that is hotter than all others and cannot be moved does not hold up the
 * others for more than a cycle now and then; and when it can be, it goes first.
 */
static void rank_stuck(struct kunit *test)
{
	const unsigned long crowd = 2000, others = 1000, per_cycle = 25;
	struct pghot_stuck stuck = {}, found;
	unsigned long done = 0, budget = 0, nr;
	unsigned int cycle;
	struct pghot_rank r;

	for (cycle = 0; cycle < 60 && done < others; cycle++) {
		/* A bucket of two cycles. */
		budget = min(budget + per_cycle, 2 * per_cycle);
		r = (struct pghot_rank) {};
		r.pages[15] = crowd;
		r.pages[5] = others - done;
		pghot_rank_discount(&r, &stuck);
		pghot_rank_cut(&r, budget);

		nr = r.cutoff < 5 ? others - done : r.cutoff == 5 ? r.quota : 0;
		nr = min3(nr, budget, others - done);
		done += nr;
		budget -= nr;
		found = (struct pghot_stuck) {};
		/* The crowd comes last: nobody looks at it if the budget is used up. */
		if (budget)
			found.pages[15] = crowd;
		pghot_stuck_update(&stuck, &found, r.cutoff, budget);
	}
	KUNIT_EXPECT_EQ(test, done, others);
	KUNIT_EXPECT_LE(test, cycle, others / per_cycle + 5);
	KUNIT_EXPECT_GT(test, stuck.pages[15], 0);

	/* They were visited, and moved. */
	found = (struct pghot_stuck) {};
	pghot_stuck_update(&stuck, &found, 0, true);
	r = (struct pghot_rank) {};
	r.pages[15] = crowd;
	pghot_rank_discount(&r, &stuck);
	pghot_rank_cut(&r, per_cycle);
	KUNIT_EXPECT_EQ(test, r.cutoff, 15);
	KUNIT_EXPECT_EQ(test, r.quota, per_cycle);
}

/* What nobody has seen again is believed less and less; colder ones are kept. */
static void stuck_fades(struct kunit *test)
{
	struct pghot_stuck stuck = {}, found = {};
	unsigned int i;

	stuck.pages[15] = 1000000;
	stuck.pages[3] = 7;
	for (i = 0; i < 100; i++)
		pghot_stuck_update(&stuck, &found, 4, false);
	KUNIT_EXPECT_EQ(test, stuck.pages[15], 0);
	KUNIT_EXPECT_EQ(test, stuck.pages[3], 7);
	found.pages[3] = 9;
	pghot_stuck_update(&stuck, &found, 3, false);
	KUNIT_EXPECT_EQ(test, stuck.pages[3], 9);
	found.pages[3] = 1;
	pghot_stuck_update(&stuck, &found, 0, true);
	KUNIT_EXPECT_EQ(test, stuck.pages[3], 1);
}

static struct kunit_case policy_cases[] = {
	KUNIT_CASE(bucket_is_byte_exact),
	KUNIT_CASE(bucket_debt),
	KUNIT_CASE(bucket_return_is_undo),
	KUNIT_CASE(bucket_burst_bound),
	KUNIT_CASE(bucket_long_run),
	KUNIT_CASE(bucket_idle_and_max_rate),
	KUNIT_CASE(bucket_rate_change),
	KUNIT_CASE(bucket_same_time),
	KUNIT_CASE(rank_pages),
	KUNIT_CASE(rank_folios),
	KUNIT_CASE(rank_borders),
	KUNIT_CASE(rank_all_takes_all),
	KUNIT_CASE(rank_stuck),
	KUNIT_CASE(stuck_fades),
	{}
};

static struct kunit_suite policy_suite = {
	.name		= "pghot_policy",
	.test_cases	= policy_cases,
};

kunit_test_suite(policy_suite);
