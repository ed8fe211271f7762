/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers for tests. Seeds are fixed and part of each message: a failure
 * comes back in the next run.
 */
#ifndef _MM_PGHOT_TESTS_RANDOM_H
#define _MM_PGHOT_TESTS_RANDOM_H

#include <linux/prandom.h>
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

#endif /* _MM_PGHOT_TESTS_RANDOM_H */
