/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hot page tracking and promotion: the public face.
 *
 * Whoever sees accesses to memory registers as a source and reports them
 * here. The model behind it is described in mm/pghot/record.h and in
 * Documentation/mm/pghot.rst.
 */
#ifndef _LINUX_PGHOT_H
#define _LINUX_PGHOT_H

#include <linux/bits.h>
#include <linux/jump_label.h>
#include <linux/types.h>

struct attribute_group;
struct folio;

/**
 * enum pghot_source_id - the kinds of sources, one bit each in
 *			  vm.pghot_enabled_sources
 * @PGHOT_SRC_HINTFAULTS: NUMA hint faults on lower-tier memory.
 * @PGHOT_SRC_HWHINTS: accesses that hardware sampled.
 * @PGHOT_SRC_PGSCAN: Accessed bits found set in page tables.
 * @PGHOT_NR_SOURCES: number of kinds.
 */
enum pghot_source_id {
	PGHOT_SRC_HINTFAULTS,
	PGHOT_SRC_HWHINTS,
	PGHOT_SRC_PGSCAN,
	PGHOT_NR_SOURCES,
};

/* What a source is able to tell, for struct pghot_source::caps. */
#define PGHOT_CAP_ACCESS	BIT(0)	/* single accesses, as they happen */
#define PGHOT_CAP_COUNT		BIT(1)	/* counts for ranges, by epoch */
#define PGHOT_CAP_NODE		BIT(2)	/* the node that accessed */

/**
 * struct pghot_source - operations of a source of access reports
 * @name: name of the source, as in /sys/kernel/mm/pghot/sources.
 * @id: its bit in the mask of sources; one source an id.
 * @caps: what it tells, PGHOT_CAP_*.
 * @knobs: attributes for its directory in sysfs, or NULL.
 * @enable: start to report. Process context, may sleep; called with
 *	    cpus_read_lock() and the memory hotplug lock held for reading.
 *	    Returns 0 or a negative error number.
 * @disable: stop to report: no report of this source is under way any more
 *	     when it returns. Context as for @enable.
 */
struct pghot_source {
	const char			*name;
	enum pghot_source_id		id;
	unsigned int			caps;
	const struct attribute_group	*knobs;
	int				(*enable)(void);
	void				(*disable)(void);
};

#ifdef CONFIG_PGHOT

DECLARE_STATIC_KEY_FALSE(pghot_enabled_key);

/**
 * pghot_enabled - is any source enabled?
 *
 * A patched-out branch while no source is.
 *
 * Context: any.
 * Return: true while at least one source is enabled.
 */
static __always_inline bool pghot_enabled(void)
{
	return static_branch_unlikely(&pghot_enabled_key);
}

int pghot_register_source(const struct pghot_source *src);
bool __pghot_record_access(unsigned long pfn, int nid, enum pghot_source_id src,
			   unsigned long now);
unsigned long __pghot_record_range(unsigned long pfn, unsigned long nr_pages,
				   int nid, enum pghot_source_id src,
				   unsigned int count, unsigned long now);

/**
 * pghot_record_access - report one access to a page
 * @pfn: page frame that was accessed; any number, also one that is no memory.
 * @nid: node of the CPU or device that accessed it, or NUMA_NO_NODE.
 * @src: who reports.
 * @now: when, in jiffies.
 *
 * Adds one to the heat of the folio that @pfn belongs to, if it is in
 * lower-tier memory, and makes the folio a candidate for promotion if that
 * makes it hot.
 *
 * Context: any, NMI included. Takes no lock, allocates nothing, does not
 *	    sleep; bounded.
 * Return: true if the access was recorded, false if there is no record for
 *	   the page.
 */
static __always_inline bool pghot_record_access(unsigned long pfn, int nid,
						enum pghot_source_id src,
						unsigned long now)
{
	if (!pghot_enabled())
		return false;
	return __pghot_record_access(pfn, nid, src, now);
}

/**
 * pghot_record_range - report a number of accesses to each page of a range
 * @pfn: first page frame.
 * @nr_pages: length of the range in pages; what exceeds a memory section
 *	      (PAGES_PER_SECTION) is ignored, so that the call is bounded.
 * @nid: node that accessed, or NUMA_NO_NODE.
 * @src: who reports.
 * @count: accesses to each page since the last report; 0 reports nothing.
 * @now: when, in jiffies.
 *
 * For counters that report epochs. A folio is counted once, however many of
 * its pages are in the range.
 *
 * Context: any, as pghot_record_access(). The time grows with @nr_pages: in NMI
 *	    and hard interrupt context, report no more than 512 pages at once.
 * Return: number of folios that were recorded.
 */
