/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What to promote when not everything can be: the byte budget, and the ranking
 * by heat. Arithmetic only, no state of its own.
 *
 * Budget
 * ------
 *
 * A token bucket in bytes. It fills with promote_rate_limit_MBps and holds what
 * two cycles of kmigratedN may spend. A folio may be taken as long as there is
 * anything in the bucket, which may so go into debt by one folio; the debt is
 * paid before the next one. In any stretch of t seconds, at most
 *
 *   rate * t + capacity + one folio
 *
 * bytes are promoted, and over a long time rate * t, less a part of a byte for each
 * refill.
 *
 * Ranking
 * -------
 *
 * If the candidates exceed the budget, their pages are counted by heat. All
 * candidates hotter than the cutoff fit; of those at the cutoff as many are
 * taken as the rest of the budget allows; the others wait.
 */
#ifndef _MM_PGHOT_POLICY_H
#define _MM_PGHOT_POLICY_H

#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "record.h"

struct pghot_bucket {
	s64		tokens;		/* bytes; negative: debt */
	unsigned long	last;		/* jiffies of the last refill */
};

/*
 * Fill @b up to @now. @rate is in bytes per second, at most 1 TiB/s, and
 * @capacity in bytes, at most 20 seconds' worth. A minute fills any bucket: more
 * need not be counted, which keeps the product in 64 bits.
 */
static inline void pghot_bucket_refill(struct pghot_bucket *b, unsigned long now,
				       u64 rate, u64 capacity)
{
	unsigned long dt = time_before(now, b->last) ? 0 : now - b->last;

	b->tokens += div_u64(rate * min_t(unsigned long, dt, 60 * HZ), HZ);
	b->tokens = min_t(s64, b->tokens, capacity);
	b->last = now;
}

static inline bool pghot_bucket_take(struct pghot_bucket *b, u64 bytes)
{
	if (b->tokens <= 0)
		return false;
	b->tokens -= bytes;
	return true;
}

/* What was taken and could not be used comes back. */
static inline void pghot_bucket_return(struct pghot_bucket *b, u64 bytes)
{
	b->tokens += bytes;
}

struct pghot_rank {
	unsigned long	pages[PGHOT_HEAT_MAX + 1];	/* candidates by heat */
	unsigned int	cutoff;		/* lowest heat that is promoted */
	unsigned long	quota;		/* pages to take at the cutoff */
};

/* Everything goes: no ranking needed. */
static inline void pghot_rank_all(struct pghot_rank *r)
{
	r->cutoff = 0;
	r->quota = ULONG_MAX;
}

/* Set cutoff and quota so that @budget pages, the hottest ones, are taken. */
static inline void pghot_rank_cut(struct pghot_rank *r, unsigned long budget)
{
	unsigned int heat;

	for (heat = PGHOT_HEAT_MAX; heat; heat--) {
		if (r->pages[heat] >= budget)
			break;
		budget -= r->pages[heat];
	}
	r->cutoff = heat;
	r->quota = budget;
}

#endif /* _MM_PGHOT_POLICY_H */
