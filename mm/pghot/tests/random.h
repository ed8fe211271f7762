/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers for tests. Seeds are fixed and part of each message: a failure
 * comes back in the next run.
 */
#ifndef _MM_PGHOT_TESTS_RANDOM_H
#define _MM_PGHOT_TESTS_RANDOM_H

#include <linux/jiffies.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/types.h>

#define PGHOT_NR_SEEDS		16

/* A number below @ceil. */
static inline u32 pghot_random(struct rnd_state *rnd, u32 ceil)
{
	return prandom_u32_state(rnd) % ceil;
}

static inline u64 pghot_random64(struct rnd_state *rnd)
{
	return (u64)prandom_u32_state(rnd) << 32 | prandom_u32_state(rnd);
}

/* A rate that the knob may have, in bytes per second. */
static inline u64 pghot_random_rate(struct rnd_state *rnd)
{
	return (u64)SZ_1M << pghot_random(rnd, 21);
}

/* A jiffies value from which the end of jiffies is near, in half of all cases. */
static inline unsigned long pghot_random_start(struct rnd_state *rnd)
{
	return pghot_random(rnd, 2) ? pghot_random64(rnd) :
				      -1UL - pghot_random(rnd, 1000 * HZ);
}

#endif /* _MM_PGHOT_TESTS_RANDOM_H */
