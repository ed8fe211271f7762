// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of QEMU's IBS op and memory profiler units and of the APIC's extended
 * vector table, on the bare machine: TAP on the debug console (port 0xe9).
 *
 * The command line names what the machine has:
 *	caps=0x..	what the units can, as in CPUID Fn8000_001B EAX
 *	leaf=0x..	what that leaf says
 *	near= far= ext=	physical addresses of 16 MB on the node of CPU 0, on
 *			another one with CPUs, on one without (0: no such node)
 *	model=1		there is a memory model: levels, nodes and latencies
 *	stall=1		time passes while an access waits
 *	big=1		256 MB at address 0x10000000 may be walked
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define HIGH		0xffff800000000000ull

#define FETCH_CTL	0xc0011030
#define OP_CTL		0xc0011033
#define OP_RIP		0xc0011034
#define OP_DATA		0xc0011035
#define OP_DATA2	0xc0011036
#define OP_DATA3	0xc0011037
#define OP_LINAD	0xc0011038
#define OP_PHYSAD	0xc0011039
#define IBSCTL		0xc001103a
#define BRTARGET	0xc001103b
#define FETCH_CTLX	0xc001103c
#define OP_DATA4	0xc001103d
#define OP_CTL2		0xc001103e
#define FETCH_CTL2	0xc001103f
#define MEM_CTL		0xc0010380
#define MEM_CTL2	0xc0010381
#define MEM_DATA2	0xc0010382
#define MEM_DATA3	0xc0010383
#define MEM_LINAD	0xc0010384
#define MEM_PHYSAD	0xc0010385

#define L3MISSONLY	(1ull << 16)
#define EN		(1ull << 17)
#define VAL		(1ull << 18)
#define CNT_OPS		(1ull << 19)
#define LAT_EN		(1ull << 63)
#define DIS		1
#define EXCL_0		2
#define EXCL_1		4

#define D3_LOAD		1
#define D3_STORE	2
#define D3_DCMISS	(1 << 7)
#define D3_MISALIGNED	(1 << 8)
#define D3_UNCACHED	(1 << 14)
#define D3_LOCKED	(1 << 15)
#define D3_LIN		(1 << 17)
#define D3_PHYS		(1 << 18)
#define D3_L2MISS	(1 << 20)
#define D3_PREFETCH	(1 << 21)

/* Bits of Fn8000_001B EAX */
enum { AVAIL, FETCHSAM, OPSAM, RDWROPCNT, OPCNT, BRNTRGT, OPCNTEXT, RIPINVALID,
       BRNFUSE, FETCHCTLX, OPDATA4, ZEN4, OPLDLAT, DISCAP, FETCHLAT, RIP63,
       STREAM, MEMPROF = 18, DTLBPG };

static u64 caps, leaf, near, far, ext, model, stall, big;
static bool cap(int bit) { return caps >> bit & 1; }

/* ------------------------------------------------------------------------- */
/* The machine */

static void outb(u16 port, u8 v) { asm volatile("outb %0, %1" :: "a"(v), "Nd"(port)); }
static void outl(u16 port, u32 v) { asm volatile("outl %0, %1" :: "a"(v), "Nd"(port)); }

static void put(const char *s)
{
	while (*s)
		outb(0xe9, *s++);
}

static void put_num(u64 v, unsigned int base)
{
	char b[24], *p = b + sizeof(b) - 1;

	*p = 0;
	do
		*--p = "0123456789abcdef"[v % base];
	while (v /= base);
	put(p);
}

/* %s %u %x, all 64 bits wide */
static void print(const char *fmt, ...)
{
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	for (; *fmt; fmt++) {
		if (*fmt != '%') {
			outb(0xe9, *fmt);
			continue;
		}
		switch (*++fmt) {
		case 's': put(__builtin_va_arg(ap, const char *)); break;
		case 'u': put_num(__builtin_va_arg(ap, u64), 10); break;
		case 'x': put("0x"); put_num(__builtin_va_arg(ap, u64), 16); break;
		}
	}
	__builtin_va_end(ap);
}

static int tests, failures;

#define U(x) ((u64)(x))
#define check(cond, ...) do {						\
		bool ok_ = (cond);					\
		tests++;						\
		failures += !ok_;					\
		print("%s %u ", ok_ ? "ok" : "not ok", U(tests));	\
		print(__VA_ARGS__);					\
		put("\n");						\
	} while (0)

/* A check of which only the failures are worth a line. */
#define expect(bad, cond, ...) do {					\
		if (!(cond)) {						\
			(bad)++;					\
			put("# ");					\
			print(__VA_ARGS__);				\
			put("\n");					\
		}							\
	} while (0)

static void skip(const char *what, const char *why)
{
	tests++;
	print("ok %u %s # SKIP %s\n", U(tests), what, why);
}

static void cpuid(u32 leaf, u32 *r)
{
	asm volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "0"(leaf), "2"(0));
}

struct frame { u64 ip, cs, flags, sp, ss; };

static volatile u64 gp_resume, gp_count;

__attribute__((interrupt)) static void on_gp(struct frame *f, u64 err)
{
	if (!gp_resume) {
		print("Bail out! #GP(%x) at %x\n", err, f->ip);
		outl(0xf4, 2);
	}
	gp_count++;
	f->ip = gp_resume;
}

__attribute__((interrupt)) static void on_other(struct frame *f)
{
	print("Bail out! exception at %x\n", f->ip);
	outl(0xf4, 2);
}

__attribute__((interrupt)) static void on_other_err(struct frame *f, u64 err)
{
	print("Bail out! exception (%x) at %x\n", err, f->ip);
	outl(0xf4, 2);
}

/* False: #GP */
static bool rd(u32 msr, u64 *v)
{
	u64 before = gp_count;
	u32 lo = 0, hi = 0;

	asm volatile("leaq 1f(%%rip), %%rax; movq %%rax, %2; rdmsr; 1:"
		     : "=&a"(lo), "=d"(hi), "=m"(gp_resume) : "c"(msr) : "memory");
	gp_resume = 0;
	*v = lo | U(hi) << 32;
	return gp_count == before;
}

static bool wr(u32 msr, u64 v)
{
	u64 before = gp_count;

	asm volatile("leaq 1f(%%rip), %%r8; movq %%r8, %0; wrmsr; 1:"
		     : "=m"(gp_resume) : "c"(msr), "a"((u32)v), "d"((u32)(v >> 32)) : "r8", "memory");
	gp_resume = 0;
	return gp_count == before;
}

static u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr) : "memory");
	return lo | U(hi) << 32;
}

static void wrmsr(u32 msr, u64 v)
{
	asm volatile("wrmsr" :: "c"(msr), "a"((u32)v), "d"((u32)(v >> 32)) : "memory");
}

