// SPDX-License-Identifier: GPL-2.0
/*
 * AMD IBS Memory Profiler: a unit of Zen 6 and later that samples memory accesses.
 *
 * It is independent of IBS Op, which belongs to perf: it has registers, a counter
 * and an interrupt of its own. It is set to sample user programs only, so that its
 * interrupt need not be an NMI.
 *
 * A sample goes like this. The unit has counted up to its period, tagged an operation
 * and seen what that did; it sets IbsMemCtl[Val], interrupts and rests. The handler
 * reads what the unit says and sets it going again:
 *
 *     stop	IbsMemCtl2 = Dis, IbsMemCtl = configuration without En and Val
 *     go	IbsMemCtl = configuration with En, IbsMemCtl2 = filter without Dis
 *
 * All of it happens on the CPU that the unit belongs to and with interrupts off, so
 * that the two registers always fit together. An interrupt that was on its way when
 * the unit was stopped, or set going again, finds Val clear and does nothing.
 *
 * CPUID is asked first. A virtual machine may show the CPUID bit and have no such
 * registers: each CPU tries them before they are used.
 */
#define pr_fmt(fmt) "amd_ibs_memprof: " fmt

#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/cpufeature.h>
#include <linux/cpuhotplug.h>
#include <linux/init.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/pghot.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/reboot.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/syscore_ops.h>

#include <asm/amd/ibs_memprof.h>
#include <asm/apic.h>
#include <asm/cpuid/api.h>
#include <asm/hardirq.h>
#include <asm/idtentry.h>
#include <asm/irq_vectors.h>
#include <asm/msr.h>
#include <asm/perf_event.h>

/* Shorter periods are an interrupt storm: a few thousand cycles each. */
#define IBS_MEMPROF_MIN_PERIOD	5008

/* The registers, as they are to be while the unit samples. Zero: it does not. */
struct ibs_memprof_regs {
	u64	ctl;
	u64	ctl2;
};

/**
 * struct ibs_memprof_cpu - the unit of a CPU
 * @regs: how it is set, zero while it is stopped.
 * @lvt: entry of the extended LVT, or -1 if the unit cannot be used.
 *
 * Written with interrupts off, on the CPU itself.
 */
struct ibs_memprof_cpu {
	struct ibs_memprof_regs	regs;
	int			lvt;
};

static DEFINE_PER_CPU(struct ibs_memprof_cpu, ibs_memprof_cpu) = { .lvt = -1 };

/*
 * What all units are set to. Written with cpus_read_lock() held by one at a time,
 * read by CPUs that are told to, or that come up.
 */
static struct ibs_memprof_regs ibs_memprof_regs;

/* The unit is registered. */
static bool ibs_memprof_in_use __initdata;

/* The machine goes down: do not start again. */
static bool ibs_memprof_shut;

/* ===== One CPU ===== */

static void ibs_memprof_stop_cpu(void *unused)
{
	struct ibs_memprof_cpu *c = this_cpu_ptr(&ibs_memprof_cpu);

	lockdep_assert_irqs_disabled();

	if (c->lvt < 0)
		return;
	wrmsrq(MSR_AMD64_IBSMEMCTL2, IBSMEMCTL2_DIS);
	wrmsrq(MSR_AMD64_IBSMEMCTL, 0);
	c->regs = (struct ibs_memprof_regs) {};
}

/* Also changes the way of a unit that samples: a sample that waits is lost. */
static void ibs_memprof_start_cpu(void *unused)
{
	struct ibs_memprof_cpu *c = this_cpu_ptr(&ibs_memprof_cpu);

	lockdep_assert_irqs_disabled();

	if (c->lvt < 0)
		return;
	c->regs = ibs_memprof_regs;
	wrmsrq(MSR_AMD64_IBSMEMCTL2, IBSMEMCTL2_DIS);
	wrmsrq(MSR_AMD64_IBSMEMCTL, c->regs.ctl | IBSMEMCTL_EN);
	wrmsrq(MSR_AMD64_IBSMEMCTL2, c->regs.ctl2);
}

static bool ibs_memprof_has_msrs(void)
{
	unsigned int msr;
	u64 val;

	for (msr = MSR_AMD64_IBSMEMCTL; msr <= MSR_AMD64_IBSMEMPHYSAD; msr++)
		if (rdmsrq_safe(msr, &val))
			return false;
	/* Whatever was there before, such as a kernel that crashed: stop it. */
	return !wrmsrq_safe(MSR_AMD64_IBSMEMCTL2, IBSMEMCTL2_DIS) &&
	       !wrmsrq_safe(MSR_AMD64_IBSMEMCTL, 0);
}

