/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Samples of IBS Op as perf decodes them, and what they are for pghot.
 */
#ifndef _ASM_X86_AMD_IBS_OP_HINTS_H
#define _ASM_X86_AMD_IBS_OP_HINTS_H

#include <linux/perf_event.h>
#include <linux/pghot.h>

static inline enum pghot_hint_kind ibs_op_hint_kind(union perf_mem_data_src src)
{
	if (src.mem_op & PERF_MEM_OP_STORE)
		return PGHOT_HINT_STORE;
	if (src.mem_op & PERF_MEM_OP_PFETCH)
		return PGHOT_HINT_PREFETCH;
	return src.mem_op & PERF_MEM_OP_LOAD ? PGHOT_HINT_LOAD : PGHOT_HINT_NONE;
}

/*
 * Uncached accesses are to memory of devices. What waited for an earlier miss of the
 * same line (LFB) got its data from wherever that came from.
 */
static inline enum pghot_hint_level ibs_op_hint_level(union perf_mem_data_src src)
{
	switch (src.mem_lvl_num) {
	case PERF_MEM_LVLNUM_L1:
	case PERF_MEM_LVLNUM_L2:
	case PERF_MEM_LVLNUM_L3:
	case PERF_MEM_LVLNUM_L4:
	case PERF_MEM_LVLNUM_ANY_CACHE:
		return PGHOT_HINT_CACHE;
	case PERF_MEM_LVLNUM_RAM:
		return PGHOT_HINT_DRAM;
	case PERF_MEM_LVLNUM_CXL:
	case PERF_MEM_LVLNUM_PMEM:
		return PGHOT_HINT_EXTMEM;
	case PERF_MEM_LVLNUM_UNC:
	case PERF_MEM_LVLNUM_IO:
		return PGHOT_HINT_DEVICE;
	default:
		return PGHOT_HINT_UNKNOWN;
	}
}

/**
 * ibs_op_hint - what perf says of a sample
 * @data: the sample.
 *
 * Return: the sample; whether a virtual machine did it is not in @data.
 */
static inline struct pghot_hint ibs_op_hint(const struct perf_sample_data *data)
{
	struct pghot_hint hint = {
		.phys_valid	= data->sample_flags & PERF_SAMPLE_PHYS_ADDR,
		.addr_valid	= data->sample_flags & PERF_SAMPLE_ADDR,
	};

	if (hint.phys_valid)
		hint.phys = data->phys_addr;
	if (hint.addr_valid)
		hint.addr = data->addr;
	if (data->sample_flags & PERF_SAMPLE_DATA_SRC) {
		hint.kind = ibs_op_hint_kind(data->data_src);
		hint.level = ibs_op_hint_level(data->data_src);
	}
	return hint;
}

#endif /* _ASM_X86_AMD_IBS_OP_HINTS_H */
