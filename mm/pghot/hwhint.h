/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accesses that hardware sampled: what becomes of a sample.
 *
 * A unit of the processor interrupts the CPU once in a period of operations and
 * tells of one of them: did it access memory, which address, where did the data
 * come from? Each such sample is counted in hwhint_total_events and comes to one
 * end, which has a counter too:
 *
 *   invalid	it was no access to memory, or the unit does not say which
 *   kernel	the kernel did it, or for a kernel thread
 *   cache	a cache had the data: the page costs nothing where it is
 *   dram	the page is in DRAM already
 *   unrecorded	it is in extended memory that has no records: device memory, or
 *		there was no memory for records
 *   denied	cpuset or mempolicy of the task exclude all DRAM
 *   dropped	the ring of the CPU was full
 *   useful	it was reported to pghot
 *
 * All but the last one are decided in the interrupt. What is left goes through a
 * ring of the CPU to a thread that reports it, so that the sampled program does
 * not wait for that. Until then the sample is in no counter but the total.
 *
 * The page's own address decides in which tier it is. The unit's word for where
 * the data came from is not good enough for that: it knows no tiers, and knows
 * nothing at all of stores.
 */
#ifndef _MM_PGHOT_HWHINT_H
#define _MM_PGHOT_HWHINT_H

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/pghot.h>
#include <linux/types.h>

#include <asm/barrier.h>

struct attribute_group;
struct cpumask;

/* Ends of a sample; PGHOT_HINT_ON: none yet. The order is that of the events. */
enum pghot_hint_end {
	PGHOT_HINT_USEFUL,
	PGHOT_HINT_DROPPED,
	PGHOT_HINT_IN_DRAM,
	PGHOT_HINT_IN_CACHE,
	PGHOT_HINT_INVALID,
	PGHOT_HINT_KERNEL,
	PGHOT_HINT_DENIED,
	PGHOT_HINT_UNRECORDED,
	PGHOT_HINT_NR_ENDS,
	PGHOT_HINT_ON = PGHOT_HINT_NR_ENDS,
};

/*
 * What the sample alone tells. @user: the current task is a user's program;
 * addresses of it are below @limit.
 */
static inline enum pghot_hint_end
pghot_hint_judge_sample(const struct pghot_hint *hint, bool user, unsigned long limit)
{
	if (hint->kind == PGHOT_HINT_NONE || hint->level == PGHOT_HINT_DEVICE ||
	    !hint->phys_valid || !hint->addr_valid)
		return PGHOT_HINT_INVALID;
	/* To a virtual machine all addresses are its own. */
	if (!user || (!hint->guest && hint->addr >= limit))
		return PGHOT_HINT_KERNEL;
	if (hint->level == PGHOT_HINT_CACHE)
		return PGHOT_HINT_IN_CACHE;
	return PGHOT_HINT_ON;
}

/*
 * What its page tells. @recorded: it has a record, which makes it lower-tier
 * memory; @may: the task may use DRAM.
 */
static inline enum pghot_hint_end
pghot_hint_judge_page(const struct pghot_hint *hint, bool recorded, bool may)
{
	if (!recorded)
		return hint->level == PGHOT_HINT_EXTMEM ? PGHOT_HINT_UNRECORDED :
							  PGHOT_HINT_IN_DRAM;
	return may ? PGHOT_HINT_ON : PGHOT_HINT_DENIED;
}

/* ===== Rings ===== */

/*
 * Room for so many samples of a CPU. They are fetched PGHOT_HINT_BATCH_MS after
 * the first one, or when half of it is used.
 */
#define PGHOT_HINT_RING_SIZE	512
#define PGHOT_HINT_BATCH_MS	20

static_assert((PGHOT_HINT_RING_SIZE & (PGHOT_HINT_RING_SIZE - 1)) == 0);

