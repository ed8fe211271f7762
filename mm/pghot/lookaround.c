// SPDX-License-Identifier: GPL-2.0
/*
 * Looking around: where one access was seen, which pages are in use?
 *
 * A source that samples sees one access of thousands. To meet each of N hot pages
 * once, it needs N log N samples and more; hot pages that it never met stay where
 * they are. But whoever uses one page mostly uses others near it, and page tables
 * know which: the CPU sets the Accessed bit of an entry when it walks to it.
 *
 * So a sample only says where to look: at its area, which is what one page table
 * covers (PMD_SIZE). A round of looks at an area goes like this:
 *
 *     arm          clear the Accessed bits of lower-tier pages, flush the TLB
 *     4 ms later   those that are set again are accessed some hundred times a
 *                  second: report them, clear the bits
 *     8 ms later   the same, and so on, each time after twice as long, up to 64 ms
 *     then         forget the area after a rest of a second
 *
 * A page that is accessed f times a second is found by a look after t with a
 * probability of 1 - exp(-f t). Hotter pages are found by more looks of a round, and
 * so get more heat; at 1000 accesses a second it is 5, and 2 at 20. Pages that are
 * not accessed are never reported, whatever their neighbours do: it is exactly the
 * pages in use that get hot, where a sample is a hint at best.
 *
 * A look at an area takes some microseconds, and flushes the TLBs of the program.
 * There is one flush for all areas of a program that are due together. A round is paid
 * for in advance, by what looks took lately, and no round begins while nothing is left
 * of the share of time that looks have, PGHOT_LOOK_SHARE. A look that comes
 * much too late, or that would have to wait for a lock, is left out: after a longer
 * time all pages look hot.
 *
 * What was found set is kept in the folio's young flag, as idle page tracking does it,
 * for others who look at Accessed bits. MGLRU looks at that flag when it evicts, but not
 * when it walks page tables; there a page counts as accessed from the next access on.
 *
 * Accesses of a virtual machine set bits in tables of its own, which are not looked at.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/err.h>
#include <linux/freezer.h>
#include <linux/hashtable.h>
#include <linux/hugetlb_inline.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/list_sort.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/page_idle.h>
#include <linux/pagewalk.h>
#include <linux/pid.h>
#include <linux/sched/clock.h>
#include <linux/sched/cputime.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include <asm/tlbflush.h>

#include "internal.h"

/* Looks of a round after the one that arms; the first after so long. */
#define PGHOT_LOOK_STEPS	5
#define PGHOT_LOOK_FIRST_NS	(4 * NSEC_PER_MSEC)

/* How long an area is left alone after a round. */
#define PGHOT_LOOK_REST_NS	NSEC_PER_SEC

/* Areas that are known at a time: their rounds, or their rests. */
#define PGHOT_MAX_AREAS		8192

/* Areas that are looked at in a go; what has to wait would be late. */
#define PGHOT_LOOK_BATCH	64

/* Thousandths of a CPU that looks may take. */
#define PGHOT_LOOK_SHARE	5

/* Time that was not used up is saved, but not for more than this. */
#define PGHOT_LOOK_MAX_SAVED	(20 * NSEC_PER_MSEC)

/* What a look at an area is taken to cost before the first one, with the flush. */
#define PGHOT_LOOK_FIRST_COST	(20 * NSEC_PER_USEC)

struct pghot_area {
	struct hlist_node	hash;
	struct list_head	link;	/* in the list of its step, or a batch */
	struct mm_struct	*mm;	/* counted by mmgrab() */
	pid_t			tgid;
	unsigned long		start;
	int			nid;	/* of the CPU that gave the hint */
	unsigned int		step;	/* looks done; PGHOT_LOOK_STEPS + 1: it rests */
	u64			since;	/* when the step began, local_clock() */
};

/* Protects what follows. */
static DEFINE_SPINLOCK(pghot_look_lock);

static DEFINE_HASHTABLE(pghot_areas, 10);

/*
 * Areas by step, oldest first: a step has one length, so they are due in this order.
 * Those of step 0 wait for being armed, those of the last one rest.
 */
static struct list_head pghot_steps[PGHOT_LOOK_STEPS + 2];
static unsigned int pghot_nr_areas;

/*
 * CPU time that may be spent, in ns, as of pghot_look_refilled. Rounds are paid in
 * advance; it is negative by less than one of them.
 */
static s64 pghot_look_tokens;
static u64 pghot_look_refilled;

/* CPU time of a look at an area, in ns, smoothed. */
static u64 pghot_look_cost = PGHOT_LOOK_FIRST_COST;