static u32 apic_read(u32 reg) { return *(volatile u32 *)(0xfee00000ull + reg); }
static void apic_write(u32 reg, u32 v) { *(volatile u32 *)(0xfee00000ull + reg) = v; }

static u64 tsc(void)
{
	u32 lo, hi;

	asm volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return lo | U(hi) << 32;
}

/* start.S */
u64 arm_stride(u64 ptr, u64 n, u64 stride, u32 msr, u64 ctl);
u64 arm_loads(u64 ptr, u64 n, u32 msr, u64 ctl);
void stride(u64 ptr, u64 n, u64 stride);
extern char arm_stride_load[];
typedef void only_fn(u64 ptr, u64 n);
only_fn only_load1, only_load2, only_load4, only_load8, only_store1, only_store8,
	only_locked, only_prefetch, block8, block125;
extern char only_load1_insn[], only_load2_insn[], only_load4_insn[], only_load8_insn[],
	only_store1_insn[], only_store8_insn[], only_locked_insn[];
void pick(u64 buf, u64 n, const u16 *pages, u32 *truth);
extern char ap_start[], ap_end[];

/* ------------------------------------------------------------------------- */
/* The units */

struct unit {
	const char *name;
	u32 ctl, ctl2, data2, data3, linad, physad;
	int lvt;
} units[2] = {
	{ "op", OP_CTL, OP_CTL2, OP_DATA2, OP_DATA3, OP_LINAD, OP_PHYSAD, 1 },
	{ "memprof", MEM_CTL, MEM_CTL2, MEM_DATA2, MEM_DATA3, MEM_LINAD, MEM_PHYSAD, 2 },
};
#define OP	(&units[0])
#define MEM	(&units[1])

struct sample { u64 ctl, rip, data, data2, data3, linad, physad; };

static bool has_unit(struct unit *u) { return u == OP ? cap(OPSAM) : cap(MEMPROF); }
static bool has_ctl2(struct unit *u) { return u == MEM || cap(DISCAP) || cap(RIP63) || cap(STREAM); }

static u64 period_bits(u64 period) { return (period >> 4 & 0xffff) | (period & (0x7full << 20)); }

static void unit_off(struct unit *u)
{
	wrmsr(u->ctl, 0);
	if (has_ctl2(u))
		wrmsr(u->ctl2, 0);
}

static void read_sample(struct unit *u, struct sample *s)
{
	s->ctl = rdmsr(u->ctl);
	s->data2 = rdmsr(u->data2);
	s->data3 = rdmsr(u->data3);
	s->linad = rdmsr(u->linad);
	s->physad = rdmsr(u->physad);
	s->rip = u == OP ? rdmsr(OP_RIP) : 0;
	s->data = u == OP ? rdmsr(OP_DATA) : 0;
}

/* Runs fn until the armed unit has a sample, at most for n turns. */
static bool run_for_sample(struct unit *u, only_fn *fn, u64 ptr, u64 n, struct sample *s)
{
	u64 done;

	for (done = 0; done < n; done += 1000) {
		fn(ptr, 1000);
		if (rdmsr(u->ctl) & VAL) {
			read_sample(u, s);
			return true;
		}
	}
	return false;
}

/* A sample of an op that did access memory (or not, if want is false). */
static bool sample_of(struct unit *u, u64 flags, only_fn *fn, u64 ptr, bool want, struct sample *s)
{
	u64 try;

	for (try = 0; try < 64; try++) {
		/* Other parts of the loop with each try */
		unit_off(u);
		wrmsr(u->ctl, period_bits(256 + 16 * (try & 15)) | flags | EN | CNT_OPS |
			      (u == OP && cap(RDWROPCNT) ? (1 + try % 7) << 32 : 0));
		if (run_for_sample(u, fn, ptr, 100000, s) && !!(s->data3 & (D3_LOAD | D3_STORE)) == want &&
		    (!want || (s->linad >= ptr && s->linad < ptr + 0x100000)))
			return true;
	}
	return false;
}

static struct sample irq_sample;
static volatile u64 nmis, irqs, irq_ip;
static void (*volatile irq_hook)(struct unit *u);

static void on_sample(struct frame *f, volatile u64 *count)
{
	int i;

	(*count)++;
	irq_ip = f->ip;
	for (i = 0; i < 2; i++) {
		if (!has_unit(&units[i]) || !(rdmsr(units[i].ctl) & VAL))
			continue;
		if (irq_hook) {
			irq_hook(&units[i]);
		} else {
			read_sample(&units[i], &irq_sample);
			unit_off(&units[i]);
		}
	}
}

__attribute__((interrupt)) static void on_nmi(struct frame *f)
{
	on_sample(f, &nmis);
}

#define VECTOR	0x60
__attribute__((interrupt)) static void on_irq(struct frame *f)
{
	on_sample(f, &irqs);
	apic_write(0xb0, 0);
}

static volatile u64 ticks;
#define TIMER	0x61
__attribute__((interrupt)) static void on_timer(struct frame *f)
{
	(void)f;
	ticks++;
	apic_write(0xb0, 0);
}

static void lvt(struct unit *u, u32 v) { apic_write(0x500 + 0x10 * u->lvt, v); }
#define LVT_MASKED	0x10000
#define LVT_NMI		0x400

static u64 idt[512] __attribute__((aligned(16)));

static void set_gate(int n, void *handler)
{
	u64 a = (u64)handler;

	idt[2 * n] = (a & 0xffff) | 8 << 16 | 0x8e00ull << 32 | (a & 0xffff0000) << 32;
	idt[2 * n + 1] = a >> 32;
}

static void setup(void)
{
	struct { u16 limit; u64 base; } __attribute__((packed)) ptr = { sizeof(idt) - 1, (u64)idt };
	int i;

	for (i = 0; i < 32; i++)
		set_gate(i, i == 8 || (i >= 10 && i <= 14) || i == 17 ? (void *)on_other_err : (void *)on_other);
	set_gate(2, on_nmi);
	set_gate(13, on_gp);
	set_gate(VECTOR, on_irq);
	set_gate(TIMER, on_timer);
	asm volatile("lidt %0" :: "m"(ptr));
	/* No interrupts of the PC's own controllers */
	outb(0x21, 0xff);
	outb(0xa1, 0xff);
	apic_write(0xf0, 0x1ff);
}

#define sti() asm volatile("sti" ::: "memory")
#define cli() asm volatile("cli" ::: "memory")

/* ------------------------------------------------------------------------- */
/* Registers */

