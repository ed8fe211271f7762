#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# guest.sh [--variant V | --kernel BZIMAGE-OR-BUILDDIR] [--files 'a b'] [--out DIR]
#          [--timeout SECONDS] [--shell] -- COMMAND
#
# Boots the guest (two DRAM nodes with CPUs, one slower node without, made a lower
# tier by HMAT), runs COMMAND in it as root and returns COMMAND's exit status.
# COMMAND's output comes out here as it is written; the kernel's console goes to
# DIR/console.log; what COMMAND puts into /root/out comes back as files in DIR.
# 124: the time ran out. 125: the guest died, or never came up.
#
# Variables:
#   MEM_MB=512,512,1024	the nodes' sizes
#   CPUS=2		split among nodes 0 and 1
#   APPEND='...'	more kernel parameters
#   HMAT=off		no HMAT: the slow node counts as DRAM, one tier for all
#   LATENCY=90,110,250	ns in HMAT: local, the other DRAM node, the slow node
#   HOTPLUG_MB=n	room for n MB of memory added later (-device pc-dimm)
#   HOSTTOOLS=1		the host's programs in the guest: "host COMMAND"
#   MACHINE=stock	Debian's QEMU. fast: the modelled machine (qemu/README.md), where
#			memory takes no time. model: where it does, in virtual time,
#			and two runs are the same
#   MODEL=llc-size=1M	properties of memory-model, for fast and model
#   TRUTH=file		what was accessed goes there, for fast and model
#   QEMU, QEMU_EXTRA	the emulator, and more arguments for it

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() { sed -n '5,6s/^# //p' "$0" >&2; exit 2; }

variant=${VARIANT:-small} kernel='' files=${FILES:-} out='' timeout=${TIMEOUT:-900} shell_mode=
while (($#)); do
	case $1 in
	--variant) variant=${2:?} && shift ;;
	--kernel) kernel=${2:?} && shift ;;
	--files) files=${2?} && shift ;;
	--out) out=${2:?} && shift ;;
	--timeout) timeout=${2:?} && shift ;;
	--shell) shell_mode=1 ;;
	--) shift && break ;;
	*) usage ;;
	esac
	shift
done
[[ $timeout =~ ^[1-9][0-9]*$ ]] || die "the timeout is a number of seconds, not '$timeout'"
(($#)) || [ -n "$shell_mode" ] || usage

# ---------------------------------------------------------------------------
# What was asked for: a mistake shows before the kernel is built, not after

case $variant in
*debug*) MEM_MB=${MEM_MB:-1024,1024,1024} ;;
*) MEM_MB=${MEM_MB:-512,512,1024} ;;
esac
[[ $MEM_MB =~ ^[1-9][0-9]*,[1-9][0-9]*,[1-9][0-9]*$ ]] || die "MEM_MB is three sizes in MB (node 0, node 1, slow node), like 512,512,1024; not '$MEM_MB'"
IFS=, read -ra mem <<<"$MEM_MB"
CPUS=${CPUS:-2}
if ! [[ $CPUS =~ ^[1-9]$ ]] || ((CPUS < 1 || CPUS > 8)); then
	die "CPUS is a number from 1 to 8, not '$CPUS'"
fi
LATENCY=${LATENCY:-90,110,250}
[[ $LATENCY =~ ^[1-9][0-9]*,[1-9][0-9]*,[1-9][0-9]*$ ]] || die "LATENCY is three numbers in ns (local, other DRAM node, slow node), not '$LATENCY'"
IFS=, read -ra lat <<<"$LATENCY"
MACHINE=${MACHINE:-stock}
[[ $MACHINE =~ ^(stock|fast|model)$ ]] || die "MACHINE is stock, fast or model, not '$MACHINE'"
if [ "$MACHINE" = stock ] && [ -n "${MODEL:-}${TRUTH:-}" ]; then
	die "MODEL and TRUTH are for MACHINE=fast and MACHINE=model"
fi
for m in "${mem[@]}"; do
	((m >= 64)) || die "MEM_MB=$MEM_MB: a node has at least 64 MB"
done

