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
 *
 * Candidates that could not be moved at their last visit (busy, pinned, no room) are
 * tried again, but do not count: or a few that are hotter than all others and can never
 * be moved would take the whole budget and not use it.
 *
 * Feedback
 * --------
 *
 * Where more is hot than DRAM holds, each page that goes up pushes another one
 * down that is hot as well and comes back: programs pay for both ways and gain
 * nothing. Pages that are accessed soon after they were demoted tell. In each
 * promote window, with P pages promoted and D pages accessed that were demoted
 * no more than four windows ago,
 *
 *   4 * D > P   the rate falls to half of that at which the P pages were
 *               promoted, or less;
 *   else        it doubles, up to promote_rate_limit_MBps.
 *
 * The rate is the limit divided by a power of two, at most 256: promotion never
 * stops, or nobody would find out that it pays again. A rate that is lower than that
 * by itself does no harm and says nothing.
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

/* The rate is at least the limit divided by two to the power of this. */
#define PGHOT_MAX_THROTTLE	8

struct pghot_feedback {
	unsigned int	throttle;	/* rate = limit >> throttle */
	unsigned long	since;		/* jiffies at the begin of the window */
	unsigned long	promoted;	/* pages, counted until then */
	unsigned long	demoted_hot;
};

/*
 * The throttle after a window in which @promoted pages were promoted, @rate bytes a
 * second, and @demoted_hot were accessed after their demotion.
 */
static inline unsigned int pghot_throttle(unsigned int throttle, u64 limit, u64 rate,
					  unsigned long promoted,
					  unsigned long demoted_hot)
{
	if (demoted_hot <= promoted / 4 || rate < limit >> (PGHOT_MAX_THROTTLE + 1))
		return throttle ? throttle - 1 : 0;

	while (throttle < PGHOT_MAX_THROTTLE) {
		throttle++;
		if (limit >> throttle <= rate / 2)
			break;
	}
	return throttle;
}

/*
 * Look at what came of promotion, if @window jiffies are over. @promoted and
 * @demoted_hot count from the beginning. Returns the rate that @limit and the
 * feedback allow.
 */
static inline u64 pghot_feedback_rate(struct pghot_feedback *f, unsigned long now,
				      unsigned long window, u64 limit,
				      unsigned long promoted,
				      unsigned long demoted_hot)
{
	unsigned long dt = now - f->since, nr = promoted - f->promoted;
	unsigned int throttle;

	if (dt >= max(window, 1UL)) {
		throttle = pghot_throttle(f->throttle, limit,
					  div64_ul((u64)nr * PAGE_SIZE * HZ, dt),
					  nr, demoted_hot - f->demoted_hot);
		WRITE_ONCE(f->throttle, throttle);
		f->since = now;
		f->promoted = promoted;
		f->demoted_hot = demoted_hot;
	}
	return limit >> f->throttle;
}

/* There was nothing to promote for @dt jiffies: windows in which all was well. */
static inline void pghot_feedback_idle(struct pghot_feedback *f, unsigned long dt,
				       unsigned long window)
{
	WRITE_ONCE(f->throttle, f->throttle - min_t(unsigned long, f->throttle,
						    dt / max(window, 1UL)));
}

struct pghot_rank {
	unsigned long	pages[PGHOT_HEAT_MAX + 1];	/* candidates by heat */
	unsigned int	cutoff;		/* lowest heat that is promoted */
	unsigned long	quota;		/* pages to take at the cutoff */
};

/* Pages by heat that were visited and could not be moved. */
struct pghot_stuck {
	unsigned long	pages[PGHOT_HEAT_MAX + 1];
};

/* Leave @stuck out of the ranking. */
static inline void pghot_rank_discount(struct pghot_rank *r,
				       const struct pghot_stuck *stuck)
{
	unsigned int heat;

	for (heat = 0; heat <= PGHOT_HEAT_MAX; heat++)
		r->pages[heat] -= min(r->pages[heat], stuck->pages[heat]);
}

/*
 * Remember what was found stuck in a cycle, in which candidates from @cutoff on were
 * visited: @all of them, or as many as the budget allowed. Who was not visited may
 * or may not be as before: believe a little less of it.
 */
static inline void pghot_stuck_update(struct pghot_stuck *stuck,
				      const struct pghot_stuck *found,
				      unsigned int cutoff, bool all)
{
	unsigned long old;
	unsigned int heat;

	for (heat = cutoff; heat <= PGHOT_HEAT_MAX; heat++) {
		old = all ? 0 : stuck->pages[heat] - DIV_ROUND_UP(stuck->pages[heat], 8);
		stuck->pages[heat] = max(old, found->pages[heat]);
	}
}

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
