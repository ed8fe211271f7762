// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the hotness record: its bits, its ageing, its limits.
 */
#include <kunit/test.h>

#include "../record.h"
#include "random.h"

/* ===== Bits ===== */

static void encode_all_fields(struct kunit *test)
{
	unsigned int heat, epoch, node;
	u16 rec;

	for (node = 0; node < 32; node++) {
		for (epoch = 0; epoch < 128; epoch++) {
			for (heat = 0; heat < 16; heat++) {
				rec = pghot_rec(heat, epoch, node);
				KUNIT_ASSERT_EQ(test, rec, node * 2048 + epoch * 16 + heat);
				KUNIT_ASSERT_EQ(test, pghot_rec_heat(rec), heat);
				KUNIT_ASSERT_EQ(test, pghot_rec_epoch(rec), epoch);
				KUNIT_ASSERT_EQ(test, pghot_rec_node(rec), node);
			}
		}
	}
}

static void decode_all_words(struct kunit *test)
{
	unsigned int word;
	u16 back;

	for (word = 0; word <= U16_MAX; word++) {
		back = pghot_rec(pghot_rec_heat(word), pghot_rec_epoch(word),
				 pghot_rec_node(word));
		KUNIT_ASSERT_EQ(test, back, word);
	}
}

/* Epochs are counted without an end: a record has the low bits of them. */
static void encode_wraps_epoch(struct kunit *test)
{
	static const unsigned int high[] = { 128, 256, 1U << 31, -128U };
	unsigned int i, epoch;

	for (i = 0; i < ARRAY_SIZE(high); i++)
		for (epoch = 0; epoch < 128; epoch++)
			KUNIT_ASSERT_EQ(test, pghot_rec(5, epoch + high[i], 9),
					pghot_rec(5, epoch, 9));
}

/* ===== Ageing ===== */

/* Whatever a word says, what follows from it is in range and consistent. */
static void age_all_words(struct kunit *test)
{
	unsigned int word, a, heat, age, now, grace, epoch;

	for (word = 0; word <= U16_MAX; word++) {
		heat = word % 16;
		/* Ages 0..6 and those just before the wrap. */
		for (a = 0; a < 9; a++) {
			age = a < 7 ? a : 126 + a - 7;
			epoch = word / 16 % 128 + age;
			/* Just before the wrap the record is newer than that. */
			if (age >= 120)
				age = 0;
			now = pghot_rec_heat_now(word, epoch);
			grace = pghot_rec_heat_grace(word, epoch);

			KUNIT_ASSERT_EQ(test, pghot_rec_age(word, epoch), age);
			KUNIT_ASSERT_EQ_MSG(test, now, age < 4 ? heat >> age : 0,
					    "word %#x, age %u", word, age);
			KUNIT_ASSERT_EQ_MSG(test, grace,
					    age < 2 ? heat : age < 5 ? heat >> (age - 1) : 0,
					    "word %#x, age %u", word, age);
			KUNIT_ASSERT_EQ(test, pghot_rec_is_denied(word, epoch),
					word / 2048 == 31 && age < 2);
			KUNIT_ASSERT_EQ(test, pghot_rec_is_demoted(word, epoch),
					word / 2048 == 29 && age < 5);
		}
	}
}

/* The example at the top of record.h, line by line. */
static void worked_example(struct kunit *test)
{
	const struct pghot_clock clk = { .len = 3 * HZ };
	u16 rec = 0;

#define EPOCH(second)	pghot_clock_epoch(&clk, (second) * HZ)
	rec = pghot_rec_touch(rec, EPOCH(0), 0, 1);
	KUNIT_EXPECT_EQ(test, rec, pghot_rec(1, 0, 0));
	rec = pghot_rec_touch(rec, EPOCH(1), 0, 1);
	KUNIT_EXPECT_EQ(test, rec, pghot_rec(2, 0, 0));
	rec = pghot_rec_touch(rec, EPOCH(2), 0, 1);
	KUNIT_EXPECT_EQ(test, rec, pghot_rec(3, 0, 0));
	KUNIT_EXPECT_EQ(test, pghot_rec_age(rec, EPOCH(4)), 1);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat_grace(rec, EPOCH(4)), 3);
	KUNIT_EXPECT_EQ(test, pghot_rec_age(rec, EPOCH(7)), 2);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat_grace(rec, EPOCH(7)), 1);
	rec = pghot_rec_touch(rec, EPOCH(10), 0, 1);
	KUNIT_EXPECT_EQ(test, rec, pghot_rec(1, 3, 0));