/* The entry of the LVT for the unit, or a negative error number. */
static int ibs_memprof_lvt_offset(void)
{
	unsigned int offset, nr;
	u64 val;

	if (rdmsrq_safe(MSR_AMD64_IBSCTL, &val) || !(val & IBSCTL_MEMPROF_LVT_VALID))
		return -ENXIO;

	offset = FIELD_GET(IBSCTL_MEMPROF_LVT_OFFSET, val);
	/* How many there are, and how many Linux knows. */
	nr = (apic_read(APIC_EFEAT) >> 16) & 0xff;
	return offset < min(nr, APIC_EILVT_NR_MAX) ? offset : -ENXIO;
}

/*
 * Make the unit of this CPU ready. Returns 0, -EIO if it lacks registers, -ENXIO if
 * firmware chose no entry of the LVT, or -EBUSY if somebody else has it.
 */
static int ibs_memprof_prepare_cpu(void)
{
	int offset;

	if (!ibs_memprof_has_msrs())
		return -EIO;
	offset = ibs_memprof_lvt_offset();
	if (offset < 0)
		return offset;
	if (setup_APIC_eilvt(offset, IBS_MEMPROF_VECTOR, APIC_DELIVERY_MODE_FIXED, 0))
		return -EBUSY;
	this_cpu_write(ibs_memprof_cpu.lvt, offset);
	return 0;
}

/* The reverse. The entry is masked, but no other vector can have it meanwhile. */
static void ibs_memprof_release_cpu(void *unused)
{
	int offset = this_cpu_read(ibs_memprof_cpu.lvt);

	if (offset < 0)
		return;
	ibs_memprof_stop_cpu(NULL);
	setup_APIC_eilvt(offset, IBS_MEMPROF_VECTOR, APIC_DELIVERY_MODE_FIXED, 1);
	this_cpu_write(ibs_memprof_cpu.lvt, -1);
}

/* ===== Interrupt ===== */

static void ibs_memprof_interrupt(void)
{
	const struct ibs_memprof_cpu *c = this_cpu_ptr(&ibs_memprof_cpu);
	u64 ctl, data2, data3, linad, physad;
	struct pghot_hint hint;

	/* Late ones come after the unit was stopped, or by a mistake of firmware. */
	if (c->lvt < 0)
		return;
	rdmsrq(MSR_AMD64_IBSMEMCTL, ctl);
	if (!(ctl & IBSMEMCTL_VAL))
		return;

	wrmsrq(MSR_AMD64_IBSMEMCTL2, IBSMEMCTL2_DIS);
	wrmsrq(MSR_AMD64_IBSMEMCTL, c->regs.ctl);
	/* A sample that somebody else asked for: that unit stays stopped. */
	if (!c->regs.ctl)
		return;

	rdmsrq(MSR_AMD64_IBSMEMDATA2, data2);
	rdmsrq(MSR_AMD64_IBSMEMDATA3, data3);
	rdmsrq(MSR_AMD64_IBSMEMLINAD, linad);
	rdmsrq(MSR_AMD64_IBSMEMPHYSAD, physad);
	/*
	 * The interrupt comes before the next task: whoever schedules has interrupts
	 * on before, and the kernel is not sampled.
	 */
	hint = ibs_memprof_decode(data2, data3, linad, physad & __PHYSICAL_MASK);
	hint.guest = perf_guest_state();
	if (!pghot_hint(&hint))
		return;

	wrmsrq(MSR_AMD64_IBSMEMCTL, c->regs.ctl | IBSMEMCTL_EN);
	wrmsrq(MSR_AMD64_IBSMEMCTL2, c->regs.ctl2);
}

DEFINE_IDTENTRY_SYSVEC(sysvec_ibs_memprof)
{
	u64 began = local_clock();

	apic_eoi();
	inc_irq_stat(IBS_MEMPROF);
	ibs_memprof_interrupt();
	pghot_hint_took(local_clock() - began);
}

/* ===== Unit ===== */

static int ibs_memprof_configure(const struct pghot_hint_config *config)
{
	lockdep_assert_cpus_held();

	if (READ_ONCE(ibs_memprof_shut))
		return -ENODEV;
	ibs_memprof_regs = (struct ibs_memprof_regs) {
		.ctl	= ibs_memprof_ctl(config),
		.ctl2	= IBSMEMCTL2_EXCL_KERNEL,
	};
	on_each_cpu(ibs_memprof_start_cpu, NULL, true);
	return 0;
}

static void ibs_memprof_stop(void)
{
	lockdep_assert_cpus_held();

	ibs_memprof_regs = (struct ibs_memprof_regs) {};
	on_each_cpu(ibs_memprof_stop_cpu, NULL, true);
}

static void ibs_memprof_resume_cpu(unsigned int cpu)
{
	if (ibs_memprof_regs.ctl)
		smp_call_function_single(cpu, ibs_memprof_start_cpu, NULL, true);
}

