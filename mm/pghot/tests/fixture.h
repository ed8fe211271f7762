/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tests of the record path share: a lower-tier node, an enabled source,
 * pages to report accesses to.
 */
#ifndef _MM_PGHOT_TESTS_FIXTURE_H
#define _MM_PGHOT_TESTS_FIXTURE_H

#include <kunit/test.h>
#include <linux/types.h>

#include "../internal.h"

/**
 * struct pghot_fixture - what the tests found and what is put back after them
 * @nid: a lower-tier node.
 * @node: the same as pghot has it.
 * @dram_nid: a DRAM node.
 * @dram_index: what records call it.
 * @epoch: the epoch of @now.
 * @now: when accesses are reported to have happened.
 * @sources: sources that were enabled.
 * @knobs: values that knobs had.
 */
struct pghot_fixture {
	int			nid;
	struct pghot_node	*node;
	int			dram_nid;
	unsigned int		dram_index;
	unsigned int		epoch;
	unsigned long		now;
	unsigned long		sources;
	int			knobs[PGHOT_NR_KNOBS];
};

int pghot_fixture_init(struct kunit *test);
void pghot_fixture_exit(struct kunit *test);
struct page *pghot_slow_pages(struct kunit *test, unsigned int order, gfp_t gfp);
u16 *pghot_record_of(unsigned long pfn);
bool pghot_is_candidate(unsigned long pfn);
void pghot_reset_record(unsigned long pfn);
bool pghot_wait_dropped(unsigned long pfn);

#endif /* _MM_PGHOT_TESTS_FIXTURE_H */
