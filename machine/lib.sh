# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Common code of the test machine's scripts. Source it, do not run it:
#
#	set -euo pipefail
#	. "$(dirname "$0")/lib.sh"
#
# Rules that every script here keeps:
#  - stdout carries results only; all talk goes to stderr;
#  - a cached thing is built under a temporary name and renamed when complete,
#    so that whatever exists under its final name is whole;
#  - an error says what to do.

PG_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
PG_MACHINE=$PG_TOP/machine
PG_BUILD=${PGHOT_BUILD:-$PG_TOP/build}
PG_CACHE=${PGHOT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/pghot}
PG_SERIES=7.3		# the Linux release that the overlay is written for
PG_JOBS=${JOBS:-$(nproc)}
PG_LOG=$PG_BUILD/log
export PG_TOP PG_MACHINE PG_BUILD PG_CACHE PG_SERIES PG_JOBS PG_LOG
export LC_ALL=C.UTF-8
# What was given to our own make is not meant for the makes that we start.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL MAKEFILES
# Python's byte code has no place in a checkout.
export PYTHONDONTWRITEBYTECODE=1

say()	{ printf '%s\n' "pghot: $*" >&2; }
warn()	{ printf '%s\n' "pghot: warning: $*" >&2; }
die()	{ printf '%s\n' "pghot: error: $*" >&2; exit 1; }

# hms SECONDS: 75 -> 1m15s
hms() {
	if (($1 >= 60)); then
		printf '%dm%02ds' $(($1 / 60)) $(($1 % 60))
	else
		printf '%ds' "$1"
	fi
}

# A stable short name for a string, for directory names.
short_hash() { printf '%s' "$1" | sha256sum | cut -c1-8; }

# on_exit COMMAND: run COMMAND when the script ends, however it ends. Several
# may be given; the last runs first.
PG_AT_EXIT=()
on_exit() {
	PG_AT_EXIT+=("$1")
	# A signal must become an exit, or bash would skip the EXIT trap's
	# commands of a script that is killed by SIGTERM or SIGHUP.
	trap run_at_exit EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
}

