// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes and sources: what comes and goes, and when.
 *
 * A lower-tier node has a struct pghot_node from when it becomes one until it
 * is none any more. While a source is enabled it has records and a thread too.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/cpu.h>
#include <linux/init.h>
#include <linux/memory-tiers.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/node.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "internal.h"

/* See internal.h for what it protects. */
DEFINE_MUTEX(pghot_lock);

/* Lower-tier nodes by number. */
static struct pghot_node *pghot_nodes[MAX_NUMNODES];

/* Registered sources, and a mask of those that are enabled. */
static const struct pghot_source *pghot_sources[PGHOT_NR_SOURCES];
static unsigned long pghot_enabled_mask;

/* Sources that pghot= asks for; enabled at the end of the boot. */
static unsigned long pghot_boot_mask __initdata;

static void pghot_start_late(struct work_struct *work);
static DECLARE_WORK(pghot_late_work, pghot_start_late);

/* From late_initcall on: tiers are known, notifiers are registered. */
static bool pghot_running __read_mostly;

struct pghot_node *pghot_get_node(int nid)
{
	lockdep_assert_held(&pghot_lock);
	return pghot_nodes[nid];
}

unsigned long pghot_enabled_sources(void)
{
	return READ_ONCE(pghot_enabled_mask);
}

const struct pghot_source *pghot_source(enum pghot_source_id id)
{
	return READ_ONCE(pghot_sources[id]);
}

/* Lower-tier nodes there are. Needs no lock: for the status file. */
int pghot_nr_nodes(void)
{
	int nid, nr = 0;

	for_each_online_node(nid)
		nr += !!READ_ONCE(pghot_nodes[nid]);
	return nr;
}

/* ===== Nodes ===== */

/* Returns 0, or -EINTR if whoever asks for it is being killed. */
static int pghot_start_node(struct pghot_node *node)
{
	int err = pghot_start_kmigrated(node);

	if (err == -EINTR)
		return err;
	if (err) {
		pr_warn("node %d: kmigrated does not start (%d): nothing is promoted from there\n",
			node->nid, err);
		return 0;
	}
	return pghot_add_node_sections(node);
}

static void pghot_stop_node(struct pghot_node *node)
{
	pghot_stop_kmigrated(node);
	pghot_remove_sections(0, PFN_DOWN(-1UL), node);
	/* The last record may just have been written. */
	irq_work_sync(&node->wake);
}

/* From memory hotplug, whose task may be killed: have a worker do the rest. */
static void pghot_start_later(void)
{
	queue_work(system_dfl_long_wq, &pghot_late_work);
}

static void pghot_create_node(int nid)
{
	struct pghot_node *node;

	node = kzalloc_obj(*node);
	if (!node) {
		pr_warn("no memory for node %d: nothing is promoted from there\n", nid);
		return;
	}
	node->nid = nid;
	node->target = NUMA_NO_NODE;
	node->avg_pages = 1;
	init_llist_head(&node->ready);
	init_irq_work(&node->wake, pghot_wake_kmigrated);
	init_waitqueue_head(&node->wait);
	mutex_init(&node->lock);
	INIT_LIST_HEAD(&node->work);

	if (pghot_sysfs_add_node(node)) {
		/* It belonged to its directory and was freed with it. */
		pr_warn("node %d: no files in sysfs: nothing is promoted from there\n",
			nid);
		return;
	}
	WRITE_ONCE(pghot_nodes[nid], node);
	if (pghot_enabled_mask && pghot_start_node(node))
		pghot_start_later();
}

static void pghot_destroy_node(struct pghot_node *node)
{
	WRITE_ONCE(pghot_nodes[node->nid], NULL);
	pghot_stop_node(node);
	pghot_sysfs_remove_node(node);
}

/* Make the set of nodes what the tiers say it is. */
static void pghot_update_nodes(void)
{
	bool gone = false;
	int nid;

	lockdep_assert_held(&pghot_lock);

	pghot_targets_update();
	for (nid = 0; nid < nr_node_ids; nid++) {
		bool lower = node_state(nid, N_MEMORY) && !node_is_toptier(nid);

		if (lower && !pghot_nodes[nid]) {
			pghot_create_node(nid);
		} else if (!lower && pghot_nodes[nid]) {
			pghot_destroy_node(pghot_nodes[nid]);
			gone = true;
		}
	}
	if (!gone || !pghot_enabled_mask)
		return;

	/* Sections that it shared with another node belong to that one now. */
	for (nid = 0; nid < nr_node_ids; nid++)
		if (pghot_nodes[nid] && pghot_add_node_sections(pghot_nodes[nid]))
			pghot_start_later();
}