static void test_cpuid(void)
{
	u32 r[4];

	cpuid(0x80000001, r);
	check(r[2] >> 10 & 1 && r[2] >> 3 & 1, "CPUID has IBS and EXTAPIC");
	cpuid(0x80000000, r);
	check(r[0] >= 0x8000001b, "CPUID has leaf 8000_001B");
	cpuid(0x8000001b, r);
	check(r[0] == leaf && !r[1] && !r[2] && !r[3], "CPUID 8000_001B is %x", U(r[0]));
}

static void test_apic(void)
{
	int i, bad = 0;

	check(apic_read(0x30) >> 31 && (apic_read(0x30) & 0xff) == 0x14, "APIC version register tells of the extended space");
	check(apic_read(0x400) == 4 << 16, "APIC extended features: four entries");
	apic_write(0x400, 0xffffffff);
	apic_write(0x410, 0xffffffff);
	check(apic_read(0x400) == 4 << 16 && apic_read(0x410) == 0, "APIC extended features and control stay");
	for (i = 0; i < 4; i++)
		expect(bad, apic_read(0x500 + 16 * i) == LVT_MASKED, "entry %u after reset: %x", U(i), U(apic_read(0x500 + 16 * i)));
	for (i = 0; i < 4; i++) {
		apic_write(0x500 + 16 * i, 0xffffffff);
		expect(bad, apic_read(0x500 + 16 * i) == 0x107ff, "entry %u: %x", U(i), U(apic_read(0x500 + 16 * i)));
		apic_write(0x500 + 16 * i, LVT_MASKED | LVT_NMI | i);
	}
	for (i = 0; i < 4; i++)
		expect(bad, apic_read(0x500 + 16 * i) == U(LVT_MASKED | LVT_NMI | i), "entry %u does not keep its own", U(i));
	check(!bad, "APIC extended LVT entries: masked after reset, hold vector, mode and mask");
	apic_write(0x280, 0);
	(void)apic_read(0x540);
	check(apic_read(0x280) & 0x80, "APIC: a fifth entry is an illegal address");
	apic_write(0x280, 0);
}

static void test_msrs(void)
{
	static const struct { u32 msr; int cap; } list[] = {
		{ FETCH_CTL, FETCHSAM }, { FETCH_CTL + 1, FETCHSAM }, { FETCH_CTL + 2, FETCHSAM },
		{ OP_CTL, OPSAM }, { OP_RIP, OPSAM }, { OP_DATA, OPSAM }, { OP_DATA2, OPSAM },
		{ OP_DATA3, OPSAM }, { OP_LINAD, OPSAM }, { OP_PHYSAD, OPSAM }, { IBSCTL, AVAIL },
		{ BRTARGET, BRNTRGT }, { FETCH_CTLX, FETCHCTLX }, { OP_DATA4, OPDATA4 },
		{ OP_CTL2, -1 }, { FETCH_CTL2, -2 }, { MEM_CTL, MEMPROF }, { MEM_CTL2, MEMPROF },
		{ MEM_DATA2, MEMPROF }, { MEM_DATA3, MEMPROF }, { MEM_LINAD, MEMPROF }, { MEM_PHYSAD, MEMPROF },
	};
	static const u32 lins[] = { FETCH_CTL + 1, OP_RIP, OP_LINAD, BRTARGET, MEM_LINAD };
	u64 v, mask;
	unsigned int i;
	int bad = 0;

	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		bool there = list[i].msr == IBSCTL ? true : list[i].cap == -1 ? has_ctl2(OP) :
			     list[i].cap == -2 ? cap(DISCAP) || cap(FETCHLAT) || cap(RIP63) : cap(list[i].cap);

		expect(bad, rd(list[i].msr, &v) == there, "RDMSR %x: expected it %s", U(list[i].msr), there ? "there" : "to fault");
		if (list[i].msr != IBSCTL)
			expect(bad, wr(list[i].msr, 0) == there, "WRMSR %x: expected it %s", U(list[i].msr), there ? "there" : "to fault");
		if (there)
			expect(bad, v == 0 || list[i].msr == IBSCTL, "MSR %x is %x after reset", U(list[i].msr), v);
	}
	check(!bad, "MSRs exist as the capabilities say, and are zero after reset");

	v = rdmsr(IBSCTL);
	check(v == (cap(MEMPROF) ? 0x1020101 : 0x101), "IBSCTL is %x", v);
	check(!wr(IBSCTL, v) && rdmsr(IBSCTL) == v, "IBSCTL is read only");

	bad = 0;
	for (i = 0; i < sizeof(lins) / sizeof(lins[0]); i++) {
		if (!rd(lins[i], &v))
			continue;
		expect(bad, !wr(lins[i], 0x8000000000000000ull), "MSR %x took an address that is not canonical", U(lins[i]));
		expect(bad, wr(lins[i], 0xffff8123456789abull) && rdmsr(lins[i]) == 0xffff8123456789abull, "MSR %x does not keep an address", U(lins[i]));
		wrmsr(lins[i], 0);
	}
	check(!bad, "linear addresses have to be canonical");

	/* All bits but En, which would make it count */
	mask = 0xffff | VAL | (cap(ZEN4) ? L3MISSONLY : 0) | (cap(OPCNT) ? CNT_OPS : 0) |
	       (cap(OPCNTEXT) ? 0x7full << 20 : 0) | (cap(OPLDLAT) ? 0x1full << 59 : 0);
	if (cap(RDWROPCNT))
		mask |= cap(OPCNTEXT) ? 0x7ffffffull << 32 : 0xfffffull << 32;
	if (cap(OPSAM)) {
		wrmsr(OP_CTL, ~EN);
		check(rdmsr(OP_CTL) == mask, "OP_CTL has the bits that the capabilities say: %x", rdmsr(OP_CTL));
		wrmsr(OP_CTL, 0);
	}
	if (has_ctl2(OP)) {
		mask = (cap(DISCAP) ? 1 : 0) | (cap(RIP63) ? 6 : 0) | (cap(STREAM) ? 8 : 0);
		wrmsr(OP_CTL2, ~0ull);
		check(rdmsr(OP_CTL2) == mask, "OP_CTL2 too: %x", rdmsr(OP_CTL2));
		wrmsr(OP_CTL2, 0);
	}
	if (cap(FETCHSAM)) {
		mask = 0xffffffff | 1ull << 48 | 1ull << 49 | 1ull << 57 | (cap(ZEN4) ? 1ull << 59 : 0);
		wrmsr(FETCH_CTL, ~0ull);
		check(rdmsr(FETCH_CTL) == mask, "FETCH_CTL too: %x", rdmsr(FETCH_CTL));
		wrmsr(FETCH_CTL, 0);
	}
	if (cap(MEMPROF)) {
		wrmsr(MEM_CTL, ~EN);
		check(rdmsr(MEM_CTL) == (0xffff | L3MISSONLY | VAL | CNT_OPS | 0x7full << 20 | 0x1full << 59), "MEM_CTL too: %x", rdmsr(MEM_CTL));
		wrmsr(MEM_CTL, 0);
		wrmsr(MEM_CTL2, ~0ull);
		check(rdmsr(MEM_CTL2) == 7, "MEM_CTL2 too: %x", rdmsr(MEM_CTL2));
		wrmsr(MEM_CTL2, 0);
	}
}