run_at_exit() {
	local i
	set +e
	for ((i = ${#PG_AT_EXIT[@]} - 1; i >= 0; i--)); do
		eval "${PG_AT_EXIT[i]}"
	done
}

# need_space DIR MB WHAT
need_space() {
	local dir=$1 mb=$2 what=$3 free
	mkdir -p "$dir" 2>/dev/null || die "cannot create $dir: set XDG_CACHE_HOME (or PGHOT_CACHE) to a directory that you may write"
	free=$(df -Pm "$dir" | awk 'NR == 2 { print $4 }')
	((free >= mb)) && return
	die "$what needs $mb MB in $dir, but only $free MB are free there.
	Free some space ('make distclean' removes the cache of this project), or set
	XDG_CACHE_HOME to a directory on a larger file system."
}

# with_lock NAME COMMAND...: one at a time among all runs that share the cache.
# The lock vanishes with its holder, so an interrupted run leaves none behind.
PG_LOCKS=()
with_lock() {
	local file=$PG_CACHE/lock.$1 fd
	shift
	mkdir -p "$PG_CACHE"
	exec {fd}>>"$file"
	if ! flock -n "$fd"; then
		say "waiting for another run to finish (lock $file)"
		flock "$fd"
	fi
	PG_LOCKS+=("$fd")
	# No "|| rc=$?" here: it would switch set -e off inside the command.
	"$@"
	exec {fd}>&-
}

# ticker LABEL PROGRESS_COMMAND: prints "LABEL: elapsed, what PROGRESS_COMMAND
# says" again and again: on a terminal in place once a second, else a line
# every 30 s. Runs in the background of run_logged.
ticker() {
	local label=$1 progress=$2 parent=$3 start=$SECONDS every=30 last=0 now text fd
	# Its last sleep outlives the run, and must not keep the lock.
	for fd in "${PG_LOCKS[@]}"; do
		{ exec {fd}>&-; } 2>/dev/null
	done
	[ -t 2 ] && every=1
	while sleep 1 && kill -0 "$parent" 2>/dev/null; do
		now=$((SECONDS - start))
		((now - last >= every)) || continue
		last=$now
		text=$([ -z "$progress" ] || eval "$progress" 2>/dev/null) || text=
		text="pghot: $label: $(hms "$now")${text:+, $text}"
		if [ -t 2 ]; then
			printf '\r%s\033[K' "$text" >&2
		else
			printf '%s\n' "$text" >&2
		fi
	done
}

# run_logged LABEL LOGFILE PROGRESS_COMMAND COMMAND...
# Runs COMMAND with all its output in LOGFILE and a progress line on stderr; on
# failure shows the log's last 30 lines and returns COMMAND's status. COMMAND
# stays in the foreground, so that Ctrl-C reaches it; the ticker does not.
run_logged() {
	local label=$1 log=$2 progress=$3 rc=0 start=$SECONDS tick
	shift 3
	mkdir -p "$(dirname "$log")"
	say "$label ... (log: ${log#"$PWD"/})"
	ticker "$label" "$progress" "$BASHPID" </dev/null >/dev/null &
	tick=$!
	"$@" >"$log" 2>&1 </dev/null || rc=$?
	kill "$tick" 2>/dev/null || true
	wait "$tick" 2>/dev/null || true
	[ ! -t 2 ] || printf '\r\033[K' >&2
	if ((rc)); then
		printf '%s\n' "----- last lines of $log" >&2
		tail -n 30 "$log" >&2
		printf '%s\n' "-----" >&2
		say "$label: FAILED after $(hms $((SECONDS - start))), status $rc"
	else
		say "$label: done in $(hms $((SECONDS - start)))"
	fi
	return "$rc"
}

# need_packages PACKAGE...: installs the Debian packages that are missing.
need_packages() {
	local p have missing=()
	if ! command -v dpkg-query >/dev/null; then
		# Not Debian: nothing can be installed from here, and the
		# commands themselves will say what they miss.
		warn "no dpkg here: make sure that you have what these Debian packages bring: $*"
		return
	fi
	# One call for all: this runs before everything, and should not be felt.
	have=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' "$@" 2>/dev/null) || true
	for p; do
		[[ $'\n'$have == *$'\n'"$p ii"* ]] || missing+=("$p")
	done
	((${#missing[@]})) || return 0
	if ((EUID)); then
		die "these packages are missing: ${missing[*]}
	Install them and run this again:
	    sudo apt-get install --no-install-recommends ${missing[*]}"
	fi
	say "installing Debian packages: ${missing[*]}"
	with_lock apt install_packages "${missing[@]}"
}

install_packages() {
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300)
	local last="tail -n 1 '$PG_LOG/apt.log' | cut -c1-60"
	# The lists of a fresh machine are missing or old: refresh them only
	# when they do not do.
	if ! apt-get -s -q install --no-install-recommends "$@" >/dev/null 2>&1 ||
	   ! run_logged "apt-get install" "$PG_LOG/apt.log" "$last" \
			"${apt[@]}" install --no-install-recommends "$@"; then
		run_logged "apt-get update" "$PG_LOG/apt.log" "$last" "${apt[@]}" update ||
			die "apt-get update failed: is the network up? See $PG_LOG/apt.log"
		run_logged "apt-get install" "$PG_LOG/apt.log" "$last" \
				"${apt[@]}" install --no-install-recommends "$@" ||
			die "could not install: $*
	Mend that (see $PG_LOG/apt.log) or install them by hand, and run this again."
	fi
}

# What each kind of work needs. ccache is the one that is not strictly needed.
PG_PKG_SOURCE=(ca-certificates patch python3 rsync xz-utils)
PG_PKG_BUILD=(build-essential bc bison flex libelf-dev libssl-dev ccache cpio kmod "${PG_PKG_SOURCE[@]}")
PG_PKG_GUEST=(qemu-system-x86 busybox-static python3)
PG_PKG_DEB=(debhelper dpkg-dev rsync)
PG_PKG_SERIES=(git "${PG_PKG_SOURCE[@]}")
export PG_PKG_BUILD PG_PKG_GUEST PG_PKG_DEB PG_PKG_SERIES