#undef EPOCH
}

/*
 * The reference: a page with its heat written out, halved epoch by epoch. It
 * forgets, as a record does, that 128 epochs have passed, and takes itself for
 * newer than now from 120 on.
 */
struct model {
	unsigned int	touched;	/* heat when it was touched last */
	unsigned int	heat;		/* what is left of it */
	unsigned int	before;		/* what was left an epoch ago */
	unsigned int	idle;		/* epochs without a touch */
	unsigned int	node;
};

static void model_tick(struct model *m)
{
	m->before = m->heat;
	m->heat /= 2;
	if (++m->idle >= 120) {
		m->heat = m->touched;
		m->before = m->touched;
	}
	m->idle %= 128;
}

static void model_set(struct model *m, unsigned int heat, unsigned int node)
{
	*m = (struct model) {
		.touched = heat, .heat = heat, .before = heat, .node = node,
	};
}

static bool model_denied(const struct model *m)
{
	return m->node == PGHOT_NODE_DENIED && (m->idle <= 1 || m->idle >= 120);
}

static void model_touch(struct model *m, unsigned int node, unsigned int count)
{
	unsigned int heat = m->heat, idle = heat && m->idle >= 120 ? m->idle : 0;

	if (model_denied(m))
		return;
	for (; count && heat < 15; count--)
		heat++;
	model_set(m, heat, node);
	m->idle = idle;
}

/* Idle gaps: mostly short, some near the wrap, some beyond it. */
static unsigned int random_gap(struct rnd_state *rnd)
{
	switch (pghot_random(rnd, 8)) {
	case 0:
		return 120 + pghot_random(rnd, 20);
	case 1:
		return pghot_random(rnd, 600);
	default:
		return pghot_random(rnd, 6);
	}
}

static void age_like_model(struct kunit *test)
{
	unsigned int seed, step, epoch, gap, node, count;
	struct rnd_state rnd;
	struct model m;
	u16 rec;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		/* Some near the end of unsigned int. */
		epoch = seed % 4 ? prandom_u32_state(&rnd) : -1000U;
		rec = 0;
		m = (struct model) { .idle = epoch % 128 };

		for (step = 0; step < 3000; step++) {
			switch (pghot_random(&rnd, 8)) {
			case 0:
				/* A visit that finds it must not move. */
				rec = pghot_rec_denied(epoch);
				model_set(&m, 0, PGHOT_NODE_DENIED);
				break;
			case 1:
			case 2:
			case 3:
				gap = random_gap(&rnd);
				epoch += gap;
				while (gap--)
					model_tick(&m);
				break;
			default:
				node = pghot_random(&rnd, PGHOT_NODE_DENIED);
				count = 1 + pghot_random(&rnd, 3);
				if (!pghot_random(&rnd, 50))
					count = 1 + prandom_u32_state(&rnd) / 2;
				rec = pghot_rec_touch(rec, epoch, node, count);
				model_touch(&m, node, count);
				break;
			}
			KUNIT_ASSERT_EQ_MSG(test, pghot_rec_heat_now(rec, epoch), m.heat,
					    "seed %u, step %u", seed, step);
			KUNIT_ASSERT_EQ_MSG(test, pghot_rec_heat_grace(rec, epoch), m.before,
					    "seed %u, step %u", seed, step);
			KUNIT_ASSERT_EQ_MSG(test, pghot_rec_is_denied(rec, epoch),
					    model_denied(&m), "seed %u, step %u", seed, step);
			KUNIT_ASSERT_EQ_MSG(test, pghot_rec_node(rec), m.node,
					    "seed %u, step %u", seed, step);
		}
	}
}

/*
 * The documented limit: for twelve of 128 epochs, an old page looks as it did when
 * it was touched; at all other times it is cold.
 */