total=$((mem[0] + mem[1] + mem[2]))
avail=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
have=$(awk '$1 == "MemTotal:" || $1 == "SwapTotal:" { s += $2 } END { print int(s / 1024) }' /proc/meminfo)
((total < have)) || die "the guest's memory (MEM_MB=$MEM_MB, $total MB) is more than this machine has ($have MB).
	Give less: MEM_MB=256,256,512"
((total + 200 < avail)) || warn "the guest's memory ($total MB) is about all that is free here ($avail MB); it may get slow, or be killed. MEM_MB=256,256,512 needs less"
read -ra file_list <<<"$files"
for f in "${file_list[@]}"; do
	[ -e "$f" ] || die "FILES: there is no '$f' (names are separated by blanks, and relative to $PWD)"
done
if [ -n "$shell_mode" ] && { [ ! -t 0 ] || [ ! -t 1 ]; }; then
	die "make shell needs a terminal; without one, use make run CMD='...'"
fi

# ---------------------------------------------------------------------------
# The kernel

if [ -z "$kernel" ]; then
	# All at once: whoever installs by hand should not have to do it twice.
	need_packages "${PG_PKG_BUILD[@]}" "${PG_PKG_GUEST[@]}"
	kernel=$("$PG_MACHINE/build.sh" "$variant")
else
	need_packages "${PG_PKG_GUEST[@]}"
fi
[ ! -d "$kernel" ] || kernel=$kernel/arch/x86/boot/bzImage
[ -f "$kernel" ] || die "no kernel at $kernel"

# ---------------------------------------------------------------------------
# The machine

if [ -n "${QEMU:-}" ] || [ "$MACHINE" = stock ]; then
	qemu=${QEMU:-qemu-system-x86_64}
else
	qemu=$("$PG_MACHINE/qemu.sh")
fi
args=(-nodefaults -no-user-config -display none -no-reboot)
# ACPI's power button and friends are not needed, but SMM would cost boot time.
args+=(-machine "q35,smm=off,vmport=off,hmat=$([ "${HMAT:-on}" = off ] && echo off || echo on)")
case $MACHINE in
model)
	ACCEL=${ACCEL:-tcg}
	# shellcheck disable=SC2054
	args+=(-icount "shift=0,sleep=off,lockstep=${QUANTUM:-1000}" -seed 1 -rtc clock=vm,base=2026-01-01)
	# Else the main loop serves the queues, at a time that is not the guest's.
	args+=(-global virtio-serial-pci.ioeventfd=off -global virtio-9p-pci.ioeventfd=off)
	APPEND="nokaslr norandmaps ${APPEND:-}" ;;
esac
if [ "$MACHINE" != stock ]; then
	# "rep movsb" and "rep stosb" would take an instruction a byte.
	CPU=${CPU:-EPYC-Milan,ibs-preset=zen6,erms=off,fsrm=off}
	if [ -n "${TRUTH:-}" ]; then
		TRUTH=$(realpath -m "$TRUTH")
		MODEL="${MODEL:+$MODEL,}truth=${TRUTH//,/,,}"
	fi
	args+=(-object "memory-model,id=model${MODEL:+,$MODEL}")
fi
args+=(-accel "${ACCEL:-tcg,thread=multi}" -cpu "${CPU:-max,la57=off}" -smp "cpus=$CPUS,sockets=$((CPUS > 1 ? 2 : 1)),maxcpus=$((CPUS + CPUS % 2 * (CPUS > 1)))")
args+=(-m "${total}M${HOTPLUG_MB:+,slots=8,maxmem=$((total + HOTPLUG_MB))M}")
half=$(((CPUS + 1) / 2))
maxcpus=$((CPUS > 1 ? half * 2 : 1))
for n in 0 1 2; do
	args+=(-object "memory-backend-ram,id=m$n,size=${mem[n]}M")
	numa="node,nodeid=$n,memdev=m$n"
	case $n in
	0) numa+=",cpus=0-$((half - 1))" ;;
	1) ((maxcpus < 2)) || numa+=",cpus=$half-$((maxcpus - 1))" ;;
	esac
	if [ "${HMAT:-on}" != off ]; then
		numa+=",initiator=$((n == 1 && maxcpus > 1 ? 1 : 0))"
	fi
	args+=(-numa "$numa")
