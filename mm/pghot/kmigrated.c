// SPDX-License-Identifier: GPL-2.0
/*
 * kmigratedN: the thread that promotes from lower-tier node N.
 *
 * It sleeps until there are candidates. The first ones are promoted at once.
 * After that it pauses between cycles so that batches form: first for an eighth
 * of kmigrated_sleep_ms, then longer and longer up to that, and not at all while
 * cycles fill a batch. Candidates that are left are looked at again after
 * kmigrated_sleep_ms, or later and later while nothing comes of it. However many
 * they are, looking at them in vain must not take more than a part of a CPU.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/err.h>
#include <linux/freezer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "internal.h"

/* The pause between looks at candidates doubles at most so often. */
#define PGHOT_MAX_BACKOFF	4

/* Looks at candidates that are not promoted, per second. */
#define PGHOT_VAIN_LOOKS	SZ_1M
/* The bucket must not hold more than 20 seconds' worth, see policy.h. */
#define PGHOT_MAX_PAUSE		(10UL * HZ)

/* A report filled an empty list. Hard interrupt, or a thread with PREEMPT_RT. */
void pghot_wake_kmigrated(struct irq_work *work)
{
	struct pghot_node *node = container_of(work, struct pghot_node, wake);

	wake_up(&node->wait);
}

static unsigned long pghot_sleep_jiffies(void)
{
	return msecs_to_jiffies(READ_ONCE(pghot_knobs.kmigrated_sleep_ms));
}

/* The pause after a cycle, @last being that before it. */
static unsigned long pghot_pause(struct pghot_node *node, unsigned long last,
				 unsigned long sleep)
{
	struct pghot_cycle *c = node->cycle;
	unsigned long vain, pause, window;

	if (c->limited)
		pause = sleep;
	else if (c->promoted &&
		 c->taken_folios >= READ_ONCE(pghot_knobs.kmigrated_batch_nr))
		pause = 0;
	else
		pause = clamp(2 * last, max(sleep / 8, 1UL), sleep);

	/* Longer than half a window, and candidates would cool meanwhile. */
	window = msecs_to_jiffies(READ_ONCE(pghot_knobs.promote_window_ms));
	vain = c->looks - min(c->looks, c->taken_folios);
	return max(pause, min3(mult_frac(vain, HZ, PGHOT_VAIN_LOOKS), window / 2,
			       PGHOT_MAX_PAUSE));
}

static int kmigrated(void *arg)
{
	unsigned long timeout = MAX_SCHEDULE_TIMEOUT, pause = 0, sleep;
	struct pghot_node *node = arg;
	unsigned long began, idle;
	bool left;

	set_freezable();
	while (!kthread_should_stop()) {
		if (timeout && llist_empty(&node->ready))
			pause = 0;
		began = jiffies;
		wait_event_freezable_timeout(node->wait,
					     kthread_should_stop() ||
					     !llist_empty(&node->ready),
					     timeout);
		if (kthread_should_stop())
			break;

		/* Without candidates, there was nothing to be slow with. */
		idle = timeout == MAX_SCHEDULE_TIMEOUT ? jiffies - began : 0;
		left = pghot_promote_cycle(node, idle);

		/* New candidates wait for the next cycle as well. */
		sleep = pghot_sleep_jiffies();
		pause = pghot_pause(node, pause, sleep);
		WRITE_ONCE(node->pause, pause);
		wait_event_freezable_timeout(node->wait, kthread_should_stop(), pause);
		timeout = MAX_SCHEDULE_TIMEOUT;
		if (left)
			timeout = max(sleep << min(node->idle_cycles, PGHOT_MAX_BACKOFF),
				      pause) - pause;
	}
	return 0;
}

/* Start the thread of @node. Returns 0 or a negative error number. */
int pghot_start_kmigrated(struct pghot_node *node)
{
	struct task_struct *task;
	nodemask_t dram;
	int nid, near;

	lockdep_assert_held(&pghot_lock);

	if (node->task)
		return 0;

	node->cycle = kvzalloc(struct_size(node->cycle, targets, nr_node_ids),
			       GFP_KERNEL);
	if (!node->cycle)
		return -ENOMEM;
	node->cycle->node = node;
	for (nid = 0; nid < nr_node_ids; nid++) {
		INIT_LIST_HEAD(&node->cycle->targets[nid].small);
		INIT_LIST_HEAD(&node->cycle->targets[nid].large);
	}

	/* Run where the pages go: nobody runs on a node without CPUs. */
	pghot_dram_nodes(&dram);
	near = pghot_nearest(node->nid, &dram, pghot_distance);
	task = kthread_create_on_node(kmigrated, node, near, "kmigrated%d", node->nid);
	if (IS_ERR(task)) {
		kvfree(node->cycle);
		node->cycle = NULL;
		return PTR_ERR(task);
	}
	if (near != NUMA_NO_NODE && !cpumask_empty(cpumask_of_node(near)))
		kthread_affine_preferred(task, cpumask_of_node(near));
	node->bucket = (struct pghot_bucket) { .last = jiffies };
	node->stuck = (struct pghot_stuck) {};
	node->pause = 0;
	node->feedback.since = jiffies;
	node->feedback.promoted = node->promoted;
	node->feedback.demoted_hot = atomic_long_read(&node->demoted_hot);
	WRITE_ONCE(node->feedback.throttle, 0);
	node->avg_pages = 1;
	node->idle_cycles = 0;
	node->last_drain = jiffies;
	node->task = task;
	wake_up_process(task);
	return 0;
}

/* Stop the thread of @node and wait for its cycle to end. */
void pghot_stop_kmigrated(struct pghot_node *node)
{
	lockdep_assert_held(&pghot_lock);

	if (!node->task)
		return;

	kthread_stop(node->task);
	node->task = NULL;
	kvfree(node->cycle);
	node->cycle = NULL;
}
