#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Files in sysfs and sysctl: all are there, take what they should, refuse the rest
# with the right error, and keep their value then.

DIR=$(cd "$(dirname "$0")" && pwd)
. "$DIR/../../kselftest/ktap_helpers.sh"

PG=/sys/kernel/mm/pghot
VM=/proc/sys/vm
WRITE=$DIR/write_file
NL='\n'
HUGE=18446744073709551616	# 2^64
failed=
# Checks are collected, and made all at once by a program: see write_file.c.
checks=

ktap_print_header
if [ "$(id -u)" != 0 ]; then
	ktap_skip_all "not root"
	exit "$KSFT_SKIP"
fi
if [ ! -d $PG ]; then
	ktap_skip_all "no pghot in this kernel"
	exit "$KSFT_SKIP"
fi

knobs="freq_threshold promote_window_ms target_nid promote_rate_limit_MBps"
knobs="$knobs kmigrated_sleep_ms kmigrated_batch_nr"
sources_file=$PG/enabled_sources

# What was there is put back, whatever happens.
saved=
for f in $knobs sources/hintfaults/latency_ms sources/hintfaults/latency_faults; do
	[ -e "$PG/$f" ] && saved="$saved $f=$(cat "$PG/$f")"
done
saved_sources=$(cat $sources_file)
hint=$PG/sources/hintfaults
saved_measure=$(sed 's/.*\[\(.*\)\].*/\1/' $hint/latency_measure 2>/dev/null)

restore() {
	rm -f "$checks"
	echo 0 >$sources_file
	for s in $saved; do
		echo "${s#*=}" >"$PG/${s%%=*}"
	done
	[ -z "$saved_measure" ] || echo "$saved_measure" >$hint/latency_measure
	echo "$saved_sources" >$sources_file
}
trap restore EXIT
trap 'exit 1' INT TERM HUP
echo 0 >$sources_file
checks=$(mktemp)

# say WORDS: what went wrong in this test.
say() {
	ktap_print_msg "$*"
	failed=1
}

# result NAME: ends a test.
result() {
	$WRITE -c <"$checks" || failed=1
	: >"$checks"
	if [ "$failed" ]; then
		ktap_test_fail "$1"
	else
		ktap_test_pass "$1"
	fi
	failed=
}

# good FILE TEXT VALUE: is taken, and VALUE is read.
good() {
	printf 'good\t%s\t%s\t%s\n' "$1" "$2" "$3" >>"$checks"
}

# bad FILE TEXT ERROR: is refused, and nothing changes.
bad() {
	printf 'bad\t%s\t%s\t%s\n' "$1" "$2" "$3" >>"$checks"
}

# garbage FILE BYTES ERROR
garbage() {
	printf 'garbage\t%s\t%s\t%s\n' "$1" "$2" "$3" >>"$checks"
}

# is FILE VALUE
is() {
	printf 'is\t%s\t%s\n' "$1" "$2" >>"$checks"
}

# What is no number.
not_numbers() {
	for text in "$NL" " " x many 1x "1;2" "1 1" 1.5 --1 0x "1$NL$NL" '\001\377\200'; do
		bad "$1" "$text" EINVAL
	done
	garbage "$1" 1 EINVAL
	garbage "$1" 4096 EINVAL
	# No bytes at all: nothing is written.
	printf 'empty\t%s\n' "$1" >>"$checks"
}

# mode FILE MODE
mode() {
	if [ ! -e "$1" ]; then
		say "$1 is missing"
	elif [ "$(stat -c %a "$1")" != "$2" ]; then
		say "$1 has mode $(stat -c %a "$1"), not $2"
	fi
}

# number FILE: can be read, and is one number on a line.
number() {
	case $(cat "$1") in
	''|*[!0-9-]*) say "$1 is no number: '$(cat "$1")'" ;;
	esac
}

# ---------------------------------------------------------------------------