done
dist() { args+=(-numa "dist,src=$1,dst=$2,val=$3"); }
dist 0 1 12; dist 1 0 12; dist 0 2 50; dist 2 0 50; dist 1 2 50; dist 2 1 50
if [ "${HMAT:-on}" != off ]; then
	# Bandwidths are in GiB/s: about 200, 160 and 40 GB/s.
	for i in 0 $( ((maxcpus > 1)) && echo 1); do
		for n in 0 1 2; do
			if ((n == 2)); then l=${lat[2]} bw=37; elif ((n == i || maxcpus < 2)); then l=${lat[0]} bw=186; else l=${lat[1]} bw=149; fi
			args+=(-numa "hmat-lb,initiator=$i,target=$n,hierarchy=memory,data-type=access-latency,latency=$l"
			       -numa "hmat-lb,initiator=$i,target=$n,hierarchy=memory,data-type=access-bandwidth,bandwidth=${bw}G")
		done
	done
fi

# ---------------------------------------------------------------------------
# Where results go. Several guests may run at once, each in a directory of its own.

tmp=$(mktemp -d "${TMPDIR:-/tmp}/pghot-guest.XXXXXX")
on_exit "rm -rf '$tmp'"
if [ -z "$out" ]; then
	out=$PG_BUILD/guest
	for ((i = 2; ; i++)); do
		mkdir -p "$out"
		exec {lock}>>"$out/.lock"
		! flock -n "$lock" || break
		exec {lock}>&-
		out=$PG_BUILD/guest-$i
	done
else
	mkdir -p "$out"
fi
out=$(cd "$out" && pwd -P)
console=$out/console.log
: >"$console"

# ---------------------------------------------------------------------------
# The initramfs: a part that all runs share, and this run's

busybox=$(command -v busybox)
base=$PG_CACHE/initramfs-$(cat "$busybox" "$PG_MACHINE/guest-init" "$PG_MACHINE/initramfs.py" | sha256sum | cut -c1-12)
mkdir -p "$PG_CACHE"
if [ ! -f "$base" ]; then
	python3 "$PG_MACHINE/initramfs.py" base "$tmp/base" "$busybox" "$PG_MACHINE/guest-init"
	mv "$tmp/base" "$base"
fi

if [ -n "$shell_mode" ]; then
	printf '%s\n' "${*:-exec sh -i}" >"$tmp/command"
