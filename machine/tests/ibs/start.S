/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Starts ibs.c from multiboot: 64-bit mode, the first 4 GB mapped at 0 and once
 * more at 0xffff800000000000. Below: the loops whose ops are counted, and what
 * the second processor runs.
 */

	.section .multiboot, "a"
	.balign	4
	.long	0x1badb002, 0, -0x1badb002

	.bss
	.balign	4096
pml4:	.skip	4096
pdpt:	.skip	4096
pd:	.skip	4 * 4096
	.skip	65536
stack_top:

	.text
	.code32
	.globl	start
start:
	movl	$stack_top, %esp
	pushl	$0
	pushl	%ebx

	/* Pages of 2 MB */
	movl	$pd, %edi
	movl	$0x83, %eax
	movl	$2048, %ecx
1:	movl	%eax, (%edi)
	addl	$0x200000, %eax
	addl	$8, %edi
	loop	1b

	movl	$pd + 3, %eax
	movl	%eax, pdpt
	addl	$4096, %eax
	movl	%eax, pdpt + 8
	addl	$4096, %eax
	movl	%eax, pdpt + 16
	addl	$4096, %eax
	movl	%eax, pdpt + 24
	movl	$pdpt + 3, pml4
	movl	$pdpt + 3, pml4 + 256 * 8

	movl	$0x620, %eax		/* PAE, OSFXSR, OSXMMEXCPT */
	movl	%eax, %cr4
	movl	$pml4, %eax
	movl	%eax, %cr3
	movl	$0xc0000080, %ecx	/* EFER.LME */
	rdmsr
	orl	$0x100, %eax
	wrmsr
	movl	$0x80000033, %eax	/* PG, NE, ET, MP, PE */
	movl	%eax, %cr0
	lgdt	gdt_ptr
	ljmp	$8, $1f

	.code64
1:	movl	$16, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	popq	%rdi
	call	main
2:	cli
	hlt
	jmp	2b

	.balign	8
gdt:	.quad	0
	.quad	0x00af9b000000ffff	/* 8: 64-bit code */
	.quad	0x00cf93000000ffff	/* 16: data */
	.quad	0x00cf9b000000ffff	/* 24: 32-bit code */
gdt_ptr:
	.word	gdt_ptr - gdt - 1
	.long	gdt
	.long	0

/*
 * u64 arm_stride(u64 ptr, u64 n, u64 stride, u32 msr, u64 ctl)
 *
 * Arms a unit; the k-th load of the loop (from 0) is op 4 + 4 * k after that.
 * Returns the address of the first load that was not made.
 */
	.globl	arm_stride, arm_stride_load
arm_stride:
	movq	%rdx, %r9
	movq	%r8, %rax
	movq	%r8, %rdx
	shrq	$32, %rdx
	wrmsr
	nop
	nop
	nop
arm_stride_load:
	movq	(%rdi), %rax
	addq	%r9, %rdi
	decq	%rsi
	jnz	arm_stride_load
	movq	%rdi, %rax
	ret

/*
 * u64 arm_loads(u64 ptr, u64 n, u32 msr, u64 ctl)
 *
 * Arms a unit and loads from all 64 lines of n pages, one load after the other.
 */
	.globl	arm_loads
arm_loads:
	movq	%rcx, %rax
	movq	%rdx, %rcx
	movq	%rax, %rdx
	shrq	$32, %rdx
	wrmsr
1:
	.set	line, 0
	.rept	64
	movq	line(%rdi), %rax
	.set	line, line + 64
	.endr
	addq	$4096, %rdi
	decq	%rsi
	jnz	1b
	movq	%rdi, %rax
	ret

/* The loop of arm_stride(), nothing armed. */
	.globl	stride
stride:
	movq	(%rdi), %rax
	addq	%rdx, %rdi
	decq	%rsi
	jnz	stride
	ret

/* void only_W_N(u64 ptr, u64 n): one kind of access, two ops in a turn with it */
	.macro	only name, insn:vararg
	.globl	only_\name, only_\name\()_insn
only_\name:
only_\name\()_insn:
	\insn
	decq	%rsi
	jnz	only_\name
	ret
	.endm

	only	load1, movb (%rdi), %al
	only	load2, movw (%rdi), %ax
	only	load4, movl (%rdi), %eax
	only	load8, movq (%rdi), %rax
	only	store1, movb %al, (%rdi)
	only	store8, movq %rsi, (%rdi)
	only	locked, lock addq $1, (%rdi)
	only	prefetch, prefetcht0 (%rdi)

/* void block8(u64 ptr, u64 n): a block with eight loads, each of its own page */
	.globl	block8
block8:
	movq	(%rdi), %rax
	movq	0x1000(%rdi), %rax
	movq	0x2000(%rdi), %rax
	movq	0x3000(%rdi), %rax
	movq	0x4000(%rdi), %rax
	movq	0x5000(%rdi), %rax
	movq	0x6000(%rdi), %rax
	movq	0x7000(%rdi), %rax
	decq	%rsi
	jnz	block8
	ret

/* void block125(u64 ptr, u64 n): the same with 125 loads, 127 ops in all */
	.globl	block125
	.balign	1024
block125:
	.set	page, 0
	.rept	125
	movq	page(%rdi), %rax
	.set	page, page + 4096
	.endr
	decq	%rsi
	jnz	block125
	ret

/*
 * void pick(u64 buf, u64 n, const u16 *pages, u32 *truth)
 *
 * n times: one load from the page that comes next in the list (of 65536), and
 * one more in that page's count.
 */
	.globl	pick
pick:
	movq	%rdx, %r8
	xorl	%r9d, %r9d
1:	movzwl	(%r8, %r9, 2), %eax
	incl	(%rcx, %rax, 4)
	shlq	$12, %rax
	movq	(%rdi, %rax), %rax
	incw	%r9w
	movzwl	%r9w, %r9d
	decq	%rsi
	jnz	1b
	ret

/*
 * What the second processor runs, copied to 0x8000: it does what the mailbox at
 * 0x7000 says. command: 1 RDMSR, 2 WRMSR, 3 load, 4 store; 0 when done.
 */
	.globl	ap_start, ap_end
ap_start:
	.code16
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	lgdtl	0x8000 + ap_gdt_ptr - ap_start
	movl	%cr0, %eax
	orl	$1, %eax
	movl	%eax, %cr0
	ljmpl	$24, $0x8000 + ap32 - ap_start
	.code32
ap32:	movl	$16, %eax
	movl	%eax, %ds
	incl	0x7010			/* starts */
1:	pause
	movl	0x7000, %eax		/* command */
	testl	%eax, %eax
	jz	1b
	movl	0x7004, %ecx		/* register, address */
	cmpl	$1, %eax
	jne	2f
	rdmsr
	movl	%eax, 0x7008		/* value */
	movl	%edx, 0x700c
	jmp	9f
2:	cmpl	$2, %eax
	jne	3f
	movl	0x7008, %eax
	movl	0x700c, %edx
	wrmsr
	jmp	9f
3:	cmpl	$3, %eax
	jne	4f
	movl	(%ecx), %eax
	movl	%eax, 0x7008
	jmp	9f
4:	movl	0x7008, %eax
	movl	%eax, (%ecx)
9:	movl	$0, 0x7000
	jmp	1b
	.balign	8
ap_gdt:	.quad	0
	.quad	0
	.quad	0x00cf93000000ffff
	.quad	0x00cf9b000000ffff
ap_gdt_ptr:
	.word	ap_gdt_ptr - ap_gdt - 1
	.long	0x8000 + ap_gdt - ap_start
ap_end:
	.section .note.GNU-stack, "", @progbits