/* ------------------------------------------------------------------------- */
/* Counting */

static void test_periods(struct unit *u)
{
	static const u64 periods[] = { 16, 32, 48, 144, 992, 4096, 65520, 65536, 1 << 20, (1 << 24) + 16, (1 << 27) - 16 };
	u64 base = big ? 0x10000000 : near;
	struct sample s;
	unsigned int i;

	lvt(u, LVT_MASKED);
	for (i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		u64 p = periods[i], n = p / 4 + 16, step = p >> 26 ? 4 : 8;

		if (n * step > (big ? 256ull << 20 : 16 << 20)) {
			skip("a long period", "no room");
			continue;
		}
		if (u == OP && p >> 20 && !cap(OPCNTEXT))
			continue;
		unit_off(u);
		arm_stride(base, n, step, u->ctl, period_bits(p) | EN | CNT_OPS);
		read_sample(u, &s);
		/* Where the processor has no such bit, it counts cycles. */
		check(s.ctl & VAL && s.linad == base + step * (p / 4 - 1) && s.physad == s.linad,
		      "%s: a period of %u ops tags op %u", u->name, p, (s.linad - base) / step * 4 + 4);
		unit_off(u);
	}
}

static void test_counter(void)
{
	struct sample s;
	u64 c;

	lvt(OP, LVT_MASKED);
	if (!cap(OPSAM) || !cap(RDWROPCNT)) {
		skip("op: current count", "no such capability");
		return;
	}
	unit_off(OP);
	wrmsr(OP_CTL, period_bits(4096) | EN | CNT_OPS | 1096ull << 32);
	wrmsr(OP_CTL, 0);
	arm_stride(near, 1000, 8, OP_CTL, period_bits(4096) | EN | CNT_OPS | 1096ull << 32);
	read_sample(OP, &s);
	check(s.ctl & VAL && s.linad == near + 8 * (3000 / 4 - 1), "op: counts from the current count that was written");
	c = s.ctl >> 32 & 0x7ffffff;
	check(c >= 1 && c <= 127, "op: after a sample the count of ops is random: %u", c);
	unit_off(OP);

	arm_stride(near, 10000, 8, OP_CTL, period_bits(1 << 20) | EN | CNT_OPS);
	c = rdmsr(OP_CTL) >> 32 & 0x7ffffff;
	check(c >= 40003 && c < 40003 + 64, "op: the current count can be read: %u", c);
	wrmsr(OP_CTL, rdmsr(OP_CTL) & ~EN);
	c = rdmsr(OP_CTL) >> 32 & 0x7ffffff;
	stride(near, 1000, 8);
	check((rdmsr(OP_CTL) >> 32 & 0x7ffffff) == c, "op: a counter that is off stands still");
	unit_off(OP);

	arm_stride(near, 10000, 8, OP_CTL, period_bits(4096) | EN);
	read_sample(OP, &s);
	check(s.ctl & VAL && !(s.ctl >> 32 & 0x7ffffff), "op: after a sample the count of cycles is zero");
	unit_off(OP);
}

static void test_val(struct unit *u)
{
	struct sample s, t;

	lvt(u, LVT_MASKED);
	unit_off(u);
	arm_stride(near, 1000, 8, u->ctl, period_bits(1024) | EN | CNT_OPS);
	read_sample(u, &s);
	stride(near, 10000, 8);
	read_sample(u, &t);
	check(s.ctl & VAL && s.ctl == t.ctl && s.linad == t.linad && s.data3 == t.data3,
	      "%s: a sample stays until Val is cleared", u->name);
	wrmsr(u->ctl, s.ctl & ~VAL);
	stride(near, 2000, 8);
	read_sample(u, &t);
	check(t.ctl & VAL && t.linad != s.linad, "%s: clearing Val arms it again", u->name);
	wrmsr(u->ctl, t.ctl & ~(VAL | EN));
	stride(near, 2000, 8);
	check(!(rdmsr(u->ctl) & VAL), "%s: without En it does not", u->name);
	wrmsr(u->ctl, EN | CNT_OPS);
	stride(near, 1000, 8);
	check(!(rdmsr(u->ctl) & VAL), "%s: a maximum of 0 takes no samples", u->name);
	unit_off(u);
}

static void test_dis(struct unit *u)
{
	u64 c;

	if (u == OP && !cap(DISCAP)) {
		skip("op: Dis", "no such capability");
		return;
	}
	lvt(u, LVT_MASKED);
	unit_off(u);
	wrmsr(u->ctl2, DIS);
	wrmsr(u->ctl, period_bits(4096) | EN | CNT_OPS);
	stride(near, 10000, 8);
	check(!(rdmsr(u->ctl) & VAL), "%s: counts nothing while Dis is set", u->name);
	wrmsr(u->ctl2, 0);
	stride(near, 2000, 8);
	check(rdmsr(u->ctl) & VAL, "%s: clearing Dis starts it", u->name);

	unit_off(u);
	wrmsr(u->ctl, period_bits(65536) | EN | CNT_OPS);
	stride(near, 10000, 8);
	wrmsr(u->ctl2, DIS);
	if (u == OP) {
		c = rdmsr(u->ctl) >> 32 & 0x7ffffff;
		stride(near, 1000, 8);
		check(c > 40000 && c < 40100 && (rdmsr(u->ctl) >> 32 & 0x7ffffff) == c, "%s: setting Dis stops the counter: %u", u->name, c);
	}
	stride(near, 10000, 8);
	check(!(rdmsr(u->ctl) & VAL), "%s: and it takes no sample then", u->name);
	unit_off(u);
}

static void test_halt(void)
{
	u64 c0, c1, t0, t1, before = ticks;

	if (!cap(OPSAM) || !cap(RDWROPCNT) || !cap(OPCNTEXT)) {
		skip("op: a halted processor", "no current count of 27 bits");
		return;
	}
	lvt(OP, LVT_MASKED);
	unit_off(OP);
	apic_write(0x320, TIMER);
	apic_write(0x3e0, 0xb);
	wrmsr(OP_CTL, period_bits(1 << 26) | EN | CNT_OPS);
	t0 = tsc();
	c0 = rdmsr(OP_CTL) >> 32 & 0x7ffffff;
	apic_write(0x380, 2000000);	/* 2 ms */
	asm volatile("sti; hlt; cli" ::: "memory");
	c1 = rdmsr(OP_CTL) >> 32 & 0x7ffffff;
	t1 = tsc();
	check(ticks == before + 1 && c1 - c0 < 100 && t1 - t0 > 1000000, "op: a halted processor does not count: %u ops in %u ticks", c1 - c0, t1 - t0);
	apic_write(0x320, LVT_MASKED);
	unit_off(OP);
}

