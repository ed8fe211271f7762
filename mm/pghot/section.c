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

static struct pghot_table pghot_no_sections;

/* Written with pghot_lock held, read under RCU. */
struct pghot_table __rcu *pghot_sections __read_mostly =
	RCU_INITIALIZER(&pghot_no_sections);

/* Sections with records; how often there was no memory for some. */
static unsigned long pghot_nr_sections;
static unsigned long pghot_nr_failed;

static struct pghot_table *pghot_table(void)
{
	return rcu_dereference_protected(pghot_sections,
					 lockdep_is_held(&pghot_lock));
}

/* Sections and the table. */
unsigned long pghot_bytes_in_use(void)
{
	unsigned long bytes = READ_ONCE(pghot_nr_sections) * PGHOT_SECTION_BYTES;
	struct pghot_table *table;

	guard(rcu)();
	table = rcu_dereference(pghot_sections);
	if (table != &pghot_no_sections)
		bytes += struct_size(table, sections, table->nr);
	return bytes;
}

unsigned long pghot_alloc_failures(void)
{
	return READ_ONCE(pghot_nr_failed);
}

/*
 * Zeroed memory in DRAM, as near to @nid as possible: never in the memory that is
 * described. Or NULL.
 */
static void *pghot_alloc(int nid, size_t size)
{
	gfp_t gfp = GFP_KERNEL | __GFP_THISNODE | __GFP_NORETRY | __GFP_NOWARN |
		    __GFP_ZERO;
	nodemask_t dram;
	void *p = NULL;
	int target;

	pghot_dram_nodes(&dram);
	while (!p) {
		target = pghot_nearest(nid, &dram, pghot_distance);
		if (target == NUMA_NO_NODE)
			break;
		p = kvmalloc_node(size, gfp, target);
		node_clear(target, dram);
	}
	return p;
}

static void pghot_free_section(struct pghot_section *sec)
{
	kvfree(sec->records);
	kvfree(sec->ready);
	kvfree(sec);
}

static struct pghot_section *pghot_alloc_section(int nid)
{
	struct pghot_section *sec = pghot_alloc(nid, sizeof(*sec));

	if (!sec)
		return NULL;

	INIT_LIST_HEAD(&sec->link);
	sec->ready = pghot_alloc(nid, PGHOT_READY_BYTES);
	sec->records = pghot_alloc(nid, PGHOT_RECORDS_BYTES);
	if (!sec->ready || !sec->records) {
		pghot_free_section(sec);
		return NULL;
	}
	return sec;
}

/* Replace the table; it stays for those who look at it. */
static void pghot_set_table(struct pghot_table *new)
{
	struct pghot_table *old = pghot_table();

	rcu_assign_pointer(pghot_sections, new);
	if (old != &pghot_no_sections)
		kvfree_rcu(old, rcu);
}

/*
 * Make the table have room for sections @first to @end - 1, too. What is in it stays,
 * and it does not shrink before it is empty. Returns false if there is no memory.
 */
static bool pghot_extend_table(int nid, unsigned long first, unsigned long end)
{
	struct pghot_table *new, *old = pghot_table();
	unsigned long i, old_end = old->first + old->nr;

	if (first == end)
		return true;
	if (old->nr) {
		if (first >= old->first && end <= old_end)
			return true;
		/* Memory comes block by block: do not copy all for each of them. */
		if (end > old_end)
			end += old->nr / 8;
		if (first < old->first)
			first -= min(first, old->nr / 8);
		first = min(first, old->first);
		end = max(end, old_end);
	}

	new = pghot_alloc(nid, struct_size(new, sections, end - first));
	if (!new)
		return false;

	new->first = first;
	new->nr = end - first;
	for (i = 0; i < old->nr; i++)
		RCU_INIT_POINTER(new->sections[old->first - first + i],
				 rcu_access_pointer(old->sections[i]));
	pghot_set_table(new);
	return true;
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

static bool pghot_has_records(unsigned long nr)
{
	guard(rcu)();
	return pghot_section_of(section_nr_to_pfn(nr));
}

/*
 * Does all of section @nr have struct pages, holes included? The record path does
 * not ask for each page. What is online is there as a whole: memory of the boot,
 * or blocks of whole sections that were added later.
 */
static bool pghot_has_memmap(unsigned long nr)
{
	unsigned long pfn = section_nr_to_pfn(nr);
	unsigned long end = pfn + PAGES_PER_SECTION;

	for (; pfn < end; pfn += PAGES_PER_SUBSECTION)
		if (!pfn_valid(pfn))
			return false;
	return true;
}

static void pghot_add_section(unsigned long nr)
{
	struct pghot_section *sec;
	struct pghot_table *table;
	struct pghot_node *node;

	if (!online_section_nr(nr) || pghot_has_records(nr))
		return;
	node = pghot_section_node(nr);
	if (!node || WARN_ON_ONCE(!pghot_has_memmap(nr)))
		return;

	if (!pghot_extend_table(node->nid, nr, nr + 1))
		goto failed;
	sec = pghot_alloc_section(node->nid);
	if (!sec)
		goto failed;

	sec->start_pfn = section_nr_to_pfn(nr);
	sec->node = node;
	table = pghot_table();
	rcu_assign_pointer(table->sections[nr - table->first], sec);
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

	lockdep_assert_held(&pghot_lock);

	/* Once, not again for each section. If that fails, section by section. */
	pghot_extend_table(node->nid, pfn_to_section_nr(pfn),
			   pfn_to_section_nr(SECTION_ALIGN_UP(end)));
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
	struct pghot_table *table = pghot_table();
	unsigned long nr = max(pfn_to_section_nr(start_pfn), table->first);
	struct pghot_section *sec, *next;
	LIST_HEAD(dead);

	lockdep_assert_held(&pghot_lock);

	for (; nr < table->first + table->nr && section_nr_to_pfn(nr) < end_pfn; nr++) {
		sec = rcu_dereference_protected(table->sections[nr - table->first],
						lockdep_is_held(&pghot_lock));
		if (!sec || (node && sec->node != node))
			continue;
		RCU_INIT_POINTER(table->sections[nr - table->first], NULL);
		set_bit(PGHOT_SECTION_DEAD, &sec->flags);
		list_add_tail(&sec->dead, &dead);
	}

	/* From here on, no access is recorded there and nothing queued. */
	if (!list_empty(&dead))
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
	if (!pghot_nr_sections)
		pghot_set_table(&pghot_no_sections);
}
