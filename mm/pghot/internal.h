/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types and functions that the rooms of mm/pghot share.
 *
 * Locks, outermost first:
 *
 *   cpu_hotplug_lock, mem_hotplug_lock (both for reading)
 *     pghot_lock		which sources are enabled, which nodes exist,
 *				sections come and go
 *       pghot_node::lock	a cycle of kmigratedN; lists of sections
 *
 * The record path takes none of them. It finds a section in pghot_sections
 * under RCU; the table and a section in it are freed after they were replaced
 * there and a grace period has passed.
 */
#ifndef _MM_PGHOT_INTERNAL_H
#define _MM_PGHOT_INTERNAL_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/irq_work.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/pghot.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/vm_event_item.h>
#include <linux/wait.h>

#include "policy.h"
#include "record.h"

struct folio;
struct mem_cgroup;
struct page;

/*
 * Why a candidate was not promoted at a visit. The order is that of the events
 * from PGHOT_SKIP_COLD on. After those marked (*) it stays a candidate.
 */
enum pghot_skip {
	PGHOT_COLD,		/* cooled before it was promoted */
	PGHOT_GONE,		/* freed, or no longer in the lower tier */
	PGHOT_UNMOVABLE,	/* can never be migrated */
	PGHOT_DENIED,		/* mempolicy, cpuset or memcg forbid all targets */
	PGHOT_BUSY,		/* (*) isolated, locked or under writeback */
	PGHOT_PINNED,		/* (*) pinned for DMA */
	PGHOT_NOSPACE,		/* (*) no room on any target */
	PGHOT_RATELIMIT,	/* (*) budget spent on hotter pages */
	PGHOT_FAILED,		/* (*) migration failed */
	PGHOT_NR_SKIP,
};

/* Bits of pghot_section::flags */
#define PGHOT_SECTION_QUEUED	0	/* on pghot_node::ready */
#define PGHOT_SECTION_DEAD	1	/* about to be freed */

/**
 * struct pghot_section - records of a memory section with lower-tier memory
 * @start_pfn: first page frame.
 * @node: node whose kmigrated looks after it.
 * @flags: PGHOT_SECTION_*.
 * @queue: link in pghot_node::ready.
 * @link: link in pghot_node::work, or empty.
 * @dead: link in the list of those to be freed.
 * @records: a record per page.
 * @ready: a bit per page, set for candidates.
 */
struct pghot_section {
	unsigned long		start_pfn;
	struct pghot_node	*node;
	unsigned long		flags;
	struct llist_node	queue;
	struct list_head	link;
	struct list_head	dead;
	u16			*records;
	unsigned long		*ready;
};

/**
 * struct pghot_table - sections with records, by number
 * @rcu: frees it.
 * @first: number of the first one that it has room for.
 * @nr: how many it has room for.
 * @sections: each one, or NULL if it has no records.
 */
struct pghot_table {
	struct rcu_head			rcu;
	unsigned long			first;
	unsigned long			nr;
	struct pghot_section __rcu	*sections[];
};

/* Most folios in a batch: as many as migrate_pages() takes at once. */
#define PGHOT_MAX_BATCH		512

/* One folio on its way: what must be known of it when it has arrived. */
struct pghot_move {
	struct folio		*dst;
	struct mem_cgroup	*memcg;
	unsigned long		pfn;	/* where it was */
	unsigned int		nr_pages;
};

/* Folios that are isolated and wait to be migrated to one node. */
struct pghot_target {
	struct list_head	small;		/* of one page */
	struct list_head	large;
	unsigned int		nr_folios;	/* on both lists */
	unsigned int		nr_pages;
	unsigned long		since;		/* jiffies of the first one */
	unsigned long		last_revival;	/* of reclaim that had given up */
};

