#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# guest.sh kunit|kselftest VARIANT: tests that run in the guest. Each test case counts.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

# What a kernel says when something is wrong with it, debug kernels above all.
complaint='BUG: |WARNING: |Oops: |general protection fault|KASAN: |UBSAN: |KCSAN: '
complaint+='|INFO: (possible|suspicious|inconsistent|trying to register|rcu|task .* blocked)'
complaint+='|possible (circular|recursive|irq) |inconsistent lock state|suspicious RCU'
complaint+='|rcu.*(detected|self-detected).*stall|scheduling while atomic|sleeping function called'
complaint+='|page dumped because|Bad page|bad page state|ODEBUG:|list_(add|del) corruption'
complaint+='|kmemleak: .*new suspected memory leaks|unreferenced object|refcount_t: |soft lockup|Kernel panic'

# cases FILE: the sums from a line "N passed, N failed, N skipped", for check.sh.
cases() {
	sed -nE 's/^(# kselftest: )?([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\2 \3 \4/p' "$1" |
		tail -n 1 >"$PG_CHECK_CASES"
	[ -s "$PG_CHECK_CASES" ] || { rm -f "$PG_CHECK_CASES"; fail "the tests did not come to their end"; }
}

# add_failure WHAT: one more failed case.
add_failure() {
	local p f s
	read -r p f s <"$PG_CHECK_CASES"
	echo "$p $((f + 1)) $s" >"$PG_CHECK_CASES"
	echo "not ok $1"
}

case $1 in
kunit)
	rc=0
	log=$PG_CHECK_OUT/kunit.raw
	OUT=$PG_CHECK_OUT/kunit "$PG_MACHINE/kunit.sh" small | tee "$log" || rc=$?
	cases "$log"
	exit "$rc"
	;;
kselftest)
	variant=$2
	name=${PG_CHECK_NAME:-kselftest}
	out=$PG_CHECK_OUT/$name
	log=$PG_CHECK_OUT/$name.raw
	tree=$("$PG_MACHINE/source.sh" tree)
	kernel=$("$PG_MACHINE/build.sh" "$variant")
	rm -rf "$out"
	mkdir -p "$out/obj"

	# As anyone would build them; the objects stay out of the source.
	kernel_make "$tree" "$kernel" headers >"$log.build" 2>&1 || { tail -n 20 "$log.build"; fail "make headers"; }
	env -u FILES -u OUT make -C "$tree/tools/testing/selftests" TARGETS=mm/pghot O="$out/obj" \
		KHDR_INCLUDES="-isystem $kernel/usr/include" FORCE_TARGETS=1 \
		INSTALL_PATH="$out/pghot" install >>"$log.build" 2>&1 || { tail -n 20 "$log.build"; fail "the kselftests do not build"; }
	if [ -n "$(warnings_in "$log.build")" ]; then
		warnings_in "$log.build"
		fail "the kselftests build with warnings"
	fi
	[ -s "$out/pghot/kselftest-list.txt" ] || fail "there is no kselftest-list.txt"

	# The debug kernel is so slow that its tests run in two guests side by side, of
	# about the same length.
	mapfile -t entries <"$out/pghot/kselftest-list.txt"
	first=() second=()
	for entry in "${entries[@]}"; do
		case $variant-${entry#*:} in
		debug-pressure | debug-retry | debug-files | debug-abi.sh) second+=("$entry") ;;
		*) first+=("$entry") ;;
		esac
	done

	# in_guest NUMBER ENTRY...: runs these; the output goes to its own log.
	in_guest() {
		local number=$1 rc=0 command
		shift
		# shellcheck disable=SC2016
		command="./guest-kselftest.sh pghot ${*@Q}"'
			status=$?
			leak=/sys/kernel/debug/kmemleak
			if [ -e $leak ]; then
				# Once is not enough: what was just allocated is left alone,
				# and an object counts as lost when two scans miss it.
				echo scan >$leak; sleep 6; echo scan >$leak; sleep 6; echo scan >$leak
				mkdir -p /root/out
				cat $leak >/root/out/kmemleak
			fi
			exit $status'
		"$PG_MACHINE/guest.sh" --variant "$variant" --kernel "$kernel" --out "$out/$number" \
			--files "$out/pghot $PG_MACHINE/guest-kselftest.sh" \
			--timeout "$([ "$variant" = debug ] && echo 5400 || echo 1800)" \
			-- "$command" 2>&1 | tee "$log.$number" || rc=$?
		return "$rc"
	}

	# judge NUMBER: what the guest's kernel has said, the boot's messages as well.
	judge() {
		local dir=$out/$1
		# A debug kernel shows the page for which memory could not go offline.
		if tr -d '\r' <"$dir/console.log" | grep -v 'page dumped because: unmovable page' |
			grep -nE -A 40 -- "$complaint" >"$dir/complaints"; then
			head -n 120 "$dir/complaints"
			add_failure "the kernel complains, see $dir/console.log"
		else
			echo "ok no complaint of the kernel in $(wc -l <"$dir/console.log") lines"
		fi
		[ "$variant" = debug ] || return 0
		if [ ! -f "$dir/kmemleak" ]; then
			add_failure "no scan of kmemleak"
		elif [ -s "$dir/kmemleak" ]; then
			head -n 60 "$dir/kmemleak"
			add_failure "kmemleak has found something"
		else
			echo "ok kmemleak has found nothing"
		fi
	}

	rc=0 numbers=(1) pid=
	if ((${#second[@]})); then
		numbers+=(2)
		in_guest 2 "${second[@]}" &
		pid=$!
	fi
	in_guest 1 "${first[@]}" || rc=$?
	[ -z "$pid" ] || wait "$pid" || rc=$?

	sum="0 0 0"
	for number in "${numbers[@]}"; do
		cases "$log.$number"
		read -r p f s <<<"$sum"
		read -r p2 f2 s2 <"$PG_CHECK_CASES"
		sum="$((p + p2)) $((f + f2)) $((s + s2))"
	done
	echo "$sum" >"$PG_CHECK_CASES"
	for number in "${numbers[@]}"; do
		judge "$number"
	done
	read -r _ f _ <"$PG_CHECK_CASES"
	((rc == 0 && f == 0))
	;;
esac