/* ------------------------------------------------------------------------- */
/* What a sample says */

static void test_contents(void)
{
	static const struct { const char *name; only_fn *fn; char *insn; u32 data3; int width; } list[] = {
		{ "load of 1 byte", only_load1, only_load1_insn, D3_LOAD, 1 },
		{ "load of 2 bytes", only_load2, only_load2_insn, D3_LOAD, 2 },
		{ "load of 4 bytes", only_load4, only_load4_insn, D3_LOAD, 3 },
		{ "load of 8 bytes", only_load8, only_load8_insn, D3_LOAD, 4 },
		{ "store of 1 byte", only_store1, only_store1_insn, D3_STORE, 1 },
		{ "store of 8 bytes", only_store8, only_store8_insn, D3_STORE, 4 },
		{ "locked addition", only_locked, only_locked_insn, D3_LOAD | D3_STORE | D3_LOCKED, 4 },
	};
	u32 bits = D3_LOAD | D3_STORE | D3_LOCKED | D3_LIN | D3_PHYS | D3_MISALIGNED | D3_UNCACHED | D3_PREFETCH;
	struct sample s = { 0 };
	unsigned int i;
	bool got;

	if (!cap(OPSAM)) {
		skip("op: what a sample says", "no such capability");
		return;
	}
	lvt(OP, LVT_MASKED);
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		u64 ptr = HIGH + near + 0x2340;
		u32 data3 = list[i].data3;

		/* One thread for all vCPUs: that is a load, and later a store. */
		if (data3 & D3_LOCKED && stall)
			data3 = D3_LOAD;
		got = sample_of(OP, 0, list[i].fn, ptr, true, &s);
		check(got && s.rip == (u64)list[i].insn && s.linad == ptr && s.physad == near + 0x2340 &&
		      (s.data3 & bits) == (data3 | D3_LIN | D3_PHYS) && (s.data3 >> 22 & 15) == U(list[i].width),
		      "op: %s: RIP, addresses and width are right", list[i].name);
		if (!cap(MEMPROF))
			continue;
		got = sample_of(MEM, 0, list[i].fn, ptr, true, &s);
		check(got && s.linad == ptr && s.physad == near + 0x2340 &&
		      (s.data3 & (D3_LOAD | D3_STORE | D3_LIN | D3_PHYS)) == ((data3 & 3) | D3_LIN | D3_PHYS),
		      "memprof: %s: addresses are right", list[i].name);
	}
	got = sample_of(OP, 0, only_load8, near + 0x103c, true, &s);
	check(got && s.data3 & D3_MISALIGNED && s.linad == near + 0x103c, "op: a load across two lines is misaligned");
	got = sample_of(OP, 0, only_load8, near + 0x2ffc, true, &s);
	check(got && s.data3 & D3_MISALIGNED && s.linad == near + 0x2ffc && s.physad == near + 0x2ffc, "op: a load across two pages is reported with its first byte");
	got = sample_of(OP, 0, only_load8, near + 0x1000, false, &s);
	check(got && !s.data3 && !s.linad && !s.physad && (s.data >> 38 & 1) == cap(RIPINVALID), "op: an op without access is reported as that, its RIP as invalid");
	if (cap(MEMPROF)) {
		got = sample_of(MEM, 0, only_load8, near + 0x1000, false, &s);
		check(got && !s.data3 && !s.linad && !s.physad, "memprof: an op without access is reported as that");
	}
	got = sample_of(OP, 0, only_prefetch, near + 0x4000, true, &s);
	check(got && (s.data3 & bits) == (D3_LOAD | D3_PREFETCH | D3_LIN | D3_PHYS) && s.linad == near + 0x4000, "op: a software prefetch is known as that");
	got = sample_of(OP, 0, only_load4, 0xfee00020, true, &s);
	check(got && s.data3 & D3_UNCACHED && !(s.data3 & (D3_DCMISS | D3_L2MISS)) && !s.data2 && s.linad == 0xfee00020, "op: a load from a device is uncached");
	unit_off(OP);
	if (cap(MEMPROF))
		unit_off(MEM);
}

/* One load per line, through 16 MB: all go to memory, whatever the caches. */
static u64 walk_at;
static void walk(u64 ptr, u64 n)
{
	while (n--) {
		*(volatile u64 *)(ptr + walk_at);
		walk_at = (walk_at + 64) & 0xffffff;
	}
}

static void walk_store(u64 ptr, u64 n)
{
	while (n--) {
		*(volatile u64 *)(ptr + walk_at) = n;
		walk_at = (walk_at + 64) & 0xffffff;
	}
}

/* The next sample of the buffer. */
static bool sample_in(struct unit *u, u64 flags, only_fn *fn, u64 ptr, struct sample *s)
{
	int try;

	for (try = 0; try < 64; try++) {
		unit_off(u);
		wrmsr(u->ctl, period_bits(1024 + 16 * try) | flags | EN | CNT_OPS);
		if (run_for_sample(u, fn, ptr, 400000, s) && s->linad >= ptr && s->linad < ptr + (16 << 20))
			return true;
	}
	return false;
}

static int source(u64 data2) { return (data2 & 7) | (data2 >> 6 & 3) << 3; }

