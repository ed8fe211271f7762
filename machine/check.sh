#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh [--list] [--full] [--no-cache] [NAME...]
#
# All tests of the project, or those named; "config" names all of config-*. One
# line for each with its result, the whole output in build/check/NAME.log, and at
# the end the line "N passed, N failed, N skipped". KUnit's and the kselftests'
# cases count one by one. Exit status 0 only if nothing failed.
#
#   --full      the whole kernel at each commit of the series, not just the parts
#               that the series touches; two hours on two cores
#   --no-cache  run also those static checks that passed before with the same
#               input (tests in the guest always run)
#
# Three checks run at a time: one that builds, one in the guest, and one in the slow
# guest with the debug kernel.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Name, what it does it with (build, guest or debug), the input that decides its result
# (see key_of; "-": run it always), the checks that must come before it if they
# run, and the command in machine/check/. The order here is the order of the runs.
checks=(
	'shellcheck      build scripts  -              scripts.sh shellcheck'
	'python          build scripts  -              scripts.sh python'
	'series          build patches  -              patches.sh series'
	'checkpatch      build patches  series         patches.sh checkpatch'
	'kernel-doc      build tree     -              objects.sh kernel-doc'
	'kernel-small    build -        -              kernel.sh small'
	'kernel-debug    build -        -              kernel.sh debug'
	'sparse          build tree     -              objects.sh sparse'
	'warnings        build tree     -              objects.sh warnings'
	'coccicheck      build tree     -              objects.sh coccicheck'
	'docs            build tree     -              other.sh docs'
	'commits         build patches  -              commits.sh build'
	'config-off      build tree     -              configs.sh off'
	'same-code       build patches  commits        commits.sh same-code'
	'config-nobalancing build tree  -              configs.sh nobalancing'
	'config-nohotplug build tree    -              configs.sh nohotplug'
	'config-nosmp    build tree     -              configs.sh nosmp'
	'config-allno    build tree     -              configs.sh allno'
	'config-allmod   build tree     -              configs.sh allmod'
	'config-arm64    build tree     -              configs.sh arm64'
	'deb             build -        -              other.sh deb'
	'ksrc            build patches  -              ksrc.sh'
	'variables       guest -        kernel-small   variables.sh'
	'kunit           guest -        kernel-small   guest.sh kunit'
	'kselftest       guest -        kernel-small   guest.sh kselftest small'
	'kselftest-debug debug -        kernel-debug   guest.sh kselftest debug'
	'demo            guest -        kernel-small   other.sh demo'
	'bench           guest -        kernel-small   bench.sh'
	'deb-boot        guest -        deb            other.sh deb-boot'
	'model-ibs       guest -        -              model.sh ibs'
	'model-perf      guest -        kernel-small   model.sh perf'
	'model-memory    guest -        kernel-small   model.sh memory'
)

usage() { sed -n '4,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }

out=$PG_BUILD/check
export PG_CHECK_OUT=$out
export PG_CHECK_FULL=
no_cache='' list='' patterns=()
for arg; do
	case $arg in
	--list) list=1 ;;
	--full) PG_CHECK_FULL=1 ;;
	--no-cache) no_cache=1 ;;
	-*) usage ;;
	*) patterns+=("$arg") ;;
	esac
done

# ---------------------------------------------------------------------------
# Which checks run

