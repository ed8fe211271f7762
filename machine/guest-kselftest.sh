#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# guest-kselftest.sh [DIR [COLLECTION:TEST...]]
#
# Runs installed kselftests in the guest, which has no bash and no perl for
# run_kselftest.sh. DIR is where they were installed (kselftest-list.txt is in it);
# the default is the first such directory below /root. Without tests, all of the
# list are run.
#
# Each program's TAP output comes out as it is, then a line for each program. The
# last line is "# kselftest: N passed, N failed, N skipped" and counts single
# tests; the exit status is 0 if none failed. Skipped ones are listed with reasons
# before that, as a skip that nobody expects is a failure.

dir=${1-}
[ $# -eq 0 ] || shift
if [ -z "$dir" ]; then
	for list in /root/kselftest-list.txt /root/*/kselftest-list.txt; do
		[ -f "$list" ] && dir=${list%/*} && break
	done
fi
if [ ! -f "$dir/kselftest-list.txt" ]; then
	echo "guest-kselftest.sh: no kselftest-list.txt in ${dir:-/root/*}" >&2
	exit 2
fi
if [ $# -eq 0 ]; then
	# shellcheck disable=SC2046 # one word a test
	set -- $(cat "$dir/kselftest-list.txt")
fi

tmp=$(mktemp -d)
: >"$tmp/results"
bad=0
for entry; do
	collection=${entry%%:*}
	prog=${entry#*:}
	timeout=$(sed -n 's/^timeout=//p' "$dir/$collection/settings" 2>/dev/null)
	echo "# selftests: $collection: $prog"
	start=$(cut -d. -f1 /proc/uptime)
	# Its status, past the pipe.
	{
		(cd "$dir/$collection" && exec timeout -k 30 "${timeout:-45}" "./$prog") 2>&1
		echo $? >"$tmp/status"
	} | tee "$tmp/log"
	status=$(cat "$tmp/status")
	took=$(($(cut -d. -f1 /proc/uptime) - start))

	# Single tests, and whether there are as many as were planned. What is
	# indented belongs to others.
	sed -n "s/^ok [0-9]* \(.*\)/ok $prog: \1/p; s/^not ok [0-9]* \(.*\)/not ok $prog: \1/p" \
		"$tmp/log" >"$tmp/one"
	planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$tmp/log" | head -n 1)
	case $status in
	0)	verdict=ok ;;
	4)	verdict=ok
		# A program that skipped as a whole.
		[ -s "$tmp/one" ] ||
			echo "ok $prog: all # SKIP $(sed -n 's/.*# SKIP *//p' "$tmp/log" | head -n 1)" >"$tmp/one"
		;;
	124|137) verdict="not ok (after $timeout s: it hung)" ;;
	*)	verdict="not ok (status $status)" ;;
	esac
	if [ "$verdict" = ok ] && [ "$(grep -c . "$tmp/one")" -lt "${planned:-1}" ]; then
		verdict="not ok ($(grep -c . "$tmp/one") results of ${planned:-1})"
	fi
	if [ "$verdict" != ok ]; then
		bad=1
		# Counted, if no single test says so.
		grep -q '^not ok' "$tmp/one" || echo "not ok $prog: $verdict" >>"$tmp/one"
	fi
	cat "$tmp/one" >>"$tmp/results"
	echo "# $verdict: selftests: $collection: $prog ($took s)"
done

echo "#"
grep '# SKIP' "$tmp/results" | sed 's/^ok /# skipped: /'
grep '^not ok' "$tmp/results" | sed 's/^not ok /# FAILED: /'
skipped=$(grep -c '^ok .*# SKIP' "$tmp/results")
failed=$(grep -c '^not ok' "$tmp/results")
passed=$(($(grep -c '^ok ' "$tmp/results") - skipped))
rm -rf "$tmp"
echo "# kselftest: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$bad" = 0 ]
