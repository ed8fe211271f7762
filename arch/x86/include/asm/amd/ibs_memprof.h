/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AMD IBS Memory Profiler: registers, and what they say.
 *
 * AMD describes the unit in "AMD64 Zen6 Instruction Based Sampling (IBS) Extensions
 * and Features", publication 69205. The numbers here come from public kernel headers
 * instead, which agree with each other; that document was not at hand to check them.
 * So nothing is accessed unless CPUID says that the unit is there, and then with
 * care: see ibs_memprof.c.
 */
#ifndef _ASM_X86_AMD_IBS_MEMPROF_H
#define _ASM_X86_AMD_IBS_MEMPROF_H

#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/pghot.h>
#include <linux/types.h>

#include <asm/amd/ibs.h>

/* CPUID Fn8000_001B EAX: the unit is there. */
#define IBS_CAPS_MEMPROF		BIT(18)

/* MSR_AMD64_IBSCTL: entry of the extended LVT that firmware chose for the unit. */
#define IBSCTL_MEMPROF_LVT_OFFSET	GENMASK_ULL(19, 16)
#define IBSCTL_MEMPROF_LVT_VALID	BIT_ULL(24)

#define MSR_AMD64_IBSMEMCTL		0xc0010380
#define MSR_AMD64_IBSMEMCTL2		0xc0010381
#define MSR_AMD64_IBSMEMDATA2		0xc0010382
#define MSR_AMD64_IBSMEMDATA3		0xc0010383
#define MSR_AMD64_IBSMEMLINAD		0xc0010384
#define MSR_AMD64_IBSMEMPHYSAD		0xc0010385

/*
 * IbsMemCtl. The unit counts up to MaxCnt, whose lower four bits are zero and not
 * in the register, and tags an operation. When that is done and passes the filters,
 * it sets Val and interrupts, and rests until Val is cleared.
 */
#define IBSMEMCTL_MAXCNT_19_4		GENMASK_ULL(15, 0)
#define IBSMEMCTL_L3MISSONLY		BIT_ULL(16)
#define IBSMEMCTL_EN			BIT_ULL(17)
#define IBSMEMCTL_VAL			BIT_ULL(18)
#define IBSMEMCTL_CNTCTL		BIT_ULL(19)	/* count operations, not cycles */
#define IBSMEMCTL_MAXCNT_26_20		GENMASK_ULL(26, 20)
#define IBSMEMCTL_LATTHRSH		GENMASK_ULL(62, 59)
#define IBSMEMCTL_LATFLTEN		BIT_ULL(63)

/* IbsMemCtl2 */
#define IBSMEMCTL2_DIS			BIT_ULL(0)
#define IBSMEMCTL2_EXCL_USER		BIT_ULL(1)	/* RIP[63] is 0 */
#define IBSMEMCTL2_EXCL_KERNEL		BIT_ULL(2)	/* RIP[63] is 1 */

/* IbsMemData2 */
#define IBSMEMDATA2_SRC_LO		GENMASK_ULL(2, 0)
#define IBSMEMDATA2_RMTNODE		BIT_ULL(4)
#define IBSMEMDATA2_SRC_HI		GENMASK_ULL(7, 6)
#define IBSMEMDATA2_RMTSOCKET		BIT_ULL(9)

/* What the two parts of the source make. 7 is not I/O, as it is in IBS Op. */
#define IBSMEM_SRC_LOCAL_CACHE		1
#define IBSMEM_SRC_NEAR_CACHE		2
#define IBSMEM_SRC_DRAM			3
#define IBSMEM_SRC_FAR_CACHE		5
#define IBSMEM_SRC_FAR_DRAM		7
#define IBSMEM_SRC_EXTMEM		8

/* IbsMemData3 */
#define IBSMEMDATA3_LOAD		BIT_ULL(0)
#define IBSMEMDATA3_STORE		BIT_ULL(1)
#define IBSMEMDATA3_DCMISS		BIT_ULL(7)
#define IBSMEMDATA3_LINADVALID		BIT_ULL(17)
#define IBSMEMDATA3_PHYSADVALID		BIT_ULL(18)
#define IBSMEMDATA3_L2MISS		BIT_ULL(20)
#define IBSMEMDATA3_SWPF		BIT_ULL(21)

#define IBSMEM_MIN_PERIOD		16
#define IBSMEM_MAX_PERIOD		(BIT(27) - 16)