/*
 * Tiers are recomputed when a node gets its first or loses its last memory, by
 * a notifier that has run before this one. Any node may change its tier then.
 */
static int __meminit pghot_node_callback(struct notifier_block *self,
					 unsigned long action, void *arg)
{
	if (action != NODE_ADDED_FIRST_MEMORY && action != NODE_REMOVED_LAST_MEMORY)
		return NOTIFY_OK;

	guard(mutex)(&pghot_lock);
	pghot_update_nodes();
	return NOTIFY_OK;
}

/*
 * Not at MEM_GOING_ONLINE: a new node has no tier then. At MEM_OFFLINE it may
 * have none any more: what goes must not depend on the tier.
 */
static int __meminit pghot_memory_callback(struct notifier_block *self,
					   unsigned long action, void *arg)
{
	struct memory_notify *mn = arg;
	unsigned long end = mn->start_pfn + mn->nr_pages;

	guard(mutex)(&pghot_lock);
	switch (action) {
	case MEM_ONLINE:
		if (pghot_enabled_mask)
			pghot_add_sections(mn->start_pfn, end);
		break;
	case MEM_OFFLINE:
		pghot_remove_sections(mn->start_pfn, end, NULL);
		break;
	default:
		break;
	}
	return NOTIFY_OK;
}

/* ===== Sources ===== */

/* Enable or disable one. What comes first and goes last is up to the caller. */
static int pghot_switch_source(enum pghot_source_id id, bool on)
{
	const struct pghot_source *src = pghot_sources[id];
	int err = 0;

	if (on)
		err = src->enable();
	else
		src->disable();
	if (!err)
		WRITE_ONCE(pghot_enabled_mask,
			   on ? pghot_enabled_mask | BIT(id) :
				pghot_enabled_mask & ~BIT(id));
	return err;
}

static void pghot_stop_nodes(void)
{
	int nid;

	static_branch_disable_cpuslocked(&pghot_enabled_key);
	for (nid = 0; nid < nr_node_ids; nid++)
		if (pghot_nodes[nid])
			pghot_stop_kmigrated(pghot_nodes[nid]);
	pghot_remove_sections(0, PFN_DOWN(-1UL), NULL);
	for (nid = 0; nid < nr_node_ids; nid++)
		if (pghot_nodes[nid])
			irq_work_sync(&pghot_nodes[nid]->wake);
}

/* Start the nodes that have not been. Returns 0 or -EINTR. */
static int pghot_start_missing(void)
{
	int nid, err = 0;

	for (nid = 0; nid < nr_node_ids && !err; nid++)
		if (pghot_nodes[nid])
			err = pghot_start_node(pghot_nodes[nid]);
	return err;
}

/* A worker is not killed. */
static void pghot_start_late(struct work_struct *work)
{
	cpus_read_lock();
	get_online_mems();
	scoped_guard(mutex, &pghot_lock)
		if (pghot_enabled_mask)
			pghot_start_missing();
	put_online_mems();
	cpus_read_unlock();
}

static int pghot_start_nodes(void)
{
	int err = pghot_start_missing();

	if (err) {
		pghot_stop_nodes();
		return err;
	}
	static_branch_enable_cpuslocked(&pghot_enabled_key);
	return 0;
}

static int pghot_switch_sources(unsigned long mask)
{
	unsigned long old = pghot_enabled_mask;
	unsigned int id;
	int err = 0;

	lockdep_assert_cpus_held();
	lockdep_assert_held(&pghot_lock);

	if (mask & ~GENMASK(PGHOT_NR_SOURCES - 1, 0))
		return -ERANGE;
	for_each_set_bit(id, &mask, PGHOT_NR_SOURCES)
		if (!pghot_sources[id])
			return -ENODEV;
	/* Asked for again: what had no memory for a thread or records may have now. */
	if (mask == old)
		return mask ? pghot_start_missing() : 0;

	if (!old)
		err = pghot_start_nodes();
	if (err)
		return err;

	for (id = 0; id < PGHOT_NR_SOURCES && !err; id++)
		if (mask & ~old & BIT(id))
			err = pghot_switch_source(id, true);

	/* On an error, those that were enabled just now go off again. */
	if (err)
		mask = old;
	for (id = 0; id < PGHOT_NR_SOURCES; id++)
		if (pghot_enabled_mask & ~mask & BIT(id))
			pghot_switch_source(id, false);

	if (!pghot_enabled_mask)
		pghot_stop_nodes();
	else if (!old && !pghot_nr_nodes())
		pr_info_once("no lower-tier memory: sources are enabled for memory that may come\n");
	return err;
}