static __always_inline unsigned long
pghot_record_range(unsigned long pfn, unsigned long nr_pages, int nid,
		   enum pghot_source_id src, unsigned int count,
		   unsigned long now)
{
	if (!pghot_enabled())
		return 0;
	return __pghot_record_range(pfn, nr_pages, nid, src, count, now);
}

void __pghot_demoted(struct folio *folio, int nid);

/**
 * pghot_demoted - kswapd has demoted a folio
 * @folio: the new folio, in a lower tier.
 * @nid: node that it comes from. Nothing happens if that is in a lower tier, too.
 *
 * If it is accessed soon, promotion slows down: see mm/pghot/policy.h. An access
 * that is reported at the same time may get lost.
 *
 * Context: process; @folio is locked, and not mapped yet.
 */
static __always_inline void pghot_demoted(struct folio *folio, int nid)
{
	if (pghot_enabled())
		__pghot_demoted(folio, nid);
}

#else /* !CONFIG_PGHOT */

/*
 * Macros, where functions would do: the compiler has to see a constant before it
 * lays out branches, so that a kernel without pghot has the very code that it had.
 */
#define pghot_enabled()	false

static inline int pghot_register_source(const struct pghot_source *src)
{
	return 0;
}

static inline void pghot_demoted(struct folio *folio, int nid)
{
}

static inline bool pghot_record_access(unsigned long pfn, int nid,
				       enum pghot_source_id src,
				       unsigned long now)
{
	return false;
}

static inline unsigned long
pghot_record_range(unsigned long pfn, unsigned long nr_pages, int nid,
		   enum pghot_source_id src, unsigned int count,
		   unsigned long now)
{
	return 0;
}

#endif /* CONFIG_PGHOT */

#ifdef CONFIG_PGHOT_HINTFAULTS

DECLARE_STATIC_KEY_FALSE(pghot_hintfaults_key);

/**
 * pghot_hintfaults_enabled - do hint faults on lower-tier memory go to pghot?
 *
 * A patched-out branch while they do not.
 *
 * Context: any.
 * Return: true while the source is enabled.
 */
static __always_inline bool pghot_hintfaults_enabled(void)
{
	return static_branch_unlikely(&pghot_hintfaults_key);
}

DECLARE_STATIC_KEY_FALSE(pghot_hintfaults_used_key);

/**
 * pghot_hintfaults_used - have hint faults ever been a source since the boot?
 *
 * Page tables that were armed for pghot fault even after the source was disabled.
 *
 * Context: any.
 * Return: true from the first time that the source is enabled.
 */
static __always_inline bool pghot_hintfaults_used(void)
{
	return static_branch_unlikely(&pghot_hintfaults_used_key);
}

unsigned int pghot_hintfault_stamp(void);
void pghot_hintfault(struct folio *folio, int nid);

#else /* !CONFIG_PGHOT_HINTFAULTS */

#define pghot_hintfaults_enabled()	false
#define pghot_hintfaults_used()		false

static inline unsigned int pghot_hintfault_stamp(void)
{
	return 0;
}

static inline void pghot_hintfault(struct folio *folio, int nid)
{
}

#endif /* CONFIG_PGHOT_HINTFAULTS */

#ifdef CONFIG_PGHOT_HWHINTS

/* What a unit that samples accesses can do, for struct pghot_hint_unit::caps. */
#define PGHOT_HINT_CAP_L3MISS	BIT(0)	/* report misses of the last-level cache only */
#define PGHOT_HINT_CAP_LATENCY	BIT(1)	/* report slow loads only */

/* Limits of struct pghot_hint_config, which units may narrow. */
#define PGHOT_HINT_PERIOD_STEP	16
#define PGHOT_HINT_LATENCY_STEP	128
#define PGHOT_HINT_LATENCY_MAX	2048

/**
 * struct pghot_hint_config - how to sample
 * @period: operations from one sample to the next, a multiple of
 *	    PGHOT_HINT_PERIOD_STEP.
 * @latency: report only loads that took more core cycles than that, a multiple of
 *	     PGHOT_HINT_LATENCY_STEP; 0: all accesses.
 * @l3miss_only: report only what missed the last-level cache.
 */
struct pghot_hint_config {
	unsigned int	period;
	unsigned int	latency;
	bool		l3miss_only;
};