static void alias_limit(struct kunit *test)
{
	unsigned int start, age, aliases;
	u16 rec;

	for (start = 0; start < 128; start++) {
		rec = pghot_rec_touch(0, start, 3, 15);
		aliases = 0;
		for (age = 4; age < 4 + 128; age++) {
			if (!pghot_rec_heat_now(rec, start + age))
				continue;
			aliases++;
			KUNIT_ASSERT_GE(test, age, 120);
			KUNIT_ASSERT_EQ(test, pghot_rec_heat_now(rec, start + age),
					age < 128 ? 15 : 15 >> (age - 128));
		}
		KUNIT_ASSERT_EQ(test, aliases, 12);
	}
}

/* Who comes late, or looked at the clock before the touch, does no harm. */
static void late_is_not_old(struct kunit *test)
{
	unsigned int epoch, late;
	u16 rec, denied;

	for (epoch = 0; epoch < 256; epoch++) {
		rec = pghot_rec(9, epoch, 3);
		denied = pghot_rec_denied(epoch);
		for (late = 1; late <= 8; late++) {
			KUNIT_ASSERT_EQ(test, pghot_rec_heat_now(rec, epoch - late), 9);
			KUNIT_ASSERT_EQ(test, pghot_rec_heat_grace(rec, epoch - late), 9);
			/* It adds, and the record's time stands. */
			KUNIT_ASSERT_EQ(test, pghot_rec_touch(rec, epoch - late, 5, 1),
					pghot_rec(10, epoch, 5));
			KUNIT_ASSERT_EQ(test, pghot_rec_touch(denied, epoch - late, 5, 1),
					denied);
		}
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_now(rec, epoch - 9), 0);
	}
}

/* ===== Touches ===== */

static void touch_saturates(struct kunit *test)
{
	static const unsigned int counts[] = { 1, 2, 7, 14, 15, 16, 17, 255,
					       INT_MAX, UINT_MAX - 1, UINT_MAX };
	unsigned int heat, i;
	u16 rec;

	for (heat = 0; heat <= 15; heat++) {
		for (i = 0; i < ARRAY_SIZE(counts); i++) {
			rec = pghot_rec_touch(pghot_rec(heat, 77, 4), 77, 5, counts[i]);
			KUNIT_ASSERT_EQ(test, rec,
					pghot_rec(min_t(u64, (u64)heat + counts[i], 15), 77, 5));
		}
	}
}

/* Many at once are as many one by one. */
static void touch_count_is_repetition(struct kunit *test)
{
	unsigned int word, count, epoch, i;
	u16 rec;

	for (word = 0; word <= U16_MAX; word += 3) {
		count = 1 + word % 17;
		epoch = word / 16 + word % 5;
		rec = word;
		for (i = 0; i < count; i++)
			rec = pghot_rec_touch(rec, epoch, 6, 1);
		KUNIT_ASSERT_EQ_MSG(test, pghot_rec_touch(word, epoch, 6, count), rec,
				    "word %#x, count %u", word, count);
	}
}

/* A threshold of n is reached by touch n of an epoch, not before. */
static void threshold_crossing(struct kunit *test)
{
	unsigned int threshold, touches, start;
	u16 rec;

	for (threshold = 1; threshold <= 15; threshold++) {
		/* What was there before has cooled, whatever it was. */
		for (start = 0; start <= 15; start++) {
			rec = pghot_rec(start, 100, 1);
			for (touches = 1; touches <= 15; touches++) {
				rec = pghot_rec_touch(rec, 104, 1, 1);
				KUNIT_ASSERT_EQ_MSG(test,
						    pghot_rec_heat_now(rec, 104) >= threshold,
						    touches >= threshold,
						    "threshold %u, touch %u", threshold, touches);
			}
		}
	}
}

/* k touches in each window: heat settles between k and 2k. */
static void steady_heat(struct kunit *test)
{
	unsigned int k, start, epoch, heat;
	u16 rec;

	for (k = 1; k <= 15; k++) {
		for (start = 0; start <= 15; start++) {
			rec = pghot_rec(start, 0, 0);
			for (epoch = 1; epoch < 300; epoch++) {
				rec = pghot_rec_touch(rec, epoch, 0, k);
				if (epoch < 8)
					continue;
				heat = pghot_rec_heat(rec);
				KUNIT_ASSERT_GE(test, heat, k);
				KUNIT_ASSERT_LE(test, heat, 2 * k);
			}
		}
	}
}