static struct pghot_look_stats pghot_look_counts;

static DECLARE_WAIT_QUEUE_HEAD(pghot_look_wait);
static struct task_struct *pghot_look_task;

/* ===== Areas ===== */

/* How long @step lasts. */
static u64 pghot_step_ns(unsigned int step)
{
	if (!step)
		return 0;
	if (step > PGHOT_LOOK_STEPS)
		return PGHOT_LOOK_REST_NS;
	return PGHOT_LOOK_FIRST_NS << (step - 1);
}

static unsigned long pghot_area_key(pid_t tgid, unsigned long start)
{
	return (start >> PMD_SHIFT) ^ ((unsigned long)tgid << 20);
}

static struct pghot_area *pghot_find_area(pid_t tgid, unsigned long start)
{
	struct pghot_area *area;

	lockdep_assert_held(&pghot_look_lock);

	hash_for_each_possible(pghot_areas, area, hash, pghot_area_key(tgid, start))
		if (area->start == start && area->tgid == tgid)
			return area;
	return NULL;
}

/* The caller drops the mm and frees it. */
static void pghot_remove_area(struct pghot_area *area)
{
	lockdep_assert_held(&pghot_look_lock);

	hash_del(&area->hash);
	list_del_init(&area->link);
	WRITE_ONCE(pghot_nr_areas, pghot_nr_areas - 1);
}

static void pghot_free_area(struct pghot_area *area)
{
	mmdrop(area->mm);
	kfree(area);
}

/* The mm of a process, with a reference to the structure alone. NULL: gone. */
static struct mm_struct *pghot_grab_mm(pid_t tgid)
{
	struct task_struct *task;
	struct mm_struct *mm;

	guard(rcu)();
	task = find_task_by_pid_ns(tgid, &init_pid_ns);
	/* Any of its threads: the first one may have exited. */
	if (task)
		task = find_lock_task_mm(task);
	if (!task)
		return NULL;

	mm = task->mm;
	mmgrab(mm);
	task_unlock(task);
	return mm;
}

/* Pay for a round of looks. Returns false if there is no time for it. */
static bool pghot_look_pay(u64 now)
{
	u64 gained;

	lockdep_assert_held(&pghot_look_lock);

	/* Clocks of CPUs differ a little. */
	if (now > pghot_look_refilled) {
		/* All that may be saved is gained in less, and no product overflows. */
		gained = div_u64(min(now - pghot_look_refilled, 20 * NSEC_PER_SEC) *
				 PGHOT_LOOK_SHARE, 1000);
		pghot_look_tokens = min_t(s64, pghot_look_tokens + gained,
					  PGHOT_LOOK_MAX_SAVED);
		pghot_look_refilled = now;
	}
	if (pghot_look_tokens <= 0)
		return false;
	pghot_look_tokens -= pghot_look_cost * (PGHOT_LOOK_STEPS + 1);
	return true;
}

/**
 * pghot_look_around - an access to lower-tier memory was seen: look for more there
 * @tgid: number of the process in the initial namespace.
 * @addr: the address.
 * @nid: node of the CPU that accessed.
 *
 * Does nothing if the neighbourhood is being looked at or was a moment ago, or if
 * looks have used up their time. Processes that share an address space are taken for
 * different ones.
 *
 * Context: process, does not sleep.
 * Return: true if looks at the area begin.
 */
bool pghot_look_around(pid_t tgid, unsigned long addr, int nid)
{
	unsigned long start = addr & PMD_MASK;
	struct pghot_area *area, *old;
	bool known, may;

	if (!READ_ONCE(pghot_look_task))
		return false;

	scoped_guard(spinlock, &pghot_look_lock) {
		known = pghot_find_area(tgid, start);
		may = known || (pghot_nr_areas < PGHOT_MAX_AREAS &&
				pghot_look_pay(local_clock()));
		if (!may)
			pghot_look_counts.refused++;
	}
	if (known || !may)
		return false;

	area = kzalloc_obj(*area, GFP_NOWAIT | __GFP_NOWARN);
	if (!area)
		return false;
	area->mm = pghot_grab_mm(tgid);
	if (!area->mm) {
		kfree(area);
		return false;
	}
	area->tgid = tgid;
	area->start = start;
	area->nid = nid;

	scoped_guard(spinlock, &pghot_look_lock) {
		old = pghot_find_area(tgid, start);
		if (!old) {
			hash_add(pghot_areas, &area->hash, pghot_area_key(tgid, start));
			list_add_tail(&area->link, &pghot_steps[0]);
			WRITE_ONCE(pghot_nr_areas, pghot_nr_areas + 1);
			pghot_look_counts.areas++;
		}
	}
	if (old) {
		pghot_free_area(area);
		return false;
	}
	wake_up(&pghot_look_wait);
	return true;
}