/**
 * struct pghot_hint_entry - a sample on its way
 * @pfn: page frame.
 * @addr: address, or 0 if it is none of the process.
 * @tgid: number of the process in the initial namespace.
 */
struct pghot_hint_entry {
	unsigned long	pfn;
	unsigned long	addr;
	pid_t		tgid;
};

/**
 * struct pghot_hint_ring - samples of a CPU that wait to be reported
 * @head: how many were put in, written by the CPU.
 * @tail: how many were taken out, written by the thread.
 * @entries: the samples, in the order of their numbers.
 *
 * One writer, which nothing interrupts that writes too, and one reader.
 */
struct pghot_hint_ring {
	unsigned int		head;
	unsigned int		tail ____cacheline_aligned_in_smp;
	struct pghot_hint_entry	entries[PGHOT_HINT_RING_SIZE];
};

/* Put in a sample. Returns how many are there now, or 0 if there is no room. */
static inline unsigned int pghot_hint_put(struct pghot_hint_ring *ring,
					  const struct pghot_hint_entry *entry)
{
	unsigned int head = ring->head;
	/* Pairs with the release in pghot_hint_get(): the slot has been read. */
	unsigned int used = head - smp_load_acquire(&ring->tail);

	if (used >= PGHOT_HINT_RING_SIZE)
		return 0;
	ring->entries[head % PGHOT_HINT_RING_SIZE] = *entry;
	/* Pairs with the acquire in pghot_hint_get(): the slot has been written. */
	smp_store_release(&ring->head, head + 1);
	return used + 1;
}

/* Take out the oldest one. Returns false if there is none. */
static inline bool pghot_hint_get(struct pghot_hint_ring *ring,
				  struct pghot_hint_entry *entry)
{
	unsigned int tail = ring->tail;

	/* Pairs with the release in pghot_hint_put(). */
	if (tail == smp_load_acquire(&ring->head))
		return false;
	*entry = ring->entries[tail % PGHOT_HINT_RING_SIZE];
	/* Pairs with the acquire in pghot_hint_put(). */
	smp_store_release(&ring->tail, tail + 1);
	return true;
}

/* ===== The source ===== */

/* Most of the CPU time that the controller may be given, in 1/1000. */
#define PGHOT_HINT_BUDGET_MAX	200

/**
 * struct pghot_hint_cost - what sampling took since the boot
 * @irq_ns: time in the units' interrupt handlers, of all CPUs.
 * @drain_ns: CPU time of the thread that reports.
 * @samples: samples that were taken.
 * @useful: samples that were reported.
 */
struct pghot_hint_cost {
	u64	irq_ns;
	u64	drain_ns;
	u64	samples;
	u64	useful;
};

/* hwhint.c */
extern const struct attribute_group pghot_hint_group;

void pghot_hint_count(const struct pghot_hint *hint, bool user);
void pghot_hint_get_cost(struct pghot_hint_cost *cost);
unsigned long pghot_hint_times_given_way(void);
unsigned long pghot_hint_times_paused(void);
void pghot_hint_nudge(void);
bool pghot_hint_looks_around(void);
void pghot_hint_set_look_around(bool on);

/* hwhint-rate.c */
extern unsigned int pghot_hint_share;

int pghot_hint_start(void);
void pghot_hint_stop(void);
void pghot_hint_resume(struct cpumask *paused);
void pghot_hint_tick(void);
long pghot_hint_patience(bool *any);
const struct pghot_hint_unit *pghot_hint_used_unit(void);
void pghot_hint_get_config(struct pghot_hint_config *config);
int pghot_hint_set_period(unsigned int period);
int pghot_hint_set_auto(void);
bool pghot_hint_is_auto(void);
unsigned int pghot_hint_get_budget(void);
void pghot_hint_set_budget(unsigned int permille);
int pghot_hint_set_latency(unsigned int latency);
int pghot_hint_set_l3miss(bool l3miss_only);

#endif /* _MM_PGHOT_HWHINT_H */
