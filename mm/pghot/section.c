// SPDX-License-Identifier: GPL-2.0
/*
 * Records come and go with memory sections.
 *
 * A section that has lower-tier memory has records while a source is enabled.
 * They live in DRAM, as near as possible. Without memory for them the section
 * goes without: its pages are not tracked.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/gfp.h>
#include <linux/memory-tiers.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"

#define PGHOT_RECORDS_BYTES	(PAGES_PER_SECTION * sizeof(u16))
#define PGHOT_READY_BYTES	(BITS_TO_LONGS(PAGES_PER_SECTION) * sizeof(long))
#define PGHOT_SECTION_BYTES	(sizeof(struct pghot_section) +		\
				 PGHOT_RECORDS_BYTES + PGHOT_READY_BYTES)

/* Sections with records; how often there was no memory for some. */
static unsigned long pghot_nr_sections;
static unsigned long pghot_nr_failed;

unsigned long pghot_bytes_in_use(void)
{
	return READ_ONCE(pghot_nr_sections) * PGHOT_SECTION_BYTES;
}

unsigned long pghot_alloc_failures(void)
{
	return READ_ONCE(pghot_nr_failed);
}

static void pghot_free_section(struct pghot_section *sec)
{
	kvfree(sec->records);
	kfree(sec->ready);
	kfree(sec);
}

/* Allocate from @nid only: never from the memory that is described. */
static struct pghot_section *pghot_alloc_section_on(int nid)
{
	gfp_t gfp = GFP_KERNEL | __GFP_THISNODE | __GFP_NORETRY | __GFP_NOWARN |
		    __GFP_ZERO;
	struct pghot_section *sec;

	sec = kmalloc_node(sizeof(*sec), gfp, nid);
	if (!sec)
		return NULL;

	INIT_LIST_HEAD(&sec->link);
	sec->ready = kmalloc_node(PGHOT_READY_BYTES, gfp, nid);
	sec->records = kvmalloc_node(PGHOT_RECORDS_BYTES, gfp, nid);
	if (!sec->ready || !sec->records) {
		pghot_free_section(sec);
		return NULL;
	}
	return sec;
}

static struct pghot_section *pghot_alloc_section(int nid)
{
	struct pghot_section *sec = NULL;
	nodemask_t dram;
	int target;

	pghot_dram_nodes(&dram);
	while (!sec) {
		target = pghot_nearest(nid, &dram, pghot_distance);
		if (target == NUMA_NO_NODE)
			break;
		sec = pghot_alloc_section_on(target);
		node_clear(target, dram);
	}
	return sec;
}

/*
 * A node whose kmigrated can look after section @nr, or NULL. Sections may span
 * nodes: any lower-tier page will do.
 */
static struct pghot_node *pghot_section_node(unsigned long nr)
{
	unsigned long pfn = section_nr_to_pfn(nr);
	unsigned long end = pfn + PAGES_PER_SECTION;
	struct pghot_node *node;
	struct page *page;

	for (; pfn < end; pfn += pageblock_nr_pages) {
		page = pfn_to_online_page(pfn);
		if (!page)
			continue;
		node = pghot_get_node(page_to_nid(page));
		if (node && node->task)
			return node;
	}
	return NULL;
}

static void pghot_add_section(unsigned long nr)
{
	struct pghot_section *sec;
	struct pghot_node *node;

	if (!online_section_nr(nr) || xa_load(&pghot_sections, nr))
		return;
	node = pghot_section_node(nr);
	if (!node)
		return;

	sec = pghot_alloc_section(node->nid);
	if (!sec)
		goto failed;

	sec->start_pfn = section_nr_to_pfn(nr);
	sec->node = node;
	if (xa_err(xa_store(&pghot_sections, nr, sec, GFP_KERNEL | __GFP_NOWARN))) {
		pghot_free_section(sec);
		goto failed;
	}
	WRITE_ONCE(node->nr_sections, node->nr_sections + 1);
	WRITE_ONCE(pghot_nr_sections, pghot_nr_sections + 1);
	return;

failed:
	WRITE_ONCE(pghot_nr_failed, pghot_nr_failed + 1);
	pr_warn_once("no memory for records of section %lu on node %d: its pages are not tracked\n",
		     nr, node->nid);
}

/*
 * Give records to the sections in a range that have lower-tier memory and none
 * yet. Memory does not come or go meanwhile.
 */
void pghot_add_sections(unsigned long start_pfn, unsigned long end_pfn)
{
	unsigned long nr = pfn_to_section_nr(start_pfn);

	lockdep_assert_held(&pghot_lock);

	for (; section_nr_to_pfn(nr) < end_pfn; nr++) {
		pghot_add_section(nr);
		cond_resched();
	}
}

/* The same for all of @node. Returns 0, or -EINTR if the task is being killed. */
int pghot_add_node_sections(struct pghot_node *node)
{
	unsigned long end = node_end_pfn(node->nid);
	unsigned long pfn = node_start_pfn(node->nid);

	for (; pfn < end; pfn += PAGES_PER_SECTION) {
		if (fatal_signal_pending(current))
			return -EINTR;
		pghot_add_sections(pfn, min(pfn + PAGES_PER_SECTION, end));
	}
	return 0;
}

/*
 * Take @sec off the lists of @node, together with whatever else is dead there.
 * Others stay on the list of those that are ready: kmigrated wakes up for that one
 * only, and a section that is queued is not queued again.
 */
static void pghot_forget_section(struct pghot_node *node, struct pghot_section *sec)
{
	struct pghot_section *pos, *next;

	lockdep_assert_held(&node->lock);

	llist_for_each_entry_safe(pos, next, llist_del_all(&node->ready), queue)
		if (!test_bit(PGHOT_SECTION_DEAD, &pos->flags))
			llist_add(&pos->queue, &node->ready);
	list_del_init(&sec->link);
	if (!llist_empty(&node->ready))
		wake_up(&node->wait);
}

/*
 * Take the records of a range away, those of @node only if that is not NULL.
 * Nobody uses them any more on return.
 */
void pghot_remove_sections(unsigned long start_pfn, unsigned long end_pfn,
			   struct pghot_node *node)
{
	struct pghot_section *sec, *next;
	unsigned long nr;
	LIST_HEAD(dead);

	lockdep_assert_held(&pghot_lock);

	if (start_pfn >= end_pfn)
		return;

	xa_for_each_range(&pghot_sections, nr, sec, pfn_to_section_nr(start_pfn),
			  pfn_to_section_nr(end_pfn - 1)) {
		if (node && sec->node != node)
			continue;
		xa_erase(&pghot_sections, nr);
		set_bit(PGHOT_SECTION_DEAD, &sec->flags);
		list_add_tail(&sec->dead, &dead);
	}
	if (list_empty(&dead))
		return;

	/* From here on, no access is recorded there and nothing queued. */
	synchronize_rcu();

	list_for_each_entry_safe(sec, next, &dead, dead) {
		node = sec->node;
		/* kmigrated holds on to sections only with the lock held. */
		scoped_guard(mutex, &node->lock)
			pghot_forget_section(node, sec);
		pghot_free_section(sec);
		WRITE_ONCE(node->nr_sections, node->nr_sections - 1);
		WRITE_ONCE(pghot_nr_sections, pghot_nr_sections - 1);
		cond_resched();
	}
}