/* ===== Looks ===== */

/* One look at one area. */
struct pghot_look {
	nodemask_t	dram;
	struct folio	*last;		/* reported or armed; not referenced */
	int		nid;
	bool		report;
	unsigned int	cleared;	/* entries */
	unsigned int	found;		/* folios */
};

/* @folio is mapped by an entry whose Accessed bit was set, and was just cleared. */
static void pghot_saw(struct pghot_look *look, struct folio *folio)
{
	look->cleared++;
	folio_clear_idle(folio);
	folio_set_young(folio);
	/* Entries of one folio stand side by side. */
	if (!look->report || folio == look->last)
		return;
	look->last = folio;
	if (pghot_record_access(folio_pfn(folio), look->nid, PGHOT_SRC_PGSCAN, jiffies))
		look->found++;
}

static bool pghot_worth_a_look(struct pghot_look *look, struct folio *folio)
{
	return folio && !node_isset(folio_nid(folio), look->dram) &&
	       !folio_is_zone_device(folio);
}

static int pghot_look_pmd(pmd_t *pmd, unsigned long addr, unsigned long end,
			  struct mm_walk *walk)
{
	struct pghot_look *look = walk->private;
	struct vm_area_struct *vma = walk->vma;
	struct folio *folio;
	spinlock_t *ptl;	/* of the page table */
	pte_t *pte, *map, val;

	walk->action = ACTION_CONTINUE;

	ptl = pmd_trans_huge_lock(pmd, vma);
	if (ptl) {
		folio = NULL;
		if (pmd_present(*pmd))
			folio = vm_normal_folio_pmd(vma, addr, *pmd);
		if (pghot_worth_a_look(look, folio) &&
		    pmdp_test_and_clear_young(vma, addr & PMD_MASK, pmd))
			pghot_saw(look, folio);
		spin_unlock(ptl);
		return 0;
	}

	map = pte_offset_map_lock(walk->mm, pmd, addr, &ptl);
	if (!map)
		return 0;
	for (pte = map; addr < end; pte++, addr += PAGE_SIZE) {
		val = ptep_get(pte);
		if (!pte_present(val) || !pte_young(val))
			continue;
		folio = vm_normal_folio(vma, addr, val);
		if (pghot_worth_a_look(look, folio) &&
		    ptep_test_and_clear_young(vma, addr, pte))
			pghot_saw(look, folio);
	}
	pte_unmap_unlock(map, ptl);
	return 0;
}

static int pghot_look_test(unsigned long start, unsigned long end,
			   struct mm_walk *walk)
{
	/* 1: pass over it. */
	return is_vm_hugetlb_page(walk->vma) ||
	       (walk->vma->vm_flags & (VM_IO | VM_PFNMAP));
}

static const struct mm_walk_ops pghot_look_ops = {
	.pmd_entry	= pghot_look_pmd,
	.test_walk	= pghot_look_test,
	.walk_lock	= PGWALK_RDLOCK,
};

/* Areas of one mm beside each other, in order. */
static int pghot_cmp_areas(void *priv, const struct list_head *a,
			   const struct list_head *b)
{
	const struct pghot_area *x = list_entry(a, struct pghot_area, link);
	const struct pghot_area *y = list_entry(b, struct pghot_area, link);

	if (x->mm != y->mm)
		return x->mm > y->mm ? 1 : -1;
	return x->start > y->start;
}

/* The areas of @step that are due at @now to @list, at most @nr. Returns how many. */
static unsigned int pghot_take_step(unsigned int step, struct list_head *list,
				    unsigned int nr, u64 now)
{
	struct pghot_area *area;
	unsigned int taken;

	lockdep_assert_held(&pghot_look_lock);

	for (taken = 0; taken < nr; taken++) {
		area = list_first_entry_or_null(&pghot_steps[step], struct pghot_area, link);
		if (!area || area->since + pghot_step_ns(step) > now)
			break;
		if (step > PGHOT_LOOK_STEPS)
			pghot_remove_area(area);
		list_move_tail(&area->link, list);
	}
	return taken;
}

