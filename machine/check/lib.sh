# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Common code of the checks; see machine/check.sh. A check is a script that exits
# with 0 if it passed and with 4 if it had to be skipped (with a line "SKIP: why").
# Its output is its log. A check of many cases writes three numbers (passed,
# failed, skipped) into the file $PG_CHECK_CASES.

# Without this, shellcheck takes the file for itself, and never ends.
# shellcheck source=/dev/null
. "$PG_MACHINE/lib.sh"

PG_CHECK_OUT=${PG_CHECK_OUT:-$PG_BUILD/check}
PG_CHECK_FULL=${PG_CHECK_FULL:-}
PG_CHECK_CASES=$PG_CHECK_OUT/${PG_CHECK_NAME:-check}.cases
mkdir -p "$PG_CHECK_OUT"
export PG_CHECK_CASES PG_CHECK_FULL

fail()	{ printf '%s\n' "FAILED: $*" >&2; exit 1; }
skip()	{ printf '%s\n' "SKIP: $*" >&2; exit 4; }

python_overlay() {
	python3 -c "import sys; sys.path.insert(0, '$PG_MACHINE'); import overlay; $1"
}

# The files that the project adds to the kernel, and those that its patches change.
new_files() { python_overlay 'print("\n".join(overlay.overlay_paths()))'; }
touched_files() { python_overlay 'print("\n".join(sorted({f for p in overlay.load_series() for f in p.files})))'; }

# Objects of the changed C files. Files that others include (kernel/sched has such)
# would have none, so ask the tree's Makefiles by the directories instead: those
# are what gets built, see touched_targets.
touched_objects() { touched_files | sed -n 's/\.c$/.o/p'; }

# in_configuration TREE BUILDDIR: of the objects on stdin, those that its Makefiles build.
# make would compile the others as well, which need not work.
in_configuration() {
	local tree=$1 dir=$2 object base symbol
	while read -r object; do
		base=${object##*/}
		symbol=$(sed -nE "s/^obj-\\$\((CONFIG_[A-Z0-9_]+)\).*[[:space:]=]${base/./[.]}([[:space:]].*)?\$/\1/p" \
			"$tree/${object%/*}/Makefile" 2>/dev/null | head -n 1)
		if [ -z "$symbol" ] || grep -q "^$symbol=[ym]" "$dir/.config"; then
			printf '%s\n' "$object"
		fi
	done
}

# What to build to see every file that the series touches: whole directories where
# it changes anything in mm or the scheduler, as headers matter there as well.
touched_targets() {
	printf '%s\n' mm/ kernel/sched/
	touched_objects | grep -vE '^(mm|kernel/sched|tools)/' || true
}

# Makes the series, if build/series is not what the repository holds now.
current_series() {
	local key
	key=$(python_overlay 'print(overlay.inputs_digest())')$(sha256sum "$PG_TOP"/patches/* "$PG_MACHINE"/series.*)
	if [ "$(cat "$PG_CHECK_OUT/series.key" 2>/dev/null)" != "$key" ] || [ ! -d "$PG_BUILD/series/mail" ]; then
		rm -f "$PG_CHECK_OUT/series.key"
		"$PG_MACHINE/series.sh"
		printf '%s\n' "$key" >"$PG_CHECK_OUT/series.key"
	fi
}

# kernel_make TREE BUILDDIR ARGUMENT...: the kernel's make, with the compiler's cache
# that build.sh uses and with build.sh's fixed names, so that objects are shared.
kernel_make() {
	local tree=$1 dir=$2 cc=${CC:-gcc} cross=()
	shift 2
	if [ "${ARCH:-}" = arm64 ]; then
		cross=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
		cc=aarch64-linux-gnu-gcc
	fi
	if command -v ccache >/dev/null; then
		export CCACHE_DIR=${CCACHE_DIR:-$PG_CACHE/ccache}
		export CCACHE_BASEDIR=$tree CCACHE_NOHASHDIR=1
		export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-5G}
		export CCACHE_SLOPPINESS=time_macros CCACHE_COMPILERCHECK=content
		cc="ccache $cc"
	fi
	env -u FILES -u OUT -u CONFIG -u VARIANT -u CMD -u CPUS -u APPEND -u HMAT -u LATENCY -u QEMU \
		-u JOBS -u TIMEOUT -u ARCH \
		make -C "$tree" O="$dir" -j"$PG_JOBS" KBUILD_BUILD_TIMESTAMP='2026-01-01' KBUILD_BUILD_USER=pghot \
		KBUILD_BUILD_HOST=pghot KBUILD_BUILD_VERSION=1 "${cross[@]}" CC="$cc" "$@"
}

# small_config TREE BUILDDIR: the configuration "small" for any tree, also one that
# lacks some of its options.
small_config() {
	local tree=$1 dir=$2 key
	key=$(cat "$PG_MACHINE/config/small.config" "$PG_MACHINE/check/lib.sh" | sha256sum)
	[ "$(cat "$dir/.pghot-config" 2>/dev/null)" != "$key" ] || return 0
	mkdir -p "$dir"
	kernel_make "$tree" "$dir" tinyconfig
	merge_config "$tree" "$dir" "$PG_MACHINE/config/small.config"
	printf '%s\n' "$key" >"$dir/.pghot-config"
}

# merge_config TREE BUILDDIR FRAGMENT...: adds fragments to .config.
merge_config() {
	local tree=$1 dir=$2
	shift 2
	mv "$dir/.config" "$dir/.config.base"
	(cd "$tree" && KCONFIG_CONFIG=$dir/.config scripts/kconfig/merge_config.sh -m -Q -O "$dir" "$dir/.config.base" "$@")
	kernel_make "$tree" "$dir" olddefconfig
}

# warnings_in LOG: the warnings and errors about files that the project adds or
# changes. The kernel has some of its own, depending on compiler and configuration.
warnings_in() {
	local ours
	ours=$({ new_files; touched_files; } | grep '\.[chS]$' | sed 's/[.]/\\./g' | paste -sd '|')
	grep -E '(warning|error|WARNING|ERROR): ' "$1" | grep -E "(^|[/ ])($ours):|pghot" | sort -u || true
}

# without_warnings LOG DIR COMMAND...: runs a build with its output in LOG. A warning
# about the project's files is as bad as an error. The objects of a build with warnings are removed, as the
# compiler says nothing when it is not run again.
without_warnings() {
	local log=$1 dir=$2 rc=0 found start
	shift 2
	start=$(mktemp "${TMPDIR:-/tmp}/pghot-start.XXXXXX")
	echo "building in $(basename "$dir"), log: $log"
	"$@" >"$log" 2>&1 || rc=$?
	found=$(warnings_in "$log")
	if ((rc)) || [ -n "$found" ]; then
		[ ! -d "$dir" ] || find "$dir" -name '*.o' -newer "$start" -delete
		rm -f "$start" "$dir/.pghot-stamp"
		tail -n 20 "$log"
		[ -z "$found" ] || printf '%s\n' "warnings:" "$found"
		return 1
	fi
	rm -f "$start"
}
