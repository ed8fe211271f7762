#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts.sh shellcheck|python|list: checks the project's scripts.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"
cd "$PG_TOP"

# All files of the checkout, those included that git does not know yet.
files() {
	if [ -e .git ]; then
		git -c safe.directory='*' ls-files -z --cached --others --exclude-standard
	else
		find . -path ./build -prune -o -type f -printf '%P\0'
	fi | while IFS= read -r -d '' f; do
		[ ! -f "$f" ] || printf '%s\n' "$f"
	done | sort -u
}

# Scripts tell by their first line what they are, or, as they are only sourced, by
# a line for shellcheck.
shell_scripts() {
	files | while read -r f; do
		if head -n 1 "$f" | grep -qaE '^#!.*[ /](ba|da|)sh( |$)' || [[ $f = *.sh ]] ||
		   head -n 5 "$f" | grep -qa '^# shellcheck shell='; then
			printf '%s\n' "$f"
		fi
	done
}

python_scripts() {
	files | while read -r f; do
		if [[ $f = *.py ]] || head -n 1 "$f" | grep -qaE '^#!.*[ /]python3?( |$)'; then
			printf '%s\n' "$f"
		fi
	done
}

case $1 in
list)
	shell_scripts
	python_scripts
	# Data that the unit tests read
	files | grep -E '^machine/bench/(rows|scenarios)/'
	;;
shellcheck)
	need_packages shellcheck
	mapfile -t list < <(shell_scripts)
	((${#list[@]} > 5)) || fail "found only ${#list[@]} shell scripts"
	printf '%s\n' "${list[@]}"
	# What a script sources is checked on its own (1091), and a dollar in single
	# quotes is for another shell, or for awk (2016).
	shellcheck --exclude=SC1091,SC2016 "${list[@]}"
	;;
python)
	need_packages pyflakes3
	mapfile -t list < <(python_scripts)
	((${#list[@]})) || fail "found no Python scripts"
	printf '%s\n' "${list[@]}"
	# Compiled to nowhere: byte code has no place in a checkout.
	for f in "${list[@]}"; do
		python3 - "$f" <<-'END'
			import sys
			with open(sys.argv[1], "rb") as f:
			    compile(f.read(), sys.argv[1], "exec")
		END
	done
	pyflakes3 "${list[@]}"
	# The bench's arithmetic
	python3 -m unittest discover -s machine/bench
	;;
esac