/**
 * struct pghot_cycle - what a cycle of kmigrated works with
 * @node: whose cycle.
 * @epoch: the epoch in which the section at hand is looked at.
 * @threshold: heat from which a page is hot.
 * @rank: how far the budget goes.
 * @stuck: what could not be moved, by heat.
 * @looks: looks at candidates.
 * @dram: nodes to promote to.
 * @full: those found without room in this cycle.
 * @woken: those on which reclaim was woken in this cycle.
 * @stop: budget or room are used up.
 * @limited: there are candidates that the budget keeps waiting.
 * @hold: why nothing is promoted at all in this cycle, or PGHOT_NR_SKIP.
 * @nr_off_lru: candidates that were found off the LRU.
 * @taken_folios: folios that were taken.
 * @taken_pages: pages in them.
 * @promoted: pages that arrived.
 * @moves: folios under migration.
 * @nr_moves: used slots of @moves.
 * @targets: folios to migrate, by node.
 */
struct pghot_cycle {
	struct pghot_node	*node;
	unsigned int		epoch;
	unsigned int		threshold;
	struct pghot_rank	rank;
	struct pghot_stuck	stuck;
	unsigned long		looks;
	nodemask_t		dram;
	nodemask_t		full;
	nodemask_t		woken;
	bool			stop;
	bool			limited;
	enum pghot_skip		hold;
	unsigned long		nr_off_lru;
	unsigned long		taken_folios;
	unsigned long		taken_pages;
	unsigned long		promoted;
	struct pghot_move	moves[PGHOT_MAX_BATCH];
	unsigned int		nr_moves;
	struct pghot_target	targets[];
};

/**
 * struct pghot_node - a lower-tier node and its kmigrated
 * @nid: the node.
 * @ready: sections with new candidates, pushed by the record path.
 * @wake: wakes the thread from any context.
 * @wait: where the thread sleeps.
 * @demoted_hot: pages that were accessed soon after they were demoted to the node.
 * @task: kmigratedN, NULL while no source is enabled. Protected by pghot_lock.
 * @lock: held during a cycle; protects what follows, except that counters are
 *	  read without it.
 * @work: sections with candidates left from earlier cycles.
 * @idle_cycles: cycles in a row that promoted nothing.
 * @bucket: byte budget.
 * @feedback: what came of earlier promotions.
 * @stuck: what could not be moved in earlier cycles, by heat.
 * @pause: the last pause between cycles, in jiffies; written by the thread only.
 * @avg_pages: pages per folio taken in the last cycle, at least 1.
 * @last_drain: jiffies of the last lru_add_drain_all().
 * @cycle: scratch memory of a cycle, NULL while no source is enabled.
 * @nr_sections: sections with records, protected by pghot_lock.
 * @visited: candidates that were looked at.
 * @candidates: pages that were found movable and entered the rate limiter.
 * @promoted: pages that arrived.
 * @skipped: candidates not promoted at a visit, by reason.
 * @target: node that was promoted to last, or NUMA_NO_NODE.
 * @kobj: directory in sysfs.
 */
struct pghot_node {
	int			nid;
	struct llist_head	ready;
	struct irq_work		wake;
	wait_queue_head_t	wait;
	struct task_struct	*task;

	atomic_long_t		demoted_hot ____cacheline_aligned_in_smp;

	struct mutex		lock ____cacheline_aligned_in_smp;
	struct list_head	work;
	unsigned int		idle_cycles;
	struct pghot_bucket	bucket;
	struct pghot_feedback	feedback;
	struct pghot_stuck	stuck;
	unsigned long		pause;
	unsigned long		avg_pages;
	unsigned long		last_drain;
	struct pghot_cycle	*cycle;
	unsigned long		nr_sections;
	unsigned long		visited;
	unsigned long		candidates;
	unsigned long		promoted;
	unsigned long		skipped[PGHOT_NR_SKIP];
	int			target;
	struct kobject		kobj;
};

/* Written by its owner only, read by sysfs at any time. */
#define pghot_count(counter, nr)					\
do {									\
	typeof(counter) *__counter = &(counter);			\
									\
	WRITE_ONCE(*__counter, *__counter + (nr));			\
} while (0)