test_files() {
	for f in $knobs enabled_sources; do
		mode "$PG/$f" 644
		number "$PG/$f"
	done
	for f in bytes_in_use alloc_failures status; do
		mode "$PG/$f" 444
	done
	number $PG/bytes_in_use
	number $PG/alloc_failures
	[ -d $PG/nodes ] || say "$PG/nodes is missing"
	[ -d $PG/sources ] || say "$PG/sources is missing"
	for d in "$PG"/nodes/node*; do
		[ -d "$d" ] || continue
		for f in records visited candidates promoted target demoted_hot \
			 throttle skipped_cold \
			 skipped_gone skipped_unmovable skipped_denied skipped_busy \
			 skipped_pinned skipped_nospace skipped_ratelimit skipped_failed; do
			mode "$d/$f" 444
			number "$d/$f"
		done
	done
	for f in enabled_sources freq_threshold promote_window_ms target_nid \
		 promote_rate_limit_MBps; do
		mode "$VM/pghot_$f" 644
	done
	for d in "$PG"/sources/*; do
		[ -d "$d" ] || continue
		mode "$d/enabled" 644
	done
	if [ -d $hint ]; then
		for f in latency_measure latency_ms latency_faults; do
			mode "$hint/$f" 644
		done
	fi
	result "all files are there, with their modes"
}

test_vmstat() {
	for c in pghot_recorded_accesses pghot_reported_hintfaults \
		 pghot_reported_hwhints pghot_reported_pgscan \
		 pgpromote_success pgpromote_candidate; do
		grep -q "^$c [0-9]*\$" /proc/vmstat || say "/proc/vmstat has no $c"
	done
	for why in cold gone unmovable denied busy pinned nospace ratelimit failed; do
		grep -q "^pghot_skip_$why [0-9]*\$" /proc/vmstat ||
			say "/proc/vmstat has no pghot_skip_$why"
	done
	result "counters in /proc/vmstat"
}

# range NAME MIN MAX DEFAULT
test_range() {
	f=$PG/$1
	good "$f" "$2" "$2"
	good "$f" "$3" "$3"
	good "$f" "$4$NL" "$4"
	good "$f" "0x$(printf %x "$3")" "$3"
	good "$f" "+$4" "$4"
	bad "$f" "$(($3 + 1))" ERANGE
	bad "$f" "$(($2 - 1))" ERANGE
	bad "$f" 4294967296 ERANGE
	bad "$f" "$((4294967296 + $4))" ERANGE
	bad "$f" -9223372036854775808 ERANGE
	bad "$f" 9223372036854775808 ERANGE
	bad "$f" "$HUGE" ERANGE
	bad "$f" "-$HUGE" ERANGE
	not_numbers "$f"
	[ "$2" -lt 0 ] || bad "$f" -1 ERANGE
	good "$f" "$4" "$4"
	result "$1: $2 to $3 and nothing else"
}

test_target() {
	f=$PG/target_nid
	good "$f" -1 -1
	for n in $(seq 0 63); do
		d=/sys/devices/system/node/node$n
		if [ ! -d "$d" ]; then
			bad "$f" "$n" ENODEV
		elif [ -d "$PG/nodes/node$n" ]; then
			bad "$f" "$n" EINVAL
		elif grep -q 'MemTotal: *0 kB' "$d/meminfo"; then
			bad "$f" "$n" EINVAL
		else
			good "$f" "$n" "$n"
			good "$f" -1 -1
		fi
	done
	bad "$f" -2 ERANGE
	bad "$f" 1048576 ERANGE
	bad "$f" 4294967295 ERANGE
	bad "$f" "$HUGE" ERANGE
	not_numbers "$f"
	result "target_nid: -1 and DRAM nodes, and nothing else"
}

# Which sources there are, as a mask.
bit_of() {
	case $1 in
	hintfaults) echo 1 ;;
	hwhints) echo 2 ;;
	pgscan) echo 4 ;;
	esac
}

# Is there such a source? Some are known, and have no hardware.
has_source() {
	[ -d "$PG/sources/$1" ] || return 1
	[ "$(cat "$PG/sources/$1/unit" 2>/dev/null)" != "not present" ]
}

test_sources() {
	f=$sources_file
	present=0
	for s in hintfaults hwhints pgscan; do
		bit=$(bit_of $s)
		if has_source $s; then
			present=$((present | bit))
			good "$f" $s "$bit"
			good "$f" off 0
			good "$f" "$bit$NL" "$bit"
			bad "$f" 8 ERANGE
			bad "$f" $s,nonsense EINVAL
			good "$f" "$s,$s$NL" "$bit"
			good "$f" "off$NL" 0
			good "$PG/sources/$s/enabled" 1 1
			is "$f" "$bit"
			bad "$PG/sources/$s/enabled" 2 ERANGE
			bad "$PG/sources/$s/enabled" -1 ERANGE
			bad "$PG/sources/$s/enabled" on EINVAL
			not_numbers "$PG/sources/$s/enabled"
			good "$PG/sources/$s/enabled" 0 0
			is "$f" 0
		else
			bad "$f" $s ENODEV
			bad "$f" "$bit" ENODEV
			[ ! -d "$PG/sources/$s" ] || bad "$PG/sources/$s/enabled" 1 ENODEV
		fi
	done
	# All or nothing.
	if [ "$present" != 7 ]; then
		bad "$f" 7 ENODEV
		bad "$f" hintfaults,hwhints,pgscan ENODEV
	fi
	good "$f" "$present" "$present"
	[ "$present" = 7 ] || bad "$f" 7 ENODEV
	for text in 8 9 15 255 4294967296 4294967297 -1 "$HUGE"; do
		bad "$f" "$text" ERANGE
	done
	for text in OFF on hint hintfault hintfaultss HINTFAULTS "hintfaults " \
		    " hintfaults" "hintfaults," ",hintfaults" "hintfaults,,pgscan" \
		    "hintfaults;pgscan" "hintfaults pgscan" "hintfaults${NL}x" \
		    "off,hintfaults" "1,hintfaults"; do
		bad "$f" "$text" EINVAL
	done
	not_numbers "$f"
	good "$f" 0 0
	is $PG/bytes_in_use 0
	result "enabled_sources: names and masks of sources that are there"
}

test_status() {
	set -- "$PG"/nodes/node*
	if [ -d "$1" ]; then
		off=disabled
		on=active
	else
		off="no lower tier"
		on="no lower tier"
	fi
	is "$PG/status" "$off"
	if [ -d $hint ]; then
		# Where there is no lower tier: for memory that may come.
		good $sources_file 1 1
		is "$PG/status" "$on"
		[ -d "$1" ] || is $PG/bytes_in_use 0
		good $sources_file 0 0
		is "$PG/status" "$off"
	fi
	result "status"
}

test_hintfaults() {
	d=$hint
	if [ ! -d $d ]; then
		ktap_test_skip "knobs of the hint faults: no such source"
		return
	fi
	good $d/latency_measure faults "time [faults]"
	good $d/latency_measure "time$NL" "[time] faults"
	for text in "$NL" t tim times TIME "time " " time" "faults,time" 0 1 "$HUGE"; do
		bad $d/latency_measure "$text" EINVAL
	done
	garbage $d/latency_measure 4096 EINVAL
	for range in latency_ms:1:3000:1000 latency_faults:1:16777216:8192; do
		IFS=: read -r name min max def <<-END
		$range
		END
		good "$d/$name" "$min" "$min"
		good "$d/$name" "$max" "$max"
		bad "$d/$name" "$((min - 1))" ERANGE
		bad "$d/$name" "$((max + 1))" ERANGE
		bad "$d/$name" -1 ERANGE
		bad "$d/$name" 4294967297 ERANGE
		bad "$d/$name" "$HUGE" ERANGE
		not_numbers "$d/$name"
		good "$d/$name" "$def" "$def"
	done
	result "knobs of the hint faults"
}

# mirror NAME VALUE OTHER: what one side takes, the other one shows.
mirror() {
	good "$PG/$1" "$2" "$2"
	is "$VM/pghot_$1" "$2"
	good "$VM/pghot_$1" "$3" "$3"
	is "$PG/$1" "$3"
}

test_sysctl() {
	mirror freq_threshold 7 2
	mirror promote_window_ms 5000 2000
	mirror promote_rate_limit_MBps 77 0
	dram=
	for d in /sys/devices/system/node/node*; do
		n=${d##*node}
		[ -d "$PG/nodes/node$n" ] ||
			grep -q 'MemTotal: *0 kB' "$d/meminfo" || dram=$n
	done
	mirror target_nid "${dram:--1}" -1
	[ ! -d $hint ] || mirror enabled_sources 1 0

	for range in freq_threshold:1:15 promote_window_ms:100:600000 \
		     promote_rate_limit_MBps:0:1048576; do
		IFS=: read -r name min max <<-END
		$range
		END
		f=$VM/pghot_$name
		bad "$f" "$((min - 1))" ERANGE
		bad "$f" "$((max + 1))" ERANGE
	done
	bad $VM/pghot_target_nid -2 ERANGE
	bad $VM/pghot_target_nid 63 ENODEV
	bad $VM/pghot_enabled_sources 8 ERANGE
	bad $VM/pghot_enabled_sources hint EINVAL
	for name in freq_threshold promote_window_ms target_nid \
		    promote_rate_limit_MBps enabled_sources; do
		f=$VM/pghot_$name
		bad "$f" 4294967296 ERANGE
		bad "$f" "$HUGE" ERANGE
		not_numbers "$f"
	done
	result "sysctl shows and takes the same"
}

test_not_root() {
	for f in $knobs enabled_sources; do
		before=$(cat "$PG/$f")
		r=$($WRITE -u 65534 "$PG/$f" 1)
		[ "$r" = EACCES ] || say "$f: not root gets $r"
		[ "$(cat "$PG/$f")" = "$before" ] || say "$f: not root changes it"
	done
	for f in "$VM"/pghot_*; do
		r=$($WRITE -u 65534 "$f" 1)
		[ "$r" = EACCES ] || say "$f: not root gets $r"
	done
	for f in bytes_in_use alloc_failures status; do
		# Root may open them all the same; there is nothing to write to.
		case $($WRITE "$PG/$f" 1) in
		ok|short) say "$f can be written" ;;
		esac
	done
	result "only root may write, and not what is read-only"
}

# Each writer writes two values of its own: what is read is always one of them.
test_writers() {
	for w in 1 2 3 4 5 6 7 8; do
		(
			rc=0
			for i in 1 2 3 4 5 6; do
				[ "$($WRITE $PG/freq_threshold "$w")" = ok ] || rc=1
				[ "$($WRITE $PG/promote_window_ms $((w * 1000 + i)))" = ok ] || rc=1
				[ ! -d $hint ] ||
					[ "$($WRITE $sources_file $(((i + w) % 2)))" = ok ] || rc=1
				[ "$($WRITE $PG/target_nid -1)" = ok ] || rc=1
				[ "$($WRITE $PG/kmigrated_batch_nr 513)" = ERANGE ] || rc=1
				case $(cat $PG/freq_threshold) in [1-8]) ;; *) rc=1 ;; esac
				case $(cat $sources_file) in [01]) ;; *) rc=1 ;; esac
			done
			exit $rc
		) &
		pids="$pids $!"
	done
	for p in $pids; do
		wait "$p" || say "a writer failed"
	done
	good $sources_file 0 0
	is $PG/bytes_in_use 0
	result "eight writers at once"
}

ktap_set_plan 14
test_files
test_vmstat
test_range freq_threshold 1 15 1
test_range promote_window_ms 100 600000 3000
test_range promote_rate_limit_MBps 0 1048576 1024
test_range kmigrated_sleep_ms 10 10000 100
test_range kmigrated_batch_nr 1 512 512
test_target
test_sources
test_status
test_hintfaults
test_sysctl
test_not_root
test_writers
ktap_finished
