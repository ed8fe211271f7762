#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make figures: measures every figure that the documents state, and prints each with
# the command that measures it, its value and its limit. build/figures/result.json
# has them too. The exit status is 1 if a limit is exceeded.
#
#  1, 2	the demo: what moved, and how fast
#  3	instructions of kernel paths with all sources off, against a kernel without
#	pghot
#  4	memory for records, and work per promoted page on a 4 GB slow node
#  5	instructions of a report of an access
#
# Instructions are counted by QEMU's -icount: its clock advances by a nanosecond
# with each of them, so that the guest's time stamp counter counts them.
#
# figures.sh [1-2|3|4|5]...	only these; the others are kept from the last run

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# One of two that differ in pghot only: machine/config/small.config, off.config.
export VARIANT=small

need_packages "${PG_PKG_BUILD[@]}" "${PG_PKG_GUEST[@]}"

out=$PG_BUILD/figures
what=("$@")
((${#what[@]})) || what=(1-2 3 4 5)
mkdir -p "$out/bin"

compile() {
	gcc -O2 -Wall -Wextra -static -pthread -I "$PG_MACHINE" -o "$out/bin/$2" "$PG_MACHINE/$1" || die "$1 does not compile"
}

# counting OUT FILES COMMAND: in a guest whose clock counts instructions. One CPU,
# no randomness: the same kernel gives the same counts each time.
counting() {
	env CPUS=1 ACCEL=tcg,thread=single CPU=max,la57=off,erms=off \
		APPEND="nokaslr norandmaps" \
		QEMU_EXTRA="-icount shift=0,sleep=off -seed 1 -rtc clock=vm,base=2026-01-01" \
		"$PG_MACHINE/guest.sh" --kernel "$kernel" --files "$2" --out "$1" --timeout "${TIMEOUT:-900}" -- "$3"
}

figure_1_2() {
	"$PG_MACHINE/demo.sh" >&2 || say "the demo found something wrong, see above"
	[ -f "$PG_BUILD/demo/result.json" ] || die "the demo has no result"
	cp "$PG_BUILD/demo/result.json" "$out/demo.json"
}

figure_3() {
	compile figures/paths.c paths
	local v kernel
	for v in small off; do
		kernel=$("$PG_MACHINE/build.sh" "$v")
		say "counting instructions, kernel '$v'"
		# shellcheck disable=SC2016
		counting "$out/guest-paths" "$out/bin/paths" './paths &&
			echo bytes_in_use $(cat /sys/kernel/mm/pghot/bytes_in_use 2>/dev/null || echo 0)' \
			>"$out/paths.$v.new" || die "counting failed"
	done
	mv "$out/paths.small.new" "$out/paths.small"
	mv "$out/paths.off.new" "$out/paths.off"
}

# The demo's workload, then a single hot page.
figure_4() {
	local kernel
	compile demo/hotset.c hotset
	kernel=$("$PG_MACHINE/build.sh" small)
	# shellcheck disable=SC2016
	env MEM_MB="${MEM_MB:-512,512,4096}" CPU=max,la57=off,erms=off "$PG_MACHINE/guest.sh" \
		--kernel "$kernel" --files "$out/bin/hotset" --out "$out/guest-work" --timeout "${TIMEOUT:-900}" -- '
		set -e
		cd /root
		P=/sys/kernel/mm/pghot
		echo 0 >/proc/sys/kernel/numa_balancing
		echo 1 >$P/freq_threshold
		N=$(echo $P/nodes/node*)
		slow=${N##*/node}
		for pages in 8192 1; do
			visited=$(cat $N/visited) promoted=$(cat $N/promoted)
			./hotset --node $slow --hot-pages $pages --seconds 300 --until 100 --out out/hot-$pages \
				--label "$pages hot pages" --on $P/enabled_sources=hintfaults >&2
			{
				echo pages $(($(cat $N/records)))
				echo bytes_in_use $(cat $P/bytes_in_use)
				echo visited $(($(cat $N/visited) - visited))
				echo promoted $(($(cat $N/promoted) - promoted))
			} >out/work-$pages
			echo 0 >$P/enabled_sources
			echo bytes_in_use_after $(cat $P/bytes_in_use) >>out/work-$pages
		done' >&2 || die "the guest failed"
	cp "$out/guest-work"/work-{8192,1} "$out/"
}

# A module for the guest's kernel.
build_module() {
	local dir=$1 module=$out/module cc=${CC:-gcc}
	rm -rf "$module"
	mkdir -p "$module"
	cp "$PG_MACHINE/figures/record_cost.c" "$module/"
	echo 'obj-m := record_cost.o' >"$module/Kbuild"
	! command -v ccache >/dev/null || cc="ccache $cc"
	# modpost cannot know the kernel's symbols, as no modules were built with it;
	# the kernel does when it loads the module.
	# shellcheck disable=SC2016
	run_logged "module record_cost" "$PG_LOG/module.log" "" \
		bash -ec 'make -C "$1" O="$2" CC="$3" modules_prepare
			make -C "$1" O="$2" CC="$3" M="$4" KBUILD_MODPOST_WARN=1 modules' \
		sh "${dir%/*}" "$dir" "$cc" "$module" || die "the module could not be built, see $PG_LOG/module.log"
}

figure_5() {
	local kernel
	kernel=$("$PG_MACHINE/build.sh" small)
	with_lock "$(basename "$(dirname "${kernel%/*}")")" build_module "$kernel"
	# shellcheck disable=SC2016
	counting "$out/guest-record" "$out/module/record_cost.ko" '
		set -e
		P=/sys/kernel/mm/pghot
		echo 15 >$P/freq_threshold
		echo 600000 >$P/promote_window_ms
		echo hintfaults >$P/enabled_sources
		insmod record_cost.ko nid=2
		dmesg | sed -n "s/.*record_cost: \([a-z]* [0-9]*\)\r*$/\1/p"' >"$out/record.new" || die "the guest failed"
	mv "$out/record.new" "$out/record"
}

for w in "${what[@]}"; do
	case $w in
	1 | 2 | 1-2) figure_1_2 ;;
	3) figure_3 ;;
	4) figure_4 ;;
	5) figure_5 ;;
	*) die "there is no figure '$w': 1-2, 3, 4 or 5" ;;
	esac
done
python3 "$PG_MACHINE/figures/report.py" "$out"