/* What is due at @now to @batch, and areas whose rest is over to @dead. */
static void pghot_take_due(struct list_head *batch, struct list_head *dead, u64 now)
{
	unsigned int step, nr = PGHOT_LOOK_BATCH;

	guard(spinlock)(&pghot_look_lock);
	/* Short steps are hurt most by having to wait, and a new area not at all. */
	for (step = 1; step <= PGHOT_LOOK_STEPS; step++)
		nr -= pghot_take_step(step, batch, nr, now);
	pghot_take_step(0, batch, nr, now);
	pghot_take_step(PGHOT_LOOK_STEPS + 1, dead, PGHOT_LOOK_BATCH, now);
}

/* In how many ns the next area is due. */
static u64 pghot_next_due(u64 now)
{
	u64 wait = NSEC_PER_SEC, due, rest = 0;
	struct pghot_area *area;
	unsigned int step;

	guard(spinlock)(&pghot_look_lock);
	for (step = 0; step < ARRAY_SIZE(pghot_steps); step++) {
		area = list_first_entry_or_null(&pghot_steps[step],
						struct pghot_area, link);
		if (!area)
			continue;
		due = area->since + pghot_step_ns(step);
		/* Nobody waits for the end of a rest. */
		if (step > PGHOT_LOOK_STEPS)
			rest = PGHOT_LOOK_REST_NS / 8;
		wait = min(wait, max(due > now ? due - now : 0, rest));
	}
	return wait;
}

/* What looks at the areas of one mm came to. */
struct pghot_look_sum {
	unsigned int	looks;
	unsigned int	cleared;
	unsigned int	found;
	unsigned int	late;
};

/* The next step of @area begins at @now. */
static void pghot_next_step(struct pghot_area *area, u64 now)
{
	area->step++;
	area->since = now;
}

static void pghot_look_at_area(struct pghot_area *area, struct pghot_look *look,
			       struct pghot_look_sum *sum)
{
	u64 now = local_clock();

	/*
	 * Too late, and all would look hot: that is as good as arming. So is a clock
	 * that went backwards.
	 */
	look->report = area->step && now - area->since < 2 * pghot_step_ns(area->step);
	look->nid = area->nid;
	look->last = NULL;
	look->cleared = 0;
	look->found = 0;
	walk_page_range(area->mm, area->start, area->start + PMD_SIZE,
			&pghot_look_ops, look);

	sum->looks++;
	sum->cleared += look->cleared;
	sum->found += look->found;
	sum->late += area->step && !look->report;
	pghot_next_step(area, now);
}

static void pghot_look_at_mm(struct mm_struct *mm, struct list_head *group,
			     struct pghot_look_sum *sum)
{
	struct pghot_look look = {};
	struct pghot_area *area;
	bool locked;

	pghot_dram_nodes(&look.dram);
	/* Who changes the mappings is not waited for, and does not wait for long. */
	locked = mmap_read_trylock(mm);
	list_for_each_entry(area, group, link) {
		if (locked && !mmap_lock_is_contended(mm)) {
			pghot_look_at_area(area, &look, sum);
			cond_resched();
		} else {
			sum->late++;
			pghot_next_step(area, local_clock());
		}
	}
	/* The entries in TLBs have the bit set: without this the CPU sets none. */
	if (sum->cleared)
		flush_tlb_mm(mm);
	if (locked)
		mmap_read_unlock(mm);
}

/* Areas of one mm, in @group. Returns false if nobody uses it any more. */
static bool pghot_look_at_group(struct list_head *group)
{
	struct mm_struct *mm = list_first_entry(group, struct pghot_area, link)->mm;
	struct pghot_look_sum sum = {};

	if (!mmget_not_zero(mm))
		return false;
	pghot_look_at_mm(mm, group, &sum);
	/* It may be the last one, and tearing down an mm takes long. */
	mmput_async(mm);

	guard(spinlock)(&pghot_look_lock);
	pghot_look_counts.looks += sum.looks;
	pghot_look_counts.found += sum.found;
	pghot_look_counts.late += sum.late;
	pghot_look_counts.flushes += !!sum.cleared;
	return true;
}

/* Areas of an mm that is gone. */
static void pghot_remove_group(struct list_head *group, struct list_head *dead)
{
	struct pghot_area *area, *next;

	guard(spinlock)(&pghot_look_lock);
	list_for_each_entry_safe(area, next, group, link) {
		pghot_remove_area(area);
		list_add(&area->link, dead);
	}
}

static void pghot_look_at_batch(struct list_head *batch, struct list_head *done,
				struct list_head *dead)
{
	struct pghot_area *area, *next;
	struct mm_struct *mm;
	LIST_HEAD(group);

