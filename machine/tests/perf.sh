#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf.sh [zen3|zen4|zen5|zen6...]: the kernel's own IBS driver and perf, built
# from the kernel's source, on the modelled machine; by default as zen6 and zen4.
# TAP on stdout.
#
# perf.sh build: builds perf only, and prints where it is
#
# KERNEL=...	a bzImage or a build directory, instead of the variant small
# PERF=...	a perf that was built already

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/lib.sh"

# No more of perf than the tests want: it would need libraries, and time.
without=(NO_JEVENTS=1 NO_LIBBPF=1 BUILD_BPF_SKEL=0 NO_LIBTRACEEVENT=1 NO_LIBPYTHON=1 NO_SLANG=1
	 NO_LIBNUMA=1 NO_LIBDW=1 NO_LIBBABELTRACE=1 NO_CAPSTONE=1 NO_LZMA=1 NO_LIBZSTD=1 NO_LIBPFM4=1
	 NO_LIBDEBUGINFOD=1 NO_SDT=1 NO_JVMTI=1 NO_SHELLCHECK=1 NO_LIBLLVM=1 NO_RUST=1 NO_DEMANGLE=1)

# perf's own test of periods runs code that rewrites itself a million times for
# each of a hundred settings. That is nothing for a processor, but TCG translates
# anew each time, in all for hours: so here it is some thousand times. What the
# test compares does not depend on it.
# shellcheck disable=SC2317 # build calls it
shorten() {
	local file=$1/tools/perf/arch/x86/tests/amd-ibs-period.c
	sed -e 's/count < 100000)/count < 1000)/; s/count = 100000;/count = 1000;/' \
		-e 's/dummy_workload_1(10*)/dummy_workload_1(3000)/' \
		-e 's/-g 10 -l 5000/-g 2 -l 100/' "$file" >"$file.new"
	if cmp -s "$file" "$file.new" || [ "$(grep -c 'dummy_workload_1(3000)' "$file.new")" != 2 ]; then
		die "perf's period test is not as it was: see shorten() in $0"
	fi
	# The file itself is a link to the pristine one.
	mv "$file.new" "$file"
}

# build SOURCE PERF
# shellcheck disable=SC2317 # with_lock calls it
build() {
	local tmp=$PG_CACHE/tmp.perf
	[ ! -x "$2" ] || return 0
	rm -rf "$tmp"
	mkdir -p "$tmp/build"
	need_space "$PG_CACHE" 500 "the build of perf"
	cp -al "$1" "$tmp/linux"
	shorten "$tmp/linux"
	run_logged "perf" "$PG_LOG/perf.log" "grep -cE '^ +(CC|LD)' '$PG_LOG/perf.log' | sed 's/\$/ of about 430 files/'" \
		make -C "$tmp/linux/tools/perf" O="$tmp/build" -j"$PG_JOBS" WERROR=0 "${without[@]}" || {
			rm -rf "$tmp"
			die "perf does not build, see $PG_LOG/perf.log"
		}
	mkdir -p "$(dirname "$2")"
	mv "$tmp/build/perf" "$2"
	rm -rf "$tmp"
}

need_packages build-essential bison flex libelf-dev zlib1g-dev python3 pkg-config
perf=${PERF:-}
if [ -z "$perf" ]; then
	source=$("$PG_MACHINE/source.sh" pristine)
	perf=$PG_CACHE/perf-$(basename "$source")-$(short_hash "${without[*]} $(declare -f shorten)")/perf
	with_lock perf build "$source/linux" "$perf"
fi
if [ "${1:-}" = build ]; then
	printf '%s\n' "$perf"
	exit
fi
(($#)) || set -- zen6 zen4
for preset; do
	[[ $preset =~ ^zen[3-6]$ ]] || die "perf.sh knows zen3, zen4, zen5 and zen6, not '$preset'"
done

out=$PG_BUILD/tests
mkdir -p "$out"
gcc -O2 -Wall -Wextra -static -o "$out/walk" "$PG_MACHINE/tests/perf/walk.c"
cp -f "$perf" "$out/perf"
rc=0
for preset; do
	dir=$out/perf-$preset
	rm -rf "$dir"
	# The prefetcher would hide what a walk misses only where it is in order.
	MACHINE=${MACHINE:-fast} CPU="EPYC-Milan,ibs-preset=$preset" "$PG_MACHINE/guest.sh" --out "$dir" ${KERNEL:+--kernel "$KERNEL"} \
		--files "$out/perf $out/walk $PG_MACHINE/tests/perf/in-guest.sh" --timeout 1800 -- ./in-guest.sh >&2 || rc=1
	python3 "$PG_MACHINE/tests/perf.py" "$dir" "$preset" || rc=1
done
exit $rc