static void test_sources(struct unit *u)
{
	struct { const char *name; u64 ptr; int src, coarse, remote; } list[] = {
		{ "near DRAM", near, 3, 3, 0 },
		{ "far DRAM", far, u == MEM ? 7 : 3, 3, 1 },
		{ "memory without processors", ext, 8, 3, 0 },
	};
	u64 miss = D3_DCMISS | D3_L2MISS, lat[3] = { 0 };
	bool fine = u == MEM || cap(ZEN4);
	struct sample s = { 0 };
	bool got;
	int i;

	if (!model) {
		skip(u->name, "no memory model");
		return;
	}
	lvt(u, LVT_MASKED);
	for (i = 0; i < 3; i++) {
		if (!list[i].ptr) {
			skip(list[i].name, "no such node");
			continue;
		}
		walk(list[i].ptr, 1 << 18);
		got = sample_in(u, fine ? L3MISSONLY : 0, walk, list[i].ptr, &s);
		check(got && (s.data3 & miss) == miss && source(s.data2) == (fine ? list[i].src : list[i].coarse) &&
		      (s.data2 >> 4 & 1) == U(list[i].remote), "%s: %s: source %u, remote %u", u->name, list[i].name,
		      U(source(s.data2)), s.data2 >> 4 & 1);
		lat[i] = s.data3 >> 32 & 0xffff;
		if (u == OP)
			check(got && lat[i] && (s.data >> 16 & 0xffff) > lat[i], "op: %s: latency %u", list[i].name, lat[i]);
		got = sample_in(u, fine ? L3MISSONLY : 0, walk_store, list[i].ptr, &s);
		check(got && s.data3 & D3_STORE && (s.data3 & miss) == miss && !s.data2 && !(s.data3 >> 32 & 0xffff),
		      "%s: %s: a store has neither source nor latency", u->name, list[i].name);
	}
	if (u == OP && lat[2])
		check(lat[0] < lat[1] && lat[1] < lat[2], "op: latencies are in order");
	got = sample_of(u, 0, only_load8, near + 0x3000, true, &s);
	check(got && !(s.data3 & (D3_DCMISS | D3_L2MISS)) && !s.data2 && (u == MEM || !(s.data3 >> 32)), "%s: a hit in the first cache", u->name);
	unit_off(u);
}

/* ------------------------------------------------------------------------- */
/* Filters */

static void test_l3(struct unit *u)
{
	struct sample s;
	int i, bad = 0;

	if (u == OP && !cap(ZEN4)) {
		skip("op: L3MissOnly", "no such capability");
		return;
	}
	if (!model) {
		skip(u->name, "no memory model");
		return;
	}
	lvt(u, LVT_MASKED);
	unit_off(u);
	only_load8(near, 1000);
	wrmsr(u->ctl, period_bits(1024) | EN | CNT_OPS | L3MISSONLY);
	only_load8(near, 1000000);
	check(!(rdmsr(u->ctl) & VAL), "%s: L3MissOnly: no sample of hits", u->name);
	for (i = 0; i < 50; i++) {
		unit_off(u);
		wrmsr(u->ctl, period_bits(1024) | EN | CNT_OPS | L3MISSONLY);
		if (!run_for_sample(u, walk, near, 1000000, &s))
			bad++;
		else
			expect(bad, (s.data3 & (D3_DCMISS | D3_L2MISS)) == (D3_DCMISS | D3_L2MISS) && s.data3 & D3_PHYS, "data3 %x", s.data3);
	}
	check(!bad, "%s: L3MissOnly: nothing but misses", u->name);
	unit_off(u);
}

static void test_latency(struct unit *u)
{
	u64 flags = LAT_EN, thresh = 0;		/* more than 128 cycles */
	struct sample s;
	bool got;

	if (u == OP && !cap(OPLDLAT)) {
		skip("op: latency filter", "no such capability");
		return;
	}
	if (!model || !ext) {
		skip(u->name, "no memory model");
		return;
	}
	lvt(u, LVT_MASKED);
	unit_off(u);
	wrmsr(u->ctl, period_bits(1024) | EN | CNT_OPS | flags | thresh << 59);
	walk(near, 100000);
	got = rdmsr(u->ctl) & VAL;
	if (got)
		read_sample(u, &s);
	check(!got, "%s: latency filter: no sample of 90 ns", u->name);
	got = sample_in(u, flags | thresh << 59, walk, ext, &s);
	check(got && s.data3 & D3_LOAD, "%s: latency filter: samples of 250 ns", u->name);
	thresh = 1;				/* more than 256 */
	unit_off(u);
	wrmsr(u->ctl, period_bits(1024) | EN | CNT_OPS | flags | thresh << 59);
	walk(ext, 100000);
	check(!(rdmsr(u->ctl) & VAL), "%s: latency filter: none of them above 256", u->name);
	thresh = 0;
	unit_off(u);
	wrmsr(u->ctl, period_bits(1024) | EN | CNT_OPS | flags);
	walk_store(ext, 100000);
	got = rdmsr(u->ctl) & VAL;
	if (got)
		read_sample(u, &s);
	check(!got || !(s.data3 & D3_STORE), "%s: latency filter: stores are not reported", u->name);
	unit_off(u);
}

static void test_rip(struct unit *u)
{
	only_fn *high = (only_fn *)(HIGH + (u64)only_load8);
	struct sample s;
	int i, bad = 0;

	if (u == OP && !cap(RIP63)) {
		skip("op: RIP filters", "no such capability");
		return;
	}
	lvt(u, LVT_MASKED);
	for (i = 0; i < 20; i++) {
		unit_off(u);
		wrmsr(u->ctl2, EXCL_1);
		wrmsr(u->ctl, period_bits(512 + 16 * i) | EN | CNT_OPS);
		high(near, 10000);
		wrmsr(u->ctl2, DIS | EXCL_1);
		if (rdmsr(u->ctl) & VAL) {
			read_sample(u, &s);
			expect(bad, s.rip >> 63 == 0 && s.linad != near, "a sample of the upper half: %x", s.rip);
		}
		unit_off(u);
		wrmsr(u->ctl2, EXCL_0);
		wrmsr(u->ctl, period_bits(512 + 16 * i) | EN | CNT_OPS);
		only_load8(near, 10000);
		expect(bad, !(rdmsr(u->ctl) & VAL), "a sample of the lower half");
		high(near, 10000);
		expect(bad, rdmsr(u->ctl) & VAL, "no sample of the upper half");
		read_sample(u, &s);
		if (u == OP)
			expect(bad, s.rip >> 63 == 1, "RIP %x", s.rip);
	}
	check(!bad, "%s: filters by bit 63 of RIP", u->name);
	unit_off(u);
	wrmsr(u->ctl2, EXCL_0 | EXCL_1);
	wrmsr(u->ctl, period_bits(512) | EN | CNT_OPS);
	only_load8(near, 10000);
	high(near, 10000);
	check(!(rdmsr(u->ctl) & VAL), "%s: both filters leave nothing", u->name);
	unit_off(u);
}

/* ------------------------------------------------------------------------- */
/* Cycles */