declare -A lane input after command status
names=()
declare -A used=()
for line in "${checks[@]}"; do
	read -r name l i a c <<<"$line"
	chosen=
	((${#patterns[@]})) || chosen=1
	for p in "${patterns[@]}"; do
		if [[ $name = "$p" || ( $p = config && $name = config-* ) ]]; then
			chosen=1
			used[$p]=1
		fi
	done
	[ -n "$chosen" ] || continue
	names+=("$name")
	lane[$name]=$l input[$name]=$i after[$name]=$a command[$name]=$c
done
for p in "${patterns[@]}"; do
	[ -n "${used[$p]:-}" ] || die "there is no check '$p'; machine/check.sh --list shows all"
done
if [ -n "$list" ]; then
	printf '%s\n' "${names[@]}"
	exit
fi

# ---------------------------------------------------------------------------
# Results of earlier runs

# A check of files that did not change since it passed has nothing new to say.
# Its key covers those files, the check itself and the programs that it uses.
key_of() {
	local name=$1
	[ "${input[$name]}" != - ] || return 0
	(
		cd "$PG_TOP"
		echo "$name ${command[$name]} $PG_CHECK_FULL ${KSRC:-}"
		cat machine/check.sh machine/lib.sh machine/check/lib.sh "machine/check/${command[$name]%% *}"
		case ${input[$name]} in
		scripts) ;;
		*)
			python3 -c 'import sys; sys.path.insert(0, "machine"); import overlay; print(overlay.inputs_digest())'
			"$PG_MACHINE/source.sh" pristine
			cat machine/*.py machine/series.sh machine/source.sh machine/build.sh machine/config/* machine/check/*.list
			;;
		esac
		case ${input[$name]} in
		scripts) bash "$PG_MACHINE/check/scripts.sh" list | tr '\n' '\0' | xargs -0 cat ;;
		patches) find patches -type f -print0 | sort -z | xargs -0 cat ;;
		esac
		# What the check installs makes this differ: it costs one more run.
		for program in gcc aarch64-linux-gnu-gcc sparse spatch shellcheck pyflakes3 perl python3; do
			command -v "$program" || continue
			"$program" --version 2>&1 | head -n 3
		done
	) 2>/dev/null | sha256sum | cut -c1-32
}

passed_before() { [ -n "$1" ] && [ -z "$no_cache" ] && [ -e "$PG_CACHE/passed/$1" ]; }

remember() {
	[ -n "$1" ] || return 0
	mkdir -p "$PG_CACHE/passed"
	: >"$PG_CACHE/passed/$1"
	find "$PG_CACHE/passed" -type f -mtime +30 -delete
}

# ---------------------------------------------------------------------------
# Running

passed=0 failed=0 skipped=0
declare -A pid_of=() name_of=() began=() key=() running=()

report() {
	local name=$1 word=$2 note=${3:-}
	[ ! -t 2 ] || printf '\r\033[K' >&2
	printf '%s %s%s\n' "$word" "$name" "${note:+ $note}"
}

finish() {
	local name=$1 rc=$2 took=$((SECONDS - began[$1])) p=0 f=0 s=0 log=$out/$1.log note reason
	note="($(hms "$took"))"
	if [ -s "$out/$name.cases" ]; then
		read -r p f s <"$out/$name.cases"
		# The whole can fail although each case was fine.
		((rc == 0 || f > 0)) || f=1
		note+=" $p cases passed, $f failed, $s skipped"
	elif ((rc == 0)); then
		p=1
	elif ((rc == 4)); then
		s=1
	else
		f=1
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	if ((f)); then
		status[$name]=failed
		report "$name" 'not ok' "$note, log: ${log#"$PWD"/}"
		tail -n 25 "$log" | sed 's/^/    /'
	elif ((p)); then
		status[$name]=passed
		report "$name" ok "$note"
		# Not if someone edited in the meantime.
		[ "${key[$name]}" != "$(key_of "$name")" ] || remember "${key[$name]}"
	else
		status[$name]=skipped
		reason=$(sed -n 's/^SKIP: *//p' "$log" | tail -n 1)
		report "$name" SKIP "$note${reason:+ $reason}"
	fi
}

begin() {
	local name=$1 log=$out/$1.log words
	rm -f "$out/$name.cases"
	key[$name]=$(key_of "$name")
	began[$name]=$SECONDS
	if passed_before "${key[$name]}"; then
		status[$name]=passed
		passed=$((passed + 1))
		report "$name" ok '(cached)'
		return
	fi
	read -ra words <<<"${command[$name]}"
	if [ ! -f "$PG_MACHINE/check/${words[0]}" ]; then
		echo "machine/check/${words[0]} is missing" >"$log"
		finish "$name" 1
		return
	fi
	# A session of its own, so that all of it can be stopped.
	PG_CHECK_NAME=$name setsid bash "$PG_MACHINE/check/${words[0]}" "${words[@]:1}" >"$log" 2>&1 </dev/null &
	pid_of[$name]=$!
	name_of[$!]=$name
	running[${lane[$name]}]=$name
}

stop_all() {
	local name
	for name in "${running[@]}"; do
		[ -z "$name" ] || kill -TERM -- "-${pid_of[$name]}" 2>/dev/null || true
	done
}
on_exit stop_all

# Is NAME's turn now? Says no for ever if something that it needs failed.
ready() {
	local name=$1 need=${after[$1]}
	[ "$need" != - ] && [ -n "${lane[$need]:-}" ] || return 0
	case ${status[$need]:-} in
	passed) return 0 ;;
	'') return 1 ;;
	esac
	began[$name]=$SECONDS
	rm -f "$out/$name.cases"
	key[$name]=
	echo "not run, as $need did not pass" >"$out/$name.log"
	finish "$name" 1
	return 1
}

# Starts what can start; true if something is running or has ended just now.
start_some() {
	local l name
	for l in build guest debug; do
		[ -z "${running[$l]:-}" ] || continue
		for name in "${names[@]}"; do
			if [ "${lane[$name]}" != "$l" ] || [ -n "${status[$name]:-}" ] || ! ready "$name"; then
				continue
			fi
			begin "$name"
			[ -z "${running[$l]:-}" ] || break
		done
	done
}

progress() {
	local l name text='' last
	for l in build guest debug; do
		name=${running[$l]:-}
		[ -n "$name" ] || continue
		last=$(tail -n 1 "$out/$name.log" 2>/dev/null | tr -d '\r' | cut -c1-60)
		text+="${text:+ | }$name $(hms $((SECONDS - began[$name]))): $last"
	done
	[ -n "$text" ] || return 0
	if [ -t 2 ]; then
		printf '\r%.*s\033[K' "$(($(tput cols 2>/dev/null || echo 80) - 1))" "$text" >&2
	else
		printf '%s\n' "  ... $text" >&2
	fi
}

mkdir -p "$out"
every=60 last=$SECONDS
[ ! -t 2 ] || every=1
say "${#names[@]} checks; logs in ${out#"$PWD"/}/"
while :; do
	start_some
	((${#name_of[@]})) || break
	sleep 1 &
	rc=0
	wait -n -p done_pid "${!name_of[@]}" $! || rc=$?
	name=${name_of[$done_pid]:-}
	if [ -n "$name" ]; then
		unset "name_of[$done_pid]"
		running[${lane[$name]}]=
		finish "$name" "$rc"
	fi
	if ((SECONDS - last >= every)); then
		last=$SECONDS
		progress
	fi
done
say "took $(hms $SECONDS)"
echo "$passed passed, $failed failed, $skipped skipped" | tee "$out/summary"
((failed == 0))