/**
 * struct pghot_hint_unit - a unit of the processor that samples memory accesses
 * @name: what the administrator reads.
 * @rank: of several units, the one with the highest rank is used.
 * @caps: PGHOT_HINT_CAP_*.
 * @min_period: shortest period that does not drown the CPU in interrupts.
 * @max_period: longest period.
 * @start: sample on all online CPUs, and on those that come later.
 * @stop: stop it. No call of pghot_hint() is under way when it returns.
 * @configure: change how to sample, on all CPUs, at once.
 * @resume: sample on a CPU again, where pghot_hint() said to pause; nothing if it
 *	    is offline or is sampled.
 *
 * The functions are called one at a time, in process context, with
 * cpus_read_lock() held. They may sleep. @start and @configure return 0 or a
 * negative error number, and then nothing has changed.
 */
struct pghot_hint_unit {
	const char	*name;
	unsigned int	rank;
	unsigned int	caps;
	unsigned int	min_period;
	unsigned int	max_period;
	int		(*start)(const struct pghot_hint_config *config);
	void		(*stop)(void);
	int		(*configure)(const struct pghot_hint_config *config);
	void		(*resume)(unsigned int cpu);
};

/**
 * enum pghot_hint_kind - what accessed memory
 * @PGHOT_HINT_NONE: nothing: the operation was no access, or nobody knows.
 * @PGHOT_HINT_LOAD: a load.
 * @PGHOT_HINT_STORE: a store, or a load and a store.
 * @PGHOT_HINT_PREFETCH: a prefetch that the program asked for.
 */
enum pghot_hint_kind {
	PGHOT_HINT_NONE,
	PGHOT_HINT_LOAD,
	PGHOT_HINT_STORE,
	PGHOT_HINT_PREFETCH,
};

/**
 * enum pghot_hint_level - where the data came from, as the unit says
 * @PGHOT_HINT_UNKNOWN: it does not say.
 * @PGHOT_HINT_CACHE: from a cache, of whatever CPU.
 * @PGHOT_HINT_DRAM: from DRAM, which may well be lower-tier memory.
 * @PGHOT_HINT_EXTMEM: from extended memory, such as CXL memory.
 * @PGHOT_HINT_DEVICE: from no memory at all.
 */
enum pghot_hint_level {
	PGHOT_HINT_UNKNOWN,
	PGHOT_HINT_CACHE,
	PGHOT_HINT_DRAM,
	PGHOT_HINT_EXTMEM,
	PGHOT_HINT_DEVICE,
};

/**
 * struct pghot_hint - one sample
 * @phys: physical address, of the host.
 * @addr: linear address.
 * @kind: enum pghot_hint_kind.
 * @level: enum pghot_hint_level.
 * @phys_valid: @phys means something.
 * @addr_valid: @addr means something.
 * @guest: a virtual machine did it: @addr is none of the current task.
 */
struct pghot_hint {
	u64		phys;
	unsigned long	addr;
	u8		kind;
	u8		level;
	bool		phys_valid;
	bool		addr_valid;
	bool		guest;
};

int pghot_register_hint_unit(const struct pghot_hint_unit *unit);
bool pghot_hint(const struct pghot_hint *hint);
void pghot_hint_took(u64 ns);
void pghot_hint_gave_way(unsigned int nr_cpus);

#endif /* CONFIG_PGHOT_HWHINTS */

#ifdef CONFIG_PGHOT_LOOKAROUND

/**
 * struct pghot_look_stats - what looks at page tables did, since the boot
 * @areas: areas (PMD_SIZE) at which a round of looks began.
 * @refused: hints that were not followed, as looks had used up their time, or there
 *	     were too many areas.
 * @looks: looks at an area, those that arm it included.
 * @found: times that a folio was found accessed and reported.
 * @late: looks that came too late to say anything, or were left out.
 * @flushes: TLB flushes of address spaces.
 * @ns: CPU time of the thread that looks, in ns.
 */
struct pghot_look_stats {
	u64	areas;
	u64	refused;
	u64	looks;
	u64	found;
	u64	late;
	u64	flushes;
	u64	ns;
};

int pghot_look_start(void);
void pghot_look_stop(void);
bool pghot_look_around(pid_t tgid, unsigned long addr, int nid);
void pghot_look_get_stats(struct pghot_look_stats *stats);

#endif /* CONFIG_PGHOT_LOOKAROUND */

#endif /* _LINUX_PGHOT_H */