/* A candidate keeps its heat until the end of the epoch after its last touch. */
static void grace_epoch(struct kunit *test)
{
	unsigned int heat;
	u16 rec;

	for (heat = 1; heat <= 15; heat++) {
		rec = pghot_rec(heat, 126, 0);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_grace(rec, 126), heat);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_grace(rec, 127), heat);
		/* Across the wrap. */
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_grace(rec, 128), heat / 2);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_grace(rec, 129), heat / 4);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_grace(rec, 130), heat / 8);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_grace(rec, 131), 0);
	}
}

/* ===== Denied ===== */

static void denied_ignores_touches(struct kunit *test)
{
	unsigned int epoch;
	u16 rec;

	for (epoch = 0; epoch < 256; epoch++) {
		rec = pghot_rec_denied(epoch);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_now(rec, epoch), 0);
		KUNIT_ASSERT_EQ(test, pghot_rec_touch(rec, epoch, 2, 15), rec);
		KUNIT_ASSERT_EQ(test, pghot_rec_touch(rec, epoch + 1, 2, 15), rec);
		/* Then it gets another chance, from nothing. */
		KUNIT_ASSERT_EQ(test, pghot_rec_touch(rec, epoch + 2, 2, 1),
				pghot_rec(1, epoch + 2, 2));
	}
}

/* No touch makes a denied record: not even one from the code without a node. */
static void touch_never_denies(struct kunit *test)
{
	unsigned int word, epoch;
	u16 rec;

	for (word = 0; word <= U16_MAX; word++) {
		epoch = word / 16 % 128 + 2;
		rec = pghot_rec_touch(word, epoch, word % PGHOT_NODE_DENIED, 1);
		KUNIT_ASSERT_FALSE(test, pghot_rec_is_denied(rec, epoch));
		KUNIT_ASSERT_EQ(test, pghot_rec_node(rec), word % PGHOT_NODE_DENIED);
		KUNIT_ASSERT_GE(test, pghot_rec_heat(rec), 1);
	}
}

/* A page that was demoted is cold, and is touched for the first time once. */
static void demoted_until_touched(struct kunit *test)
{
	unsigned int epoch, later, node;
	u16 rec, touched;

	for (epoch = 0; epoch < 128; epoch++) {
		rec = pghot_rec_demoted(epoch);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat(rec), 0);
		KUNIT_ASSERT_FALSE(test, pghot_rec_is_denied(rec, epoch));
		for (later = 0; later < 128; later++) {
			KUNIT_ASSERT_EQ(test, pghot_rec_is_demoted(rec, epoch + later),
					later <= 4 || later >= 120);
			node = later % PGHOT_NR_DRAM;
			touched = pghot_rec_touch(rec, epoch + later, node, 1);
			KUNIT_ASSERT_EQ(test, touched, pghot_rec(1, epoch + later, node));
			KUNIT_ASSERT_FALSE(test, pghot_rec_is_demoted(touched, epoch + later));
		}
	}
}

static struct kunit_case record_cases[] = {
	KUNIT_CASE(encode_all_fields),
	KUNIT_CASE(decode_all_words),
	KUNIT_CASE(encode_wraps_epoch),
	KUNIT_CASE(age_all_words),
	KUNIT_CASE(worked_example),
	KUNIT_CASE(age_like_model),
	KUNIT_CASE(alias_limit),
	KUNIT_CASE(late_is_not_old),
	KUNIT_CASE(touch_saturates),
	KUNIT_CASE(touch_count_is_repetition),
	KUNIT_CASE(threshold_crossing),
	KUNIT_CASE(steady_heat),
	KUNIT_CASE(grace_epoch),
	KUNIT_CASE(denied_ignores_touches),
	KUNIT_CASE(touch_never_denies),
	KUNIT_CASE(demoted_until_touched),
	{}
};

static struct kunit_suite record_suite = {
	.name		= "pghot_record",
	.test_cases	= record_cases,
};

kunit_test_suite(record_suite);