/* Knobs: knobs.c. Read with READ_ONCE(). */
struct pghot_knobs {
	unsigned int	freq_threshold;
	unsigned int	promote_window_ms;
	int		target_nid;
	unsigned int	promote_rate_limit_mbps;
	unsigned int	kmigrated_sleep_ms;
	unsigned int	kmigrated_batch_nr;
};

enum pghot_knob {
	PGHOT_FREQ_THRESHOLD,
	PGHOT_PROMOTE_WINDOW_MS,
	PGHOT_TARGET_NID,
	PGHOT_PROMOTE_RATE_LIMIT_MBPS,
	PGHOT_KMIGRATED_SLEEP_MS,
	PGHOT_KMIGRATED_BATCH_NR,
	PGHOT_NR_KNOBS,
};

extern struct pghot_knobs pghot_knobs;

int pghot_knob_get(enum pghot_knob knob);
int pghot_knob_set(enum pghot_knob knob, long long val);
int pghot_parse_number(const char *buf, long long *val);
int pghot_parse_range(const char *buf, long long min, long long max,
		      long long *val);
extern const char * const pghot_source_names[PGHOT_NR_SOURCES];
int pghot_parse_sources(const char *buf, unsigned long *mask);

/* Records: record.c */
unsigned int pghot_epoch(unsigned long now);
int pghot_set_window(unsigned int ms);
struct pghot_section *pghot_section_of(unsigned long pfn);
void pghot_mark_ready(struct pghot_section *sec, unsigned long idx);
unsigned long pghot_nr_pages(struct page *page);

/* Sections: section.c */
extern struct pghot_table __rcu *pghot_sections;

void pghot_add_sections(unsigned long start_pfn, unsigned long end_pfn);
int pghot_add_node_sections(struct pghot_node *node);
void pghot_remove_sections(unsigned long start_pfn, unsigned long end_pfn,
			   struct pghot_node *node);
unsigned long pghot_bytes_in_use(void);
unsigned long pghot_alloc_failures(void);

/* Targets: target.c */
extern u8 pghot_node_index[MAX_NUMNODES];

void pghot_targets_update(void);
void pghot_dram_nodes(nodemask_t *mask);
bool pghot_nodes_have_dram(const nodemask_t *nodes);
bool pghot_current_may_use_dram(void);
int pghot_index_to_node(unsigned int index);
int pghot_distance(int from, int to);
int pghot_nearest(int from, const nodemask_t *mask, int (*distance)(int a, int b));
int pghot_choose_target(struct pghot_cycle *c, struct folio *folio, u16 rec);
void pghot_wake_reclaim(struct pghot_cycle *c, int nid, unsigned int order);

/* Migration: migrate.c */
unsigned int pghot_migrate_folios(struct pghot_cycle *c, int dst_nid);

/* Promotion: promote.c */
void pghot_retry(struct pghot_cycle *c, struct folio *folio);
bool pghot_promote_cycle(struct pghot_node *node, unsigned long idle);

/* kmigratedN: kmigrated.c */
int pghot_start_kmigrated(struct pghot_node *node);
void pghot_stop_kmigrated(struct pghot_node *node);
void pghot_wake_kmigrated(struct irq_work *work);

/* Nodes and sources: core.c */
extern struct mutex pghot_lock;

struct pghot_node *pghot_get_node(int nid);
unsigned long pghot_enabled_sources(void);
int pghot_set_sources(unsigned long mask);
int pghot_enable_source(enum pghot_source_id id, bool on);
const struct pghot_source *pghot_source(enum pghot_source_id id);
int pghot_nr_nodes(void);

/* sysfs.c, sysfs-node.c */
int pghot_sysfs_init(void);
int pghot_sysfs_add_source(const struct pghot_source *src);
int pghot_sysfs_init_nodes(struct kobject *parent);
int pghot_sysfs_add_node(struct pghot_node *node);
void pghot_sysfs_remove_node(struct pghot_node *node);

/* sysctl.c */
void pghot_sysctl_init(void);

#endif /* _MM_PGHOT_INTERNAL_H */
