/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hotness record: what is known of one page of a lower-tier node, in 16
 * bits.
 *
 *   bits 15..11   node    DRAM node that accessed last, as an index
 *   bits 10..4    epoch   when it was touched last, in promote windows
 *   bits  3..0    heat    touches, aged; 0: nothing is known
 *
 * Model
 * -----
 *
 * Time is divided into epochs as long as the promote window, counted modulo
 * 128. A touch in epoch e adds one to the heat, as far as 15, and stores e.
 * Heat halves with each epoch that begins without a touch: with
 * a = (now - epoch) mod 128, the heat now is
 *
 *   H(a) = heat >> a                  0 from a = 4 on
 *
 * A page that is touched k times in each window so settles between k and 2k.
 * It becomes a candidate for promotion when its heat reaches freq_threshold.
 * A candidate has until the end of the next epoch to be promoted, or a page
 * touched at the end of an epoch would have cooled before anybody could look:
 * it stays one while
 *
 *   C(a) = heat >> max(a - 1, 0)  >=  freq_threshold
 *
 * Nothing sweeps the records: age is computed when a record is touched or
 * visited next, and so a record on a page frame that was freed and used again
 * dies without a hook in the page allocator.
 *
 * Example, window 3 s, freq_threshold 3:
 *
 *   second  0: touch              epoch 0         heat 1
 *   second  1: touch              epoch 0  a = 0  heat 1 + 1 = 2
 *   second  2: touch              epoch 0  a = 0  heat 2 + 1 = 3, a candidate
 *   second  4: visited, busy      epoch 1  a = 1  C = 3, tried again later
 *   second  7: visited            epoch 2  a = 2  C = 3 >> 1 = 1, has cooled
 *   second 10: touch              epoch 3  a = 3  heat (3 >> 3) + 1 = 1
 *
 * An access may be reported late, and a visitor may have looked at the clock
 * before a page was touched: of the 128 values of a, the upper eight mean that the
 * record is newer than whoever asks, and count as a = 0.
 *
 * The limit of seven bits: what was not touched for 120 windows (6 minutes at the
 * default) looks as it did when it was touched, for twelve windows. A page whose
 * age is random is mistaken so with a probability of 12/128, and then needs fewer
 * touches than others.
 *
 * A page that must not be promoted (its owner's policy says so, or it cannot
 * be moved) would come back with each touch. It is marked denied, heat 0 and
 * node PGHOT_NODE_DENIED, and touches do not count in this epoch and the next.
 *
 * A page that comes from DRAM by demotion starts with heat 0 and node
 * PGHOT_NODE_DEMOTED. The first touch tells whether that was too early: so it
 * was if the mark is not older than four epochs, see policy.h.
 */
#ifndef _MM_PGHOT_RECORD_H
#define _MM_PGHOT_RECORD_H

#include <linux/bitfield.h>
#include <linux/build_bug.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define PGHOT_HEAT_MASK		GENMASK(3, 0)
#define PGHOT_EPOCH_MASK	GENMASK(10, 4)
#define PGHOT_NODE_MASK		GENMASK(15, 11)

#define PGHOT_HEAT_MAX		15
#define PGHOT_NR_EPOCHS		128
/* An epoch may be so many before that of a record and is taken as late. */
#define PGHOT_NR_LATE		8

/* Indices of DRAM nodes are 0..PGHOT_NR_DRAM - 1, then come codes. */
#define PGHOT_NR_DRAM		29
#define PGHOT_NODE_DEMOTED	29
#define PGHOT_NODE_NONE		30
#define PGHOT_NODE_DENIED	31

static_assert(PGHOT_HEAT_MASK == PGHOT_HEAT_MAX);
static_assert(PGHOT_EPOCH_MASK >> 4 == PGHOT_NR_EPOCHS - 1);
static_assert(PGHOT_NODE_MASK >> 11 == PGHOT_NODE_DENIED);

/*
 * What tells the epoch. Replaced as a whole when the window changes, so that
 * epochs go on counting from where they were.
 */
struct pghot_clock {
	unsigned long	base;	/* jiffies at which @epoch began */
	unsigned long	len;	/* length of an epoch, in jiffies, at least 1 */
	unsigned int	epoch;
};

static inline unsigned int pghot_clock_epoch(const struct pghot_clock *clk,
					     unsigned long now)
{
	/* A time stamp may be a little older than a new clock. */
	if (time_before(now, clk->base))
		return clk->epoch;

	return clk->epoch + (now - clk->base) / clk->len;
}