/*
 * Enable exactly the sources in @mask.
 *
 * Returns 0, -ERANGE for a bit that means nothing, -ENODEV for a source that is
 * not there, -EINTR if the task is being killed, or what a source returned; then
 * the same sources are enabled as before.
 */
int pghot_set_sources(unsigned long mask)
{
	int err;

	cpus_read_lock();
	get_online_mems();
	scoped_guard(mutex, &pghot_lock)
		err = pghot_switch_sources(mask);
	put_online_mems();
	cpus_read_unlock();
	return err;
}

/* Enable or disable one source and leave the others as they are. */
int pghot_enable_source(enum pghot_source_id id, bool on)
{
	int err;

	cpus_read_lock();
	get_online_mems();
	scoped_guard(mutex, &pghot_lock)
		err = pghot_switch_sources(on ? pghot_enabled_mask | BIT(id) :
						pghot_enabled_mask & ~BIT(id));
	put_online_mems();
	cpus_read_unlock();
	return err;
}

/**
 * pghot_register_source - make a source of access reports known
 * @src: the source; must stay for good, as there is no way to take it back.
 *
 * The source stays disabled until the administrator enables it, or is enabled
 * at the end of the boot if the pghot= parameter names it. A source that
 * registers later than that is not looked for in pghot= any more.
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL if @src is incomplete, -EEXIST if there is a source with
 *	   its id, or an error of sysfs.
 */
int pghot_register_source(const struct pghot_source *src)
{
	int err;

	if (!src->name || !src->caps || !src->enable || !src->disable ||
	    src->id >= PGHOT_NR_SOURCES)
		return -EINVAL;

	guard(mutex)(&pghot_lock);
	if (pghot_sources[src->id])
		return -EEXIST;

	/* Earlier ones get their files from pghot_sysfs_init(). */
	err = pghot_running ? pghot_sysfs_add_source(src) : 0;
	if (!err)
		WRITE_ONCE(pghot_sources[src->id], src);
	return err;
}

/* ===== Boot ===== */

static int __init pghot_setup(char *str)
{
	int err = pghot_parse_sources(str, &pghot_boot_mask);

	if (err)
		pr_warn("pghot=%s: not a list of sources (hintfaults, hwhints, pgscan) nor a mask of them\n",
			str);
	return 1;
}
__setup("pghot=", pghot_setup);

static void __init pghot_enable_at_boot(void)
{
	unsigned int id;

	for_each_set_bit(id, &pghot_boot_mask, PGHOT_NR_SOURCES) {
		if (!pghot_source(id) || pghot_enable_source(id, true) == -ENODEV)
			pr_warn("pghot=: this kernel or machine has no source %s\n",
				pghot_source_names[id]);
		else if (!(pghot_enabled_sources() & BIT(id)))
			pr_warn("pghot=: the source %s could not be enabled\n",
				pghot_source_names[id]);
	}
}

/*
 * After memory_tier_late_init(), which makes the tiers of the boot: that is a
 * late_initcall too, and is linked before.
 */
static int __init pghot_init(void)
{
	int err;

	err = pghot_sysfs_init();
	if (err) {
		pr_err("no files in sysfs (%d)\n", err);
		return err;
	}
	pghot_sysctl_init();

	cpus_read_lock();
	get_online_mems();
	scoped_guard(mutex, &pghot_lock) {
		pghot_update_nodes();
		pghot_running = true;
	}
	/* Below the tiers, which are updated first. */
	hotplug_node_notifier(pghot_node_callback, MEMTIER_HOTPLUG_PRI - 1);
	hotplug_memory_notifier(pghot_memory_callback, DEFAULT_CALLBACK_PRI);
	put_online_mems();
	cpus_read_unlock();

	if (pghot_nr_nodes())
		pr_info("%d lower-tier node(s)\n", pghot_nr_nodes());
	else
		pr_info("no lower-tier memory: all nodes are in one tier, there is nothing to promote from\n");

	pghot_enable_at_boot();
	return 0;
}
late_initcall(pghot_init);