	list_sort(NULL, batch, pghot_cmp_areas);
	while (!list_empty(batch)) {
		mm = list_first_entry(batch, struct pghot_area, link)->mm;
		list_for_each_entry_safe(area, next, batch, link) {
			if (area->mm != mm)
				break;
			list_move_tail(&area->link, &group);
		}
		if (pghot_look_at_group(&group))
			list_splice_tail_init(&group, done);
		else
			pghot_remove_group(&group, dead);
		cond_resched();
	}
}

/* @looks took @ns of CPU time. */
static void pghot_look_learn(u64 looks, u64 ns)
{
	lockdep_assert_held(&pghot_look_lock);

	pghot_look_counts.ns += ns;
	if (looks)
		pghot_look_cost = (7 * pghot_look_cost + div64_u64(ns, looks)) / 8;
}

/* Look at what is due. Returns in how many ns to come back. */
static u64 pghot_look_at_due(void)
{
	u64 began = task_sched_runtime(current), looks = pghot_look_counts.looks, took;
	struct pghot_area *area, *next;
	LIST_HEAD(batch);
	LIST_HEAD(done);
	LIST_HEAD(dead);

	pghot_take_due(&batch, &dead, local_clock());
	pghot_look_at_batch(&batch, &done, &dead);

	took = task_sched_runtime(current) - began;
	scoped_guard(spinlock, &pghot_look_lock) {
		list_for_each_entry_safe(area, next, &done, link)
			list_move_tail(&area->link, &pghot_steps[area->step]);
		pghot_look_learn(pghot_look_counts.looks - looks, took);
	}
	list_for_each_entry_safe(area, next, &dead, link)
		pghot_free_area(area);
	return pghot_next_due(local_clock());
}

static bool pghot_look_wanted(void)
{
	return !list_empty_careful(&pghot_steps[0]);
}

static int pghot_looker(void *arg)
{
	u64 wait;

	set_freezable();
	while (!kthread_should_stop()) {
		wait_event_freezable(pghot_look_wait, kthread_should_stop() ||
				     READ_ONCE(pghot_nr_areas));
		try_to_freeze();
		if (kthread_should_stop())
			break;
		wait = pghot_look_at_due();
		/* Hints come in bursts: more areas, one flush. And no loop without it. */
		wait_event_interruptible_hrtimeout(pghot_look_wait, kthread_should_stop(),
						   ns_to_ktime(NSEC_PER_MSEC));
		if (wait > NSEC_PER_MSEC)
			wait_event_interruptible_hrtimeout(pghot_look_wait,
							   kthread_should_stop() ||
							   pghot_look_wanted(),
							   ns_to_ktime(wait - NSEC_PER_MSEC));
	}
	return 0;
}

/* ===== Start and stop ===== */

/**
 * pghot_look_start - be ready for hints where to look
 *
 * For a source, when it is enabled.
 *
 * Context: process, may sleep; with pghot_lock held, as @enable of a source is.
 * Return: 0 or a negative error number.
 */
int pghot_look_start(void)
{
	struct task_struct *task;
	unsigned int step;

	lockdep_assert_held(&pghot_lock);

	if (WARN_ON_ONCE(pghot_look_task))
		return -EBUSY;

	for (step = 0; step < ARRAY_SIZE(pghot_steps); step++)
		INIT_LIST_HEAD(&pghot_steps[step]);
	pghot_look_tokens = PGHOT_LOOK_MAX_SAVED;
	pghot_look_cost = PGHOT_LOOK_FIRST_COST;
	pghot_look_refilled = local_clock();
	task = kthread_run(pghot_looker, NULL, "kpghotlookd");
	if (IS_ERR(task))
		return PTR_ERR(task);
	WRITE_ONCE(pghot_look_task, task);
	return 0;
}

/**
 * pghot_look_stop - no more looks
 *
 * The caller sees to it that nobody calls pghot_look_around() any more.
 *
 * Context: as pghot_look_start().
 */
void pghot_look_stop(void)
{
	struct pghot_area *area;
	struct hlist_node *next;
	int bucket;

	lockdep_assert_held(&pghot_lock);

	if (!pghot_look_task)
		return;
	kthread_stop(pghot_look_task);
	WRITE_ONCE(pghot_look_task, NULL);

	hash_for_each_safe(pghot_areas, bucket, next, area, hash) {
		scoped_guard(spinlock, &pghot_look_lock)
			pghot_remove_area(area);
		pghot_free_area(area);
	}
}

/**
 * pghot_look_get_stats - what looks did and cost since the boot
 * @stats: filled in.
 *
 * Context: process.
 */
void pghot_look_get_stats(struct pghot_look_stats *stats)
{
	guard(spinlock)(&pghot_look_lock);
	*stats = pghot_look_counts;
}
