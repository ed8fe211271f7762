/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pghot

#if !defined(_TRACE_PGHOT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PGHOT_H

#include <linux/tracepoint.h>

#define PGHOT_TRACE_SOURCES				\
	{ 0,	"hintfaults" },				\
	{ 1,	"hwhints" },				\
	{ 2,	"pgscan" }

#define PGHOT_TRACE_SKIP				\
	{ 0,	"cold" },				\
	{ 1,	"gone" },				\
	{ 2,	"unmovable" },				\
	{ 3,	"denied" },				\
	{ 4,	"busy" },				\
	{ 5,	"pinned" },				\
	{ 6,	"nospace" },				\
	{ 7,	"ratelimit" },				\
	{ 8,	"failed" }

/**
 * pghot_record - an access was added to a record
 * @pfn: head page of the folio.
 * @nid: node that accessed it, or -1.
 * @source: who reported it.
 * @heat: heat of the record after it.
 */
TRACE_EVENT(pghot_record,

	TP_PROTO(unsigned long pfn, int nid, unsigned int source,
		 unsigned int heat),

	TP_ARGS(pfn, nid, source, heat),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(int, nid)
		__field(unsigned int, source)
		__field(unsigned int, heat)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->nid = nid;
		__entry->source = source;
		__entry->heat = heat;
	),

	TP_printk("pfn=0x%lx nid=%d source=%s heat=%u", __entry->pfn,
		  __entry->nid,
		  __print_symbolic(__entry->source, PGHOT_TRACE_SOURCES),
		  __entry->heat)
);

/**
 * pghot_hot - a page became hot
 * @pfn: head page of the folio.
 * @nid: node that accessed it, or -1.
 * @heat: its heat.
 */
TRACE_EVENT(pghot_hot,

	TP_PROTO(unsigned long pfn, int nid, unsigned int heat),

	TP_ARGS(pfn, nid, heat),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(int, nid)
		__field(unsigned int, heat)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->nid = nid;
		__entry->heat = heat;
	),

	TP_printk("pfn=0x%lx nid=%d heat=%u", __entry->pfn, __entry->nid,
		  __entry->heat)
);

/**
 * pghot_promote - a batch was migrated
 * @src_nid: lower-tier node.
 * @dst_nid: DRAM node.
 * @nr_folios: folios in the batch.
 * @nr_promoted: pages that arrived.
 */
TRACE_EVENT(pghot_promote,

	TP_PROTO(int src_nid, int dst_nid, unsigned int nr_folios,
		 unsigned int nr_promoted),

	TP_ARGS(src_nid, dst_nid, nr_folios, nr_promoted),

	TP_STRUCT__entry(
		__field(int, src_nid)
		__field(int, dst_nid)
		__field(unsigned int, nr_folios)
		__field(unsigned int, nr_promoted)
	),

	TP_fast_assign(
		__entry->src_nid = src_nid;
		__entry->dst_nid = dst_nid;
		__entry->nr_folios = nr_folios;
		__entry->nr_promoted = nr_promoted;
	),

	TP_printk("src_nid=%d dst_nid=%d nr_folios=%u nr_promoted=%u",
		  __entry->src_nid, __entry->dst_nid, __entry->nr_folios,
		  __entry->nr_promoted)
);

/**
 * pghot_skip - a candidate was not promoted
 * @nid: lower-tier node.
 * @pfn: the page.
 * @reason: why.
 */
TRACE_EVENT(pghot_skip,

	TP_PROTO(int nid, unsigned long pfn, unsigned int reason),

	TP_ARGS(nid, pfn, reason),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(unsigned long, pfn)
		__field(unsigned int, reason)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->pfn = pfn;
		__entry->reason = reason;
	),

	TP_printk("nid=%d pfn=0x%lx reason=%s", __entry->nid, __entry->pfn,
		  __print_symbolic(__entry->reason, PGHOT_TRACE_SKIP))
);

#endif /* _TRACE_PGHOT_H */

#include <trace/define_trace.h>
