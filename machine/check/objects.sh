#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# objects.sh sparse|warnings|kernel-doc|coccicheck: analyses the new kernel code.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

tree=$("$PG_MACHINE/source.sh" tree)
# A directory of its own: W=1 changes the options of each compilation.
dir=$tree/.build-check

# Where new code stands, as make's targets and as a pattern for their messages.
mapfile -t dirs < <(new_files | grep '\.c$' | grep -v '^tools/' | xargs -n 1 dirname | sort -u)
pattern='(^|/)('$(new_files | grep '\.[ch]$' | grep -v '^tools/' | sed 's/[.]/\\./g' | paste -sd '|')'):'

compile() {
	small_config "$tree" "$dir"
	kernel_make "$tree" "$dir" prepare
	kernel_make "$tree" "$dir" "$@" "${dirs[@]/%//}"
}

verdict() {
	local log=$1 found
	found=$(warnings_in "$log" | grep -E "$pattern" || true)
	if [ -n "$found" ]; then
		printf '%s\n' "$found"
		fail "$(wc -l <<<"$found") messages"
	fi
}

# Each file must really have been looked at.
seen() {
	local log=$1 word=$2 f bad=0
	while read -r f; do
		grep -qE "^  $word +(\.\./)?${f%.c}\.[co]\$" "$log" || { echo "$f was not looked at"; bad=1; }
	done < <(new_files | grep '\.c$' | grep -v '^tools/')
	((bad == 0)) || fail "the configuration leaves out files"
}

case $1 in
sparse)
	need_packages "${PG_PKG_BUILD[@]}" sparse
	log=$PG_CHECK_OUT/sparse.raw
	# The sparse of Debian 12 does not know __typeof_unqual__, without which the
	# kernel's Makefile refuses it. The qualifiers that are left do not matter to it.
	sparse=(sparse -D__typeof_unqual__=__typeof__)
	# That it finds anything at all:
	printf '%s\n' 'int get(int __attribute__((noderef, address_space(1))) *p);' \
		'int get(int __attribute__((noderef, address_space(1))) *p) { return *p; }' |
		"${sparse[@]}" - 2>&1 | grep 'dereference of noderef' || fail "sparse does not work"
	compile C=2 CHECK="${sparse[*]}" CF='-D__CHECK_ENDIAN__' >"$log" 2>&1 || { tail -n 30 "$log"; fail "it does not compile"; }
	seen "$log" CHECK
	verdict "$log"
	;;
warnings)
	need_packages "${PG_PKG_BUILD[@]}"
	log=$PG_CHECK_OUT/warnings.raw
	# Compiled anew, or nothing would be printed.
	for d in "${dirs[@]}"; do
		find "$dir/$d" -maxdepth 1 -name '*.o' -delete 2>/dev/null || true
	done
	compile W=1 >"$log" 2>&1 || { tail -n 30 "$log"; fail "it does not compile"; }
	seen "$log" CC
	verdict "$log"
	;;
kernel-doc)
	cd "$tree"
	mapfile -t files < <(new_files | grep '\.[ch]$' | grep -v '^tools/')
	tool=scripts/kernel-doc
	[ -e "$tool" ] || tool=tools/docs/kernel-doc
	python3 "$tool" -none -Wall -Werror "${files[@]}"
	# The public header is what the documentation is made of.
	for f in "${files[@]}"; do
		[[ $f = include/linux/* ]] || continue
		n=$(python3 "$tool" -rst "$f" | grep -c '^\.\. c:' || true)
		echo "$f: $n entries"
		((n)) || fail "$f has no kernel-doc"
	done
	;;
coccicheck)
	# Some rules are written in OCaml.
	need_packages coccinelle ocaml-nox
	mapfile -t files < <(new_files | grep '\.c$')
	version=$(spatch --version | awk 'NR == 1 { print $3 }')
	cd "$tree"
	one() {
		local rule=$1 need options text line
		shift
		need=$(sed -n 's/^\/\/ *Requires: *//p' "$rule")
		if [ -n "$need" ] && ! printf '%s\n' "$need" "$PG_SPATCH" | sort -CV; then
			echo "left out: $rule needs spatch $need, this is $PG_SPATCH"
			return
		fi
		read -ra options <<<"$(sed -n 's/^\/\/ *Options: *//p' "$rule" | tr '\n' ' ')"
		# spatch's own remarks are no findings, but its failures are.
		if ! text=$(spatch -D report --no-show-diff --very-quiet --cocci-file "$rule" "${options[@]}" \
				-I include -I mm/pghot "$@" 2>&1); then
			echo "MESSAGE: $rule failed: $text"
		elif [ -n "$text" ]; then
			while read -r line; do
				# About the rule, not about the code.
				[[ $line != warning:\ line*"be a metavariable?" ]] || continue
				echo "MESSAGE: ${rule#scripts/coccinelle/}: $line"
			done <<<"$text"
		fi
	}
	export -f one
	export PG_SPATCH=$version
	log=$PG_CHECK_OUT/coccicheck.raw
	grep -rlE '^virtual +report' --include='*.cocci' scripts/coccinelle | sort |
		xargs -P 2 -I {} bash -c 'one "$@"' sh {} "${files[@]}" >"$log"
	grep -v '^MESSAGE' "$log" || true
	rules=$(grep -rlE '^virtual +report' --include='*.cocci' scripts/coccinelle | wc -l)
	if grep '^MESSAGE' "$log"; then
		fail "coccinelle has something to say"
	fi
	echo "$rules rules, ${#files[@]} files"
	;;
esac
