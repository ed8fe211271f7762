#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# deb-boot-test.sh [PACKAGE.deb]: boots the kernel of a linux-image package in
# the guest (without its modules) and checks that it is that kernel.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

deb=${1:-$(find "$PG_BUILD/deb" -name 'linux-image-*.deb' ! -name '*-dbg_*' -printf '%T@ %p\n' 2>/dev/null |
	sort -n | tail -n 1 | cut -d' ' -f2-)}
[ -f "$deb" ] || die "no package: run 'make deb' first (CONFIG=small makes one in minutes), or name one"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/pghot-deb.XXXXXX")
on_exit "rm -rf '$tmp'"
dpkg-deb -x "$deb" "$tmp"
kernel=$(echo "$tmp"/boot/vmlinuz-*)
[ -f "$kernel" ] || die "$deb contains no /boot/vmlinuz-*"
want=${kernel##*/vmlinuz-}
{ read -r have && read -r pghot; } < <("$PG_MACHINE/guest.sh" --kernel "$kernel" --out "$PG_BUILD/guest/deb" \
	--timeout "${TIMEOUT:-300}" -- 'uname -r; [ -d /sys/kernel/mm/pghot ] && echo yes || echo no') ||
	die "the package's kernel did not come up; see $PG_BUILD/guest/deb/console.log"
[ "$have" = "$want" ] || die "booted '$have', expected '$want'"
[ "$pghot" = yes ] || die "the package's kernel has no /sys/kernel/mm/pghot"
say "the package's kernel boots: $have"