static const struct pghot_hint_unit ibs_memprof_unit = {
	.name		= "ibs_memprof",
	.rank		= 2,
	.caps		= PGHOT_HINT_CAP_L3MISS | PGHOT_HINT_CAP_LATENCY,
	.min_period	= IBS_MEMPROF_MIN_PERIOD,
	.max_period	= IBSMEM_MAX_PERIOD,
	.start		= ibs_memprof_configure,
	.stop		= ibs_memprof_stop,
	.configure	= ibs_memprof_configure,
	.resume		= ibs_memprof_resume_cpu,
};

/* ===== CPUs and power management ===== */

/* Make the unit ready, with interrupts off, and have it sample if others do. */
static int ibs_memprof_up(void)
{
	int err = ibs_memprof_prepare_cpu();

	if (!err && ibs_memprof_regs.ctl)
		ibs_memprof_start_cpu(NULL);
	return err;
}

/* A CPU whose unit cannot be used can be used itself. */
static int ibs_memprof_online(unsigned int cpu)
{
	int err;

	scoped_guard(irqsave)
		err = ibs_memprof_up();
	if (err == -EIO)
		pr_warn_once("cpu %u: registers that CPUID promises are not there\n", cpu);
	else if (err == -ENXIO)
		pr_warn_once("cpu %u: firmware chose no usable LVT offset\n", cpu);
	else if (err)
		pr_warn_once("cpu %u: somebody else uses the LVT offset that firmware chose\n",
			     cpu);
	return 0;
}

static int ibs_memprof_offline(unsigned int cpu)
{
	guard(irqsave)();
	ibs_memprof_release_cpu(NULL);
	return 0;
}

/* The last CPU sleeps, and wakes up, without going offline. */
static int ibs_memprof_suspend(void *unused)
{
	ibs_memprof_release_cpu(NULL);
	return 0;
}

static void ibs_memprof_resume(void *unused)
{
	if (ibs_memprof_up())
		pr_warn("cpu %d: the unit does not work after resume\n",
			smp_processor_id());
}

static const struct syscore_ops ibs_memprof_syscore_ops = {
	.suspend	= ibs_memprof_suspend,
	.resume		= ibs_memprof_resume,
};

static struct syscore ibs_memprof_syscore = {
	.ops = &ibs_memprof_syscore_ops,
};

/* The next kernel, by kexec, shall get no interrupt of this one. */
static int ibs_memprof_reboot(struct notifier_block *nb, unsigned long action,
			      void *data)
{
	guard(cpus_read_lock)();
	WRITE_ONCE(ibs_memprof_shut, true);
	on_each_cpu(ibs_memprof_release_cpu, NULL, true);
	return NOTIFY_DONE;
}

static struct notifier_block ibs_memprof_reboot_nb = {
	.notifier_call = ibs_memprof_reboot,
};

/* ===== Boot ===== */

/* For /proc/interrupts. */
bool __init ibs_memprof_present(void)
{
	return ibs_memprof_in_use;
}

static bool __init ibs_memprof_in_cpuid(void)
{
	u32 caps;

	if (!boot_cpu_has(X86_FEATURE_IBS) || !boot_cpu_has(X86_FEATURE_EXTAPIC) ||
	    boot_cpu_data.extended_cpuid_level < IBS_CPUID_FEATURES)
		return false;
	caps = cpuid_eax(IBS_CPUID_FEATURES);
	return caps & IBS_CAPS_AVAIL && caps & IBS_CAPS_MEMPROF;
}

static bool __init ibs_memprof_usable(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (READ_ONCE(per_cpu(ibs_memprof_cpu.lvt, cpu)) >= 0)
			return true;
	return false;
}

static int __init ibs_memprof_init(void)
{
	int state, err;

	if (!ibs_memprof_in_cpuid()) {
		pr_debug("not present\n");
		return -ENODEV;
	}

	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "perf/x86/amd/ibs_memprof:online",
				  ibs_memprof_online, ibs_memprof_offline);
	if (state < 0)
		return state;

	if (!ibs_memprof_usable()) {
		pr_warn("the Memory Profiler cannot be used\n");
		err = -ENODEV;
		goto out;
	}
	err = pghot_register_hint_unit(&ibs_memprof_unit);
	if (err)
		goto out;

	ibs_memprof_in_use = true;
	register_syscore(&ibs_memprof_syscore);
	register_reboot_notifier(&ibs_memprof_reboot_nb);
	pr_info("Memory Profiler samples accesses for pghot, with LVT offset %d\n",
		per_cpu(ibs_memprof_cpu.lvt, cpumask_first(cpu_online_mask)));
	return 0;
out:
	cpuhp_remove_state(state);
	return err;
}
device_initcall(ibs_memprof_init);
