#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make demo: builds the kernel, boots the guest, and shows hot pages of a running
# program leave the slow node for DRAM, under pghot and, for comparison, under NUMA
# balancing. Prints a table and a chart; build/demo/ gets result.json and pictures.
# Fails if too few hot pages or too many cold ones moved, or the counters are wrong.
#
# Variables: those of guest.sh, and PAIRS=3 (runs of each promoter).

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages "${PG_PKG_BUILD[@]}" "${PG_PKG_GUEST[@]}" gnuplot-nox

out=$PG_BUILD/demo
kernel=$("$PG_MACHINE/build.sh" "${VARIANT:-small}")

# What an earlier run left must not be taken for this one's.
rm -rf "$out"
mkdir -p "$out/bin" "$out/run"
gcc -O2 -Wall -Wextra -static -pthread -I "$PG_MACHINE" -o "$out/bin/hotset" "$PG_MACHINE/demo/hotset.c" ||
	die "the workload does not compile; on Debian, build-essential brings what it needs"

# Without "rep stosb" and "rep movsb", which QEMU emulates byte by byte, the guest
# clears and copies pages much faster.
export CPU=${CPU:-max,la57=off,erms=off}
say "128 MB on the slow node, 32 MB of it hot; each promoter ${PAIRS:-3} times. Takes about 45 seconds"
"$PG_MACHINE/guest.sh" --kernel "$kernel" --files "$out/bin/hotset $PG_MACHINE/demo/in-guest.sh" \
	--out "$out/run" --timeout "${TIMEOUT:-600}" -- "PAIRS=${PAIRS:-3} ./in-guest.sh" >&2 ||
	die "the guest's part of the demo failed; see above, and $out/run/console.log"

python3 "$PG_MACHINE/demo/report.py" "$out/run" "$out"