static void test_cycles(struct unit *u)
{
	u64 p = 1 << 17, loads, cycles, t0, n = 256, each;
	struct sample s;

	lvt(u, LVT_MASKED);
	unit_off(u);
	stride(near, 1000, 0);
	arm_stride(near, p, 0, u->ctl, period_bits(4096) | EN);
	check(rdmsr(u->ctl) & VAL, "%s: counts cycles", u->name);
	unit_off(u);
	if (!stall || !ext) {
		skip(u->name, "accesses take no time");
		return;
	}
	/* What a page of 64 loads takes, by the clock of 1 GHz. Twice 8 MB: they all miss. */
	arm_loads(near, 2048, u->ctl, 0);
	t0 = tsc();
	arm_loads(ext, n, u->ctl, 0);
	each = (tsc() - t0) / n;
	arm_loads(near, 2048, u->ctl, 0);
	arm_loads(ext, n, u->ctl, period_bits(p) | EN);
	read_sample(u, &s);
	loads = (s.linad - ext) / 64;
	cycles = loads * each / 64;
	/* Tagged is one of the 32 ops after the load in which the counter ended. */
	check(s.ctl & VAL && s.data3 & D3_LOAD && cycles + 600 > p && cycles < p + 33 * each / 64 + 600,
	      "%s: a period of %u cycles ends after %u loads of %u", u->name, p, loads, each / 64);
	unit_off(u);
}

/* ------------------------------------------------------------------------- */
/* Interrupts */

static void test_interrupts(struct unit *u)
{
	u64 n0, i0, illegal;

	cli();
	irq_hook = NULL;
	unit_off(u);

	lvt(u, LVT_MASKED | LVT_NMI);
	n0 = nmis, i0 = irqs;
	arm_stride(near, 1000, 8, u->ctl, period_bits(1024) | EN | CNT_OPS);
	stride(near, 1000, 8);
	check(nmis == n0 && irqs == i0 && rdmsr(u->ctl) & VAL, "%s: masked: a sample and no interrupt", u->name);
	lvt(u, LVT_NMI);
	stride(near, 1000, 8);
	check(nmis == n0, "%s: unmasking does not bring it back", u->name);

	unit_off(u);
	arm_stride(near, 1000, 8, u->ctl, period_bits(1024) | EN | CNT_OPS);
	check(nmis == n0 + 1 && irqs == i0 && irq_sample.linad == near + 8 * 255, "%s: NMI, also with interrupts disabled", u->name);
	check(irq_ip >= (u64)arm_stride_load && irq_ip < (u64)arm_stride_load + 32, "%s: it comes within the loop that was sampled", u->name);

	lvt(u, VECTOR);
	arm_stride(near, 1000, 8, u->ctl, period_bits(1024) | EN | CNT_OPS);
	check(irqs == i0 && apic_read(0x200 + 0x10 * (VECTOR / 32)) & 1u << VECTOR % 32, "%s: FIXED waits while interrupts are disabled", u->name);
	sti();
	stride(near, 10, 8);
	cli();
	check(irqs == i0 + 1 && irq_sample.linad == near + 8 * 255, "%s: and comes with sti", u->name);
	sti();
	arm_stride(near, 1000, 8, u->ctl, period_bits(1024) | EN | CNT_OPS);
	stride(near, 10, 8);
	cli();
	check(irqs == i0 + 2 && nmis == n0 + 1, "%s: FIXED with interrupts enabled", u->name);

	apic_write(0x280, 0);
	lvt(u, 5);
	sti();
	arm_stride(near, 1000, 8, u->ctl, period_bits(1024) | EN | CNT_OPS);
	stride(near, 10, 8);
	cli();
	illegal = apic_read(0x280) & 0x40;
	check(illegal && irqs == i0 + 2, "%s: a vector below 16 is an error of the APIC", u->name);
	apic_write(0x280, 0);
	unit_off(u);
	lvt(u, LVT_MASKED);
}

static u64 both[2], both_p[2];
static void count_both(struct unit *u)
{
	both[u - units]++;
	wrmsr(u->ctl, period_bits(both_p[u - units]) | EN | CNT_OPS);
}

static void test_both(void)
{
	u64 n = 2000000, e0, e1;

	if (!cap(MEMPROF) || !cap(OPSAM)) {
		skip("both units", "one of them is missing");
		return;
	}
	cli();
	both[0] = both[1] = 0;
	both_p[0] = 10000;
	both_p[1] = 4096;
	irq_hook = count_both;
	lvt(OP, LVT_NMI);
	lvt(MEM, VECTOR);
	wrmsr(OP_CTL, period_bits(both_p[0]) | EN | CNT_OPS);
	wrmsr(MEM_CTL, period_bits(both_p[1]) | EN | CNT_OPS);
	sti();
	stride(near, n, 0);
	cli();
	unit_off(OP);
	unit_off(MEM);
	irq_hook = NULL;
	/*
	 * The memory profiler's next period begins at 64 on the average; and what
	 * the handler does for one unit, the other one counts.
	 */
	e0 = 4 * n / both_p[0], e1 = 4 * n / (both_p[1] - 64);
	check(both[0] * 100 > e0 * 99 && both[0] * 100 < e0 * 105 && both[1] * 100 > e1 * 99 && both[1] * 100 < e1 * 105,
	      "both units at once: %u of about %u, %u of about %u samples", both[0], e0, both[1], e1);
	lvt(OP, LVT_MASKED);
	lvt(MEM, LVT_MASKED);
}

/* ------------------------------------------------------------------------- */
/* INIT, with the second processor */

static volatile u32 *const mailbox = (volatile u32 *)0x7000;

static void ap_do(u32 command, u32 reg, u64 v)
{
	mailbox[1] = reg;
	mailbox[2] = v;
	mailbox[3] = v >> 32;
	asm volatile("" ::: "memory");
	mailbox[0] = command;
	while (mailbox[0])
		asm volatile("pause");
}

static u64 ap_rdmsr(u32 msr) { ap_do(1, msr, 0); return mailbox[2] | U(mailbox[3]) << 32; }
static u32 ap_load(u32 a) { ap_do(3, a, 0); return mailbox[2]; }

static void wait_ticks(u64 n)
{
	u64 t = tsc();

	while (tsc() - t < n)
		asm volatile("pause");
}

static bool start_ap(void)
{
	u32 before = mailbox[4];
	int i;

	apic_write(0x310, 1 << 24);
	apic_write(0x300, 0x4500);	/* INIT */
	wait_ticks(10000000);
	apic_write(0x310, 1 << 24);
	apic_write(0x300, 0x4608);	/* SIPI, 0x8000 */
	for (i = 0; i < 1000 && mailbox[4] == before; i++)
		wait_ticks(1000000);
	return mailbox[4] == before + 1;
}

