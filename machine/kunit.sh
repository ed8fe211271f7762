#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kunit.sh [VARIANT]: runs the KUnit suites of mm/pghot in the guest, at boot and
# again from user space, and prints a line per test and
#
#	N passed, N failed, N skipped
#
# A test counts once: it failed if it failed in either run. A complaint of the
# kernel is a failure too. Exit status: 0 if nothing failed.
#
# Variables: those of guest.sh; HMAT=off shows what is skipped without slow memory.
# Results: $OUT, or build/kunit/: console.log, and boot.SUITE and user.SUITE in KTAP.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

variant=${1:-${VARIANT:-small}}
out=${OUT:-$PG_BUILD/kunit}

# What must be there, from the source: a suite that is not linked in or not run
# is no success.
suites=$(sed -n 's/^\t\.name\t*= "\(pghot_[a-z]*\)",$/\1/p' "$PG_TOP"/mm/pghot/tests/*_kunit.c)
[ -n "$suites" ] || die "no suites in mm/pghot/tests"

mkdir -p "$out"
rm -f "$out"/boot.* "$out"/user.*

kernel=$("$PG_MACHINE/build.sh" "$variant")
# A busy host starves the guest: that is no lockup. A true one ends by TIMEOUT.
# shellcheck disable=SC2016
APPEND="nowatchdog kunit.autorun=1 kunit.filter_glob=pghot* ${APPEND:-}" \
	"$PG_MACHINE/guest.sh" --variant "$variant" --kernel "$kernel" --out "$out" \
	--timeout "${TIMEOUT:-1800}" -- '
	mkdir -p /root/out
	cd /sys/kernel/debug/kunit || exit 3
	for s in pghot*; do
		cat $s/results >/root/out/boot.$s
		echo run >$s/run
		cat $s/results >/root/out/user.$s
	done' ||
	warn "the guest did not end well, see ${out#"$PWD"/}/console.log"

# shellcheck disable=SC2086
exec python3 "$PG_MACHINE/ktap.py" "$out" $suites