elif (($# == 1)); then
	printf '%s\n' "$1" >"$tmp/command"
else
	# The words as they were given, whatever is in them.
	for word; do
		printf "'%s' " "${word//\'/\'\\\'\'}"
	done >"$tmp/command"
	echo >>"$tmp/command"
fi
read -r rows cols < <(stty size 2>/dev/null || echo 24 80)
# A terminal that does not know its size says 0 0.
((rows > 0 && cols > 0)) || rows=24 cols=80
{
	printf 'SHELL_MODE=%s\nHOSTTOOLS=%s\n' "$shell_mode" "${HOSTTOOLS:-}"
	printf 'ROWS=%d\nCOLS=%d\nGUEST_TERM=%q\n' "$rows" "$cols" "${TERM:-vt100}"
} >"$tmp/settings"
python3 "$PG_MACHINE/initramfs.py" files "$tmp/files" "$tmp/command" "$tmp/settings" "${file_list[@]}"
cat "$base" "$tmp/files" >"$tmp/initrd"

# ---------------------------------------------------------------------------
# Boot

# shellcheck disable=SC2054
args+=(-kernel "$kernel" -initrd "$tmp/initrd"
       -append "console=ttyS0 panic=-1 oops=panic random.trust_cpu=on tsc=reliable quiet loglevel=7 ${APPEND:-}"
       -chardev "file,id=console,path=$console" -serial chardev:console
       -chardev "file,id=out,path=$tmp/out.tar"
       -device virtio-serial-pci -device virtserialport,chardev=out,name=pghot.out)
if [ -n "$shell_mode" ]; then
	# shellcheck disable=SC2054
	args+=(-chardev stdio,id=cmd,mux=on,signal=off -mon chardev=cmd)
else
	# shellcheck disable=SC2054
	args+=(-chardev stdio,id=cmd,signal=off)
fi
args+=(-serial chardev:cmd -serial none)
if [ "${HOSTTOOLS:-}" ]; then
	args+=(-virtfs "local,path=/,security_model=none,readonly=on,mount_tag=root,multidevs=remap")
fi
# Words, as in a shell's command line.
read -ra extra <<<"${QEMU_EXTRA:-}"
args+=("${extra[@]}")

{ printf '%q ' "$qemu" "${args[@]}"; echo; } >"$out/qemu.cmd"
start=$SECONDS
boot() {
	rc=0 status=
	rm -f "$tmp/out.tar"
	if [ -n "$shell_mode" ]; then
		"$qemu" "${args[@]}" 2>"$tmp/qemu.err" || rc=$?
	else
		# Its own process group would not get Ctrl-C: --foreground.
		timeout --foreground -k 10 "$timeout" "$qemu" "${args[@]}" </dev/null 2>"$tmp/qemu.err" || rc=$?
	fi
}

if [ -n "$shell_mode" ]; then
	say "booting; leave with 'exit', or Ctrl-A X at once (console: ${console#"$PWD"/})"
else
	say "guest: $CPUS CPUs, nodes of $MEM_MB MB, $MACHINE machine (console: ${console#"$PWD"/})"
fi
# On a busy host the guest's kernel can measure its clock wrong, and all that it
# times later with it. It says so; guest-init gives up then, before the command.
for try in 1 2 3; do
	boot
	grep -q 'init: the clock is wrong' "$console" || break
	((try < 3)) || die "the guest measured its clock wrong $try times: this machine is too busy; try again later"
	say "the guest measured its clock wrong, as happens on a busy machine: booting again"
done

show_console() {
	printf '%s\n' "----- last lines of $console" >&2
	tail -n 30 "$console" | tr -d '\r' >&2
	printf '%s\n' "-----" >&2
}

grep -vE 'warning: (TCG doesn.t support|host doesn.t support)' "$tmp/qemu.err" >&2 || true
if [ -s "$tmp/out.tar" ]; then
	mkdir -p "$tmp/x"
	if tar -x -f "$tmp/out.tar" -C "$tmp/x" --no-same-owner 2>"$tmp/tar.err"; then
		status=$(cat "$tmp/x/pghot/status" 2>/dev/null) || status=
		if [ -n "$(ls -A "$tmp/x/root/out" 2>/dev/null)" ]; then
			cp -rf "$tmp/x/root/out/." "$out/"
		fi
	else
		warn "the guest's results arrived damaged: $(head -n 1 "$tmp/tar.err")"
	fi
fi
if [ -n "$status" ]; then
	if grep -qE 'BUG: |WARNING: |Oops: |KASAN: ' "$console"; then
		warn "the kernel complained, see $console:"
		grep -E 'BUG: |WARNING: |Oops: |KASAN: ' "$console" | tr -d '\r' | head -n 5 >&2
	fi
	say "guest: ended with status $status after $(hms $((SECONDS - start)))"
	exit "$status"
fi
if [ -n "$shell_mode" ] && ((rc == 0)) && ! grep -q 'Kernel panic' "$console"; then
	# Ctrl-A X
	exit 0
fi
if ((rc == 124 || rc == 137)); then
	show_console
	say "error: the guest was stopped after $timeout s: the command (or the kernel) hung, or needs more time (TIMEOUT=seconds)"
	exit 124
fi
((rc < 128)) || exit "$rc"
show_console
if grep -q 'Kernel panic' "$console"; then
	say "error: the guest's kernel panicked: $(grep -o 'Kernel panic.*' "$console" | head -n 1 | tr -d '\r')"
elif ((rc)); then
	say "error: QEMU failed with status $rc; its command line is in $out/qemu.cmd"
else
	say "error: the guest went down before the command ended (a reset, a triple fault, or the command itself)"
fi
exit 125
