#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# clean.sh build [cache]: removes what the other scripts made.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

remove() {
	[ -d "$1" ] || return 0
	say "removing $1 ($(du -sb "$1" | cut -f1) bytes)"
	rm -rf "$1"
}

# Whoever builds in the cache just now is done first. Nothing goes before that is known.
case " $* " in *" cache "*)
	for lock in "$PG_CACHE"/lock.*; do
		[ ! -e "$lock" ] || flock -n "$lock" true || die "a build is running with this cache (lock $lock): wait for it, or stop it"
	done ;;
esac

for what; do
	case $what in
	build) remove "$PG_BUILD" ;;
	cache) remove "$PG_CACHE" ;;
	*) die "usage: clean.sh build [cache]" ;;
	esac
done