/**
 * ibs_memprof_ctl - IbsMemCtl for a way to sample
 * @config: the way; within the limits of the unit.
 *
 * Return: the value, with En and Val clear.
 */
static inline u64 ibs_memprof_ctl(const struct pghot_hint_config *config)
{
	u64 ctl = IBSMEMCTL_CNTCTL;

	ctl |= FIELD_PREP(IBSMEMCTL_MAXCNT_19_4, (config->period >> 4) & 0xffff);
	/* These stand where they stand in the count. */
	ctl |= config->period & IBSMEMCTL_MAXCNT_26_20;
	if (config->l3miss_only)
		ctl |= IBSMEMCTL_L3MISSONLY;
	if (config->latency) {
		ctl |= IBSMEMCTL_LATFLTEN;
		/* It reports what takes more than (field + 1) * 128 cycles. */
		ctl |= FIELD_PREP(IBSMEMCTL_LATTHRSH, config->latency / 128 - 1);
	}
	return ctl;
}

/**
 * ibs_memprof_config - what a value of IbsMemCtl means
 * @ctl: the value.
 *
 * Return: the way to sample; the reverse of ibs_memprof_ctl().
 */
static inline struct pghot_hint_config ibs_memprof_config(u64 ctl)
{
	struct pghot_hint_config config = {
		.period		= FIELD_GET(IBSMEMCTL_MAXCNT_19_4, ctl) << 4 |
				  (ctl & IBSMEMCTL_MAXCNT_26_20),
		.l3miss_only	= ctl & IBSMEMCTL_L3MISSONLY,
	};

	if (ctl & IBSMEMCTL_LATFLTEN)
		config.latency = (FIELD_GET(IBSMEMCTL_LATTHRSH, ctl) + 1) * 128;
	return config;
}

static inline unsigned int ibs_memprof_source(u64 data2)
{
	return FIELD_GET(IBSMEMDATA2_SRC_LO, data2) |
	       FIELD_GET(IBSMEMDATA2_SRC_HI, data2) << 3;
}

static inline enum pghot_hint_kind ibs_memprof_kind(u64 data3)
{
	if (data3 & IBSMEMDATA3_STORE)
		return PGHOT_HINT_STORE;
	if (data3 & IBSMEMDATA3_SWPF)
		return PGHOT_HINT_PREFETCH;
	return data3 & IBSMEMDATA3_LOAD ? PGHOT_HINT_LOAD : PGHOT_HINT_NONE;
}

static inline enum pghot_hint_level ibs_memprof_level(u64 data2, u64 data3)
{
	if (!(data3 & IBSMEMDATA3_DCMISS) || !(data3 & IBSMEMDATA3_L2MISS))
		return PGHOT_HINT_CACHE;
	/* As in IBS Op, where the source is that of a load. */
	if (data3 & IBSMEMDATA3_STORE)
		return PGHOT_HINT_UNKNOWN;

	switch (ibs_memprof_source(data2)) {
	case IBSMEM_SRC_LOCAL_CACHE:
	case IBSMEM_SRC_NEAR_CACHE:
	case IBSMEM_SRC_FAR_CACHE:
		return PGHOT_HINT_CACHE;
	case IBSMEM_SRC_DRAM:
	case IBSMEM_SRC_FAR_DRAM:
		return PGHOT_HINT_DRAM;
	case IBSMEM_SRC_EXTMEM:
		return PGHOT_HINT_EXTMEM;
	default:
		return PGHOT_HINT_UNKNOWN;
	}
}

/**
 * ibs_memprof_decode - what the data registers say of a sample
 * @data2: IbsMemData2.
 * @data3: IbsMemData3.
 * @linad: IbsMemLinAd.
 * @physad: IbsMemPhysAd.
 *
 * Return: the sample; whether a virtual machine did it is not in the registers.
 */
static inline struct pghot_hint ibs_memprof_decode(u64 data2, u64 data3, u64 linad,
						   u64 physad)
{
	return (struct pghot_hint) {
		.phys		= physad,
		.addr		= linad,
		.kind		= ibs_memprof_kind(data3),
		.level		= ibs_memprof_level(data2, data3),
		.phys_valid	= data3 & IBSMEMDATA3_PHYSADVALID,
		.addr_valid	= data3 & IBSMEMDATA3_LINADVALID,
	};
}

#endif /* _ASM_X86_AMD_IBS_MEMPROF_H */
