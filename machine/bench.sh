#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make bench: promoters side by side, each in a guest of its own on the modelled machine.
# Prints a table; build/bench/ gets result.json and pictures. Fails if a row failed; the
# others are finished and kept all the same.
#
# Variables:
#   SCENARIO=t1		a file in machine/bench/scenarios
#   ROWS=a,b		files in machine/bench/rows, or others by their path
#   QUICK=1		a shorter run, at another scale
#   TWICE=1		run each row two times: are they the same to the byte?
#   BENCH_JOBS=2	rows at a time
#   QEMU=binary		a build of the modelled machine of your own
#   MACHINE=stock	Debian's emulator: shows that it works, times mean nothing

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

out=$PG_BUILD/bench
args=(--out "$out" --scenario "${SCENARIO:-t1}")
[ -z "${ROWS:-}" ] || args+=(--rows "$ROWS")
[ -z "${QUICK:-}" ] || [ "${QUICK:-}" = 0 ] || args+=(--quick)
[ -z "${TWICE:-}" ] || [ "${TWICE:-}" = 0 ] || args+=(--twice)
need_packages python3
# A mistake shows before the kernel is built, not after.
python3 "$PG_MACHINE/bench/bench.py" "${args[@]}" --kernel none --work none --list >/dev/null || exit 1

need_packages "${PG_PKG_BUILD[@]}" "${PG_PKG_GUEST[@]}" gnuplot-nox
need_space "$out" 2000 "the bench"
kernel=$("$PG_MACHINE/build.sh" "${VARIANT:-bench}")/arch/x86/boot/bzImage
case ${MACHINE:-model} in
model)
	qemu=${QEMU:-}
	[ -n "$qemu" ] || qemu=$("$PG_MACHINE/qemu.sh")
	args+=(--qemu "$qemu")
	;;
stock) ;;
*) die "MACHINE is model or stock here, not '$MACHINE': the bench needs a clock that memory moves" ;;
esac
mkdir -p "$out/bin"
gcc -O2 -Wall -Wextra -static -pthread -I "$PG_MACHINE" -o "$out/bin/work" "$PG_MACHINE/bench/work.c" -lm ||
	die "the workload does not compile; on Debian, build-essential brings what it needs"
exec python3 "$PG_MACHINE/bench/bench.py" "${args[@]}" --kernel "$kernel" --work "$out/bin/work" --jobs "${BENCH_JOBS:-2}"
