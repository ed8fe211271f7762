#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# variables.sh: what a person gives to make run arrives as it was given, the guest's
# exit status and files come back, and what makes no sense is refused with a message
# that names it, before anything boots.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/pghot-run.XXXXXX")
on_exit "rm -rf '$tmp'"
passed=0 failed=0
# What this check was called with is not meant for what it tests.
unset VARIANT CONFIG REFETCH FILES MEM_MB CPUS APPEND HMAT LATENCY HOTPLUG_MB HOSTTOOLS TIMEOUT QEMU QEMU_EXTRA OUT CMD \
	MACHINE MODEL TRUTH QUANTUM
# So that no build is part of what follows.
"$PG_MACHINE/build.sh" small >/dev/null

result() {
	local name=$1 bad=$2
	if [ -n "$bad" ]; then
		echo "not ok $name:$bad"
		sed 's/^/    /' "$tmp/err"
		failed=$((failed + 1))
	else
		echo "ok $name"
		passed=$((passed + 1))
	fi
}

# refused NAME PATTERN COMMAND...: fails without a guest, and says why.
refused() {
	local name=$1 pattern=$2 rc=0 bad=''
	shift 2
	env "$@" >"$tmp/stdout" 2>"$tmp/err" </dev/null || rc=$?
	((rc)) || bad+=" it succeeded;"
	grep -q -- "$pattern" "$tmp/err" || bad+=" no message like '$pattern';"
	! grep -q '^pghot: guest: ended' "$tmp/err" || bad+=" a guest ran;"
	result "$name" "$bad"
}

run=$PG_MACHINE/run.sh
refused "no CMD" CMD "$run"
refused "MEM_MB that is text" MEM_MB CMD=true MEM_MB=much "$run"
refused "MEM_MB with two sizes" MEM_MB CMD=true MEM_MB=512,512 "$run"
refused "MEM_MB with a negative size" MEM_MB CMD=true MEM_MB=512,-512,512 "$run"
refused "MEM_MB that is too small" MEM_MB CMD=true MEM_MB=512,512,1 "$run"
refused "MEM_MB that is too large" MEM_MB CMD=true MEM_MB=512,512,99999999 "$run"
refused "CPUS=0" CPUS CMD=true CPUS=0 "$run"
refused "CPUS that is text" CPUS CMD=true CPUS=all "$run"
refused "CPUS=1000" CPUS CMD=true CPUS=1000 "$run"
refused "LATENCY with one number" LATENCY CMD=true LATENCY=90 "$run"
refused "a MACHINE that there is not" MACHINE CMD=true MACHINE=abacus "$run"
refused "TIMEOUT that is text" timeout CMD=true TIMEOUT=soon "$run"
refused "FILES that are not there" 'FILES.*no-such-file' CMD=true FILES="$tmp/no-such-file" "$run"
refused "make shell without a terminal" 'needs a terminal' "$PG_MACHINE/guest.sh" --shell --
# What is wrong is said before what takes minutes.
refused "MEM_MB before the build" MEM_MB CMD=true MEM_MB=much KSRC="$tmp/no-tree" "$run"
refused "CPUS before the build" CPUS CMD=true CPUS=all KSRC="$tmp/no-tree" "$run"
refused "LATENCY before the build" LATENCY CMD=true LATENCY=90 KSRC="$tmp/no-tree" "$run"
refused "FILES before the build" 'FILES.*no-such-file' CMD=true FILES="$tmp/no-such-file" KSRC="$tmp/no-tree" "$run"
# The guest looks for this in its kernel's log, where the parameters stand too.
refused "a clock that is wrong at each boot" 'clock wrong 3 times' CMD=true \
	APPEND='note="tsc: PIT calibration deviates"' "$run"
refused "a variant that there is not" "no-such-variant" CMD=true VARIANT=no-such-variant "$run"
refused "CONFIG that is not there" 'CONFIG=.*no-such-config' CONFIG="$tmp/no-such-config" "$PG_MACHINE/deb.sh"

# in_guest NAME STATUS OUTPUT VARIABLE=VALUE...: the status and the output, exactly.
in_guest() {
	local name=$1 want=$2 text=$3 rc=0 bad=''
	shift 3
	env "$@" OUT="$tmp/out" "$run" >"$tmp/stdout" 2>"$tmp/err" </dev/null || rc=$?
	[ "$rc" = "$want" ] || bad+=" status is $rc, not $want;"
	if [ "$(cat "$tmp/stdout")" != "$text" ]; then
		bad+=" the output is '$(head -c 300 "$tmp/stdout")';"
	fi
	result "$name" "$bad"
}

in_guest "exit status 0 and output" 0 hello CMD='echo hello'
in_guest "exit status 7" 7 '' CMD='exit 7'
in_guest "exit status 255" 255 '' CMD='exit 255'
in_guest "quotes, dollars and lines in CMD" 0 "a  b \"c\" \$HOME /root 2" \
	CMD='x="a  b"; printf "%s \"c\" %s %s " "$x" \$HOME "$HOME"
echo 2'
in_guest "a time that runs out" 124 started CMD='echo started; sleep 1000' TIMEOUT=60
in_guest "a guest that panics" 125 '' CMD='echo c >/proc/sysrq-trigger; sleep 100'

printf '#!/bin/sh\necho "script says $1"\n' >"$tmp/script.sh"
chmod 755 "$tmp/script.sh"
mkdir "$tmp/dir"
echo inside >"$tmp/dir/data"
head -c 300000 /dev/urandom >"$tmp/blob"
in_guest "FILES: a script, a directory, a large file" 0 "script says hi
inside" FILES="$tmp/script.sh $tmp/dir $tmp/blob" \
	CMD='mkdir -p out && cp blob out/back && ./script.sh hi && cat dir/data'
bad=
cmp -s "$tmp/blob" "$tmp/out/back" || bad=" the file is not what was sent;"
result "a file that comes back" "$bad"

# A program with libraries: any that is not static.
in_guest "FILES: a program with its libraries" 0 "$(env printf '%05d' 42)" \
	FILES="$(type -P printf)" CMD='./printf %05d 42'

in_guest "MEM_MB, CPUS and APPEND" 0 "1 yes 0,2" MEM_MB=256,128,384 CPUS=1 APPEND='some.parameter=yes' \
	CMD='n=$(cat /sys/devices/system/node/has_memory); m() { awk "/MemTotal/ { print int(\$4 / 1024) }" /sys/devices/system/node/node$1/meminfo; }
	[ "$(m 2)" -gt "$(m 0)" ] && [ "$(m 0)" -gt "$(m 1)" ] || echo "memory: $(m 0) $(m 1) $(m 2)"
	echo "$(grep -c ^processor /proc/cpuinfo) $(tr " " "\n" </proc/cmdline | sed -n "s/^some.parameter=//p") ${n%%-*},${n##*-}"'

# make passes it on, though with an exit status of its own.
rc=0
make -C "$PG_TOP" run CMD='echo "it'\''s $HOME"; exit 3' OUT="$tmp/out" >"$tmp/stdout" 2>"$tmp/err" </dev/null || rc=$?
bad=
grep -qx "it's /root" "$tmp/stdout" || bad+=" the output is '$(cat "$tmp/stdout")';"
grep -q 'status 3' "$tmp/err" || bad+=" the status 3 is not told;"
((rc)) || bad+=" make succeeded;"
result "make run" "$bad"

echo "$passed $failed 0" >"$PG_CHECK_CASES"
((failed == 0))