static void test_init(void)
{
	/* It must not come to its end. */
	u64 ctl = cap(OPCNTEXT) ? period_bits(1 << 26) | EN | CNT_OPS : 0x1234, v;
	char *p;

	if (!cap(OPSAM)) {
		skip("INIT", "no op unit");
		return;
	}
	for (p = ap_start; p < ap_end; p++)
		((volatile char *)0x8000)[p - ap_start] = *p;
	mailbox[0] = mailbox[4] = 0;
	if (!start_ap()) {
		skip("INIT", "no second processor");
		return;
	}
	ap_do(2, OP_CTL, ctl);
	ap_do(2, OP_LINAD, 0x123456);
	ap_do(4, 0xfee00510, LVT_NMI);
	check((ap_rdmsr(OP_CTL) & 0xffffffff) == ctl && ap_load(0xfee00510) == LVT_NMI && apic_read(0x510) == LVT_MASKED, "each processor has its own units and entries");
	check(start_ap(), "the second processor starts again");
	v = ap_rdmsr(OP_CTL);
	check((v & 0xffffffff) == ctl && (!(ctl & EN) || !cap(RDWROPCNT) || v >> 32 & 0x7ffffff) &&
	      ap_rdmsr(OP_LINAD) == 0x123456, "INIT leaves the units alone");
	check(ap_load(0xfee00510) == LVT_MASKED && ap_load(0xfee00530) == LVT_MASKED, "INIT masks the extended entries");
	ap_do(2, OP_CTL, 0);
	/* Back to sleep */
	apic_write(0x310, 1 << 24);
	apic_write(0x300, 0x4500);
	wait_ticks(1000000);
}

/* ------------------------------------------------------------------------- */
/* Statistics: the driver of this program judges the numbers */

#define PAGES	1024
static u32 truth[PAGES], samples[PAGES], others;
static u16 pages[65536];
static u64 stat_period, stat_base, stat_taken, stat_pages;

/* As Linux does it: the next count starts from the random number. */
static void collect(struct unit *u)
{
	u64 ctl = rdmsr(u->ctl), page = (rdmsr(u->linad) - stat_base) >> 12;

	stat_taken++;
	if (rdmsr(u->data3) & D3_LIN && page < stat_pages)
		samples[page]++;
	else
		others++;
	wrmsr(u->ctl, period_bits(stat_period) | EN | CNT_OPS | (u == OP ? ctl & 0x7full << 32 : 0));
}

static void stat_begin(struct unit *u, u64 period, u64 base, u64 n)
{
	int i;

	for (i = 0; i < PAGES; i++)
		truth[i] = samples[i] = 0;
	others = 0;
	stat_taken = 0;
	stat_period = period;
	stat_base = base;
	stat_pages = n;
	irq_hook = collect;
	unit_off(u);
	lvt(u, u == OP ? LVT_NMI : VECTOR);
	wrmsr(u->ctl, period_bits(period) | EN | CNT_OPS);
	sti();
}

static void stat_end(struct unit *u, const char *what)
{
	u64 i;

	cli();
	unit_off(u);
	lvt(u, LVT_MASKED);
	irq_hook = NULL;
	print("# data %s %s taken %u others %u\n", u->name, what, stat_taken, U(others));
	for (i = 0; i < stat_pages; i++)
		print("# page %u %u %u\n", i, U(truth[i]), U(samples[i]));
	print("# end\n");
}

static u64 rnd_state = 88172645463325252ull;
static u64 rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state;
}

static void test_statistics(struct unit *u)
{
	u64 i, n, sum = 0, at;
	static u64 upto[PAGES];

	/* 9 ops a turn, one of them the load */
	for (i = 0; i < 65536; i++)
		pages[i] = rnd() >> 32 & (PAGES - 1);
	stat_begin(u, 144, near, PAGES);
	pick(near, 65536 * 120, pages, truth);
	stat_end(u, "uniform");

	for (i = 0; i < PAGES; i++)
		upto[i] = sum += (1ull << 32) / (i + 1);
	for (i = 0; i < 65536; i++) {
		at = rnd() % sum;
		for (n = 0; upto[n] <= at; n++)
			;
		/* Hot pages are not neighbours. */
		pages[i] = n * 389 & (PAGES - 1);
	}
	stat_begin(u, 144, near, PAGES);
	pick(near, 65536 * 120, pages, truth);
	stat_end(u, "zipf");

	/* Ten ops a turn, eight of them loads */
	n = 5000000;
	stat_begin(u, 512, near, 8);
	block8(near, n);
	for (i = 0; i < 8; i++)
		truth[i] = n;
	stat_end(u, "block");

	/* 127 ops a turn, 125 of them loads */
	n = 600000;
	stat_begin(u, 512, near, 125);
	block125(near, n);
	for (i = 0; i < 125; i++)
		truth[i] = n;
	stat_end(u, "block125");

	/* How long periods are: 4 ops a turn */
	n = 5000000;
	stat_begin(u, 20000, near, 1);
	stride(near, n, 0);
	truth[0] = n;
	stat_end(u, "period");
}

/* ------------------------------------------------------------------------- */

static u64 option(const char *line, const char *name)
{
	const char *n;
	u64 v = 0;

	for (; *line; line++) {
		for (n = name; *n && *line == *n; n++)
			line++;
		if (*n || *line != '=')
			continue;
		line++;
		if (line[0] == '0' && line[1] == 'x') {
			for (line += 2; ; line++) {
				if (*line >= '0' && *line <= '9')
					v = v * 16 + *line - '0';
				else if (*line >= 'a' && *line <= 'f')
					v = v * 16 + *line - 'a' + 10;
				else
					return v;
			}
		}
		for (; *line >= '0' && *line <= '9'; line++)
			v = v * 10 + *line - '0';
		return v;
	}
	return 0;
}

void main(u32 *mbi)
{
	const char *line = mbi[0] & 4 ? (const char *)(u64)mbi[4] : "";
	int i;

	caps = option(line, "caps");
	leaf = option(line, "leaf");
	near = option(line, "near");
	far = option(line, "far");
	ext = option(line, "ext");
	model = option(line, "model");
	stall = option(line, "stall");
	big = option(line, "big");
	setup();
	put("TAP version 13\n");
	print("# %s\n", line);

	test_cpuid();
	test_apic();
	test_msrs();
	if (!cap(OPCNT))
		put("# counts cycles only\n");
	for (i = 0; i < 2; i++) {
		if (!has_unit(&units[i]))
			continue;
		test_periods(&units[i]);
		test_val(&units[i]);
		test_dis(&units[i]);
		test_sources(&units[i]);
		test_l3(&units[i]);
		test_latency(&units[i]);
		test_rip(&units[i]);
		test_cycles(&units[i]);
		test_interrupts(&units[i]);
	}
	test_counter();
	test_contents();
	test_halt();
	test_both();
	test_init();
	for (i = 0; i < 2; i++)
		if (has_unit(&units[i]) && option(line, "statistics"))
			test_statistics(&units[i]);
	print("1..%u\n", U(tests));
	outl(0xf4, failures ? 1 : 0);
}