/*
 * A clock that goes on from @old at @now, with epochs of another length. What has
 * passed of the current epoch has passed of the new one too, so that time does
 * not stand still for who changes the length all the time.
 */
static inline struct pghot_clock pghot_clock_change(const struct pghot_clock *old,
						    unsigned long now,
						    unsigned long len)
{
	unsigned long part = time_before(now, old->base) ?
			     0 : (now - old->base) % old->len;

	len = max(len, 1UL);
	return (struct pghot_clock) {
		.base	= now - min(part, len - 1),
		.len	= len,
		.epoch	= pghot_clock_epoch(old, now),
	};
}

static inline u16 pghot_rec(unsigned int heat, unsigned int epoch,
			    unsigned int node)
{
	return FIELD_PREP(PGHOT_HEAT_MASK, heat) |
	       FIELD_PREP(PGHOT_EPOCH_MASK, epoch % PGHOT_NR_EPOCHS) |
	       FIELD_PREP(PGHOT_NODE_MASK, node);
}

static inline unsigned int pghot_rec_heat(u16 rec)
{
	return FIELD_GET(PGHOT_HEAT_MASK, rec);
}

static inline unsigned int pghot_rec_epoch(u16 rec)
{
	return FIELD_GET(PGHOT_EPOCH_MASK, rec);
}

static inline unsigned int pghot_rec_node(u16 rec)
{
	return FIELD_GET(PGHOT_NODE_MASK, rec);
}

/*
 * Is the record newer than @epoch? So it looks to who took the epoch before the
 * record was touched, or reports an access late.
 */
static inline bool pghot_rec_is_newer(u16 rec, unsigned int epoch)
{
	return (epoch - pghot_rec_epoch(rec)) % PGHOT_NR_EPOCHS >=
	       PGHOT_NR_EPOCHS - PGHOT_NR_LATE;
}

/* Epochs since the last touch, 0 for a record that is newer than @epoch. */
static inline unsigned int pghot_rec_age(u16 rec, unsigned int epoch)
{
	if (pghot_rec_is_newer(rec, epoch))
		return 0;
	return (epoch - pghot_rec_epoch(rec)) % PGHOT_NR_EPOCHS;
}

/* Heat has four bits: a shift by more is the same as by four. */
static inline unsigned int pghot_heat_after(unsigned int heat,
					    unsigned int epochs)
{
	return heat >> min(epochs, 4U);
}

/* H(a): the heat that is left of a record in @epoch. */
static inline unsigned int pghot_rec_heat_now(u16 rec, unsigned int epoch)
{
	return pghot_heat_after(pghot_rec_heat(rec), pghot_rec_age(rec, epoch));
}

/* C(a): the same with an epoch of grace, for who visits candidates. */
static inline unsigned int pghot_rec_heat_grace(u16 rec, unsigned int epoch)
{
	unsigned int age = pghot_rec_age(rec, epoch);

	return pghot_heat_after(pghot_rec_heat(rec), age ? age - 1 : 0);
}

static inline u16 pghot_rec_denied(unsigned int epoch)
{
	return pghot_rec(0, epoch, PGHOT_NODE_DENIED);
}

static inline bool pghot_rec_is_denied(u16 rec, unsigned int epoch)
{
	return pghot_rec_node(rec) == PGHOT_NODE_DENIED &&
	       pghot_rec_age(rec, epoch) <= 1;
}

/* How long a demotion is remembered, in epochs. */
#define PGHOT_DEMOTED_EPOCHS	4

static inline u16 pghot_rec_demoted(unsigned int epoch)
{
	return pghot_rec(0, epoch, PGHOT_NODE_DEMOTED);
}

/* Is it that of a page that was demoted a short time ago, and not touched since? */
static inline bool pghot_rec_is_demoted(u16 rec, unsigned int epoch)
{
	return pghot_rec_node(rec) == PGHOT_NODE_DEMOTED &&
	       pghot_rec_age(rec, epoch) <= PGHOT_DEMOTED_EPOCHS;
}

/* The record after @count touches from @node in @epoch. */
static inline u16 pghot_rec_touch(u16 rec, unsigned int epoch,
				  unsigned int node, unsigned int count)
{
	unsigned int heat;

	if (pghot_rec_is_denied(rec, epoch))
		return rec;

	heat = pghot_rec_heat_now(rec, epoch);
	/* A late report does not turn the record's time back. */
	if (heat && pghot_rec_is_newer(rec, epoch))
		epoch = pghot_rec_epoch(rec);
	heat += min(count, PGHOT_HEAT_MAX - heat);
	return pghot_rec(heat, epoch, node);
}

#endif /* _MM_PGHOT_RECORD_H */
