#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ksrc.sh: a person's own kernel tree (KSRC): what goes wrong is said clearly, and
# the tree is never modified. The tree here is one with only the files that the
# patches touch, which is all that laying it out looks at.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

src=$("$PG_MACHINE/source.sh" pristine)/linux
tmp=$(mktemp -d "${TMPDIR:-/tmp}/pghot-ksrc.XXXXXX")
on_exit "rm -rf '$tmp'"
# A cache of its own: it is full of broken things.
export PGHOT_CACHE=$tmp/cache
passed=0 failed=0

fresh_tree() {
	rm -rf "$tmp/linux"
	mkdir -p "$tmp/linux"
	(cd "$src" && { touched_files; printf '%s\n' Makefile mm/memory-tiers.c MAINTAINERS; } | sort -u |
		while read -r f; do [ ! -f "$f" ] || cp --parents "$f" "$tmp/linux"; done)
}

digest() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum && find . | sort) | sha256sum; }

# expect NAME STATUS KSRC PATTERN...: source.sh ends with STATUS and its messages
# have all the patterns.
expect() {
	local name=$1 want=$2 ksrc=$3 rc=0 p bad='' before after
	shift 3
	before=$([ ! -d "$ksrc" ] || digest "$ksrc")
	KSRC=$ksrc "$PG_MACHINE/source.sh" tree >"$tmp/out" 2>"$tmp/err" || rc=$?
	after=$([ ! -d "$ksrc" ] || digest "$ksrc")
	[ "$rc" = "$want" ] || bad+=" status is $rc, not $want;"
	[ "$before" = "$after" ] || bad+=" the tree was modified;"
	for p; do
		grep -qE -- "$p" "$tmp/err" || bad+=" no message like '$p';"
	done
	if [ -n "$bad" ]; then
		echo "not ok $name:$bad"
		sed 's/^/    /' "$tmp/err"
		failed=$((failed + 1))
	else
		echo "ok $name"
		passed=$((passed + 1))
	fi
}

# The first patch that changes a C file, that file, and a line of its first hunk.
read -r patch file < <(python_overlay '
for p in overlay.load_series():
    for f in p.files:
        if f.endswith(".c"):
            print(p.name, f)
            raise SystemExit')
[ -n "$patch" ] || fail "no patch changes a C file"
context=$(awk -v f="$file" '
	$1 == "+++" { here = $2 == "b/" f; next }
	here && /^-[^-]/ { print substr($0, 2); exit }' "$PG_TOP/patches/$patch")
[ -n "$context" ] || fail "$patch removes nothing from $file"

fresh_tree
expect "a tree on which all patches apply" 0 "$tmp/linux"

# What a link leads to is no less a person's own than the tree.
fresh_tree
rm -rf "$tmp/elsewhere"
mv "$tmp/linux/mm" "$tmp/elsewhere"
ln -s "$tmp/elsewhere" "$tmp/linux/mm"
before=$(digest "$tmp/elsewhere")
expect "a tree with a directory that is a link" 0 "$tmp/linux"
if [ "$before" = "$(digest "$tmp/elsewhere")" ]; then
	echo "ok what the link leads to is as it was"
	passed=$((passed + 1))
else
	echo "not ok what the link leads to was modified"
	failed=$((failed + 1))
fi

fresh_tree
python3 - "$tmp/linux/$file" "$context" <<'END'
import sys
path, line = sys.argv[1:]
with open(path) as f:
    text = f.read()
new = text.replace(line + "\n", "\tsomeone_changed_this();\n")
assert new != text
with open(path, "w") as f:
    f.write(new)
END
expect "a patch that does not apply: its name, the file, the hunk" 1 "$tmp/linux" \
	"error: patches/$patch does not apply" "$file: hunk [0-9]+ does not apply" '^\s+@@ -[0-9]+'

fresh_tree
rm "$tmp/linux/$file"
expect "a file that is not there" 1 "$tmp/linux" "error: patches/$patch .*$file"

# A blank line before the hunk's first line of context moves it, one in the
# context's outermost line asks for fuzz.
fresh_tree
sed -i '1i /* one line more */' "$tmp/linux/$file"
expect "lines that moved" 0 "$tmp/linux"

fresh_tree
python3 - "$PG_TOP/patches/$patch" "$tmp/linux/$file" "$file" <<'END'
import re, sys
patch, path, name = sys.argv[1:]
hunk = re.search(r"^\+\+\+ b/%s\n@@[^\n]*\n ([^\n]*)\n" % re.escape(name), open(patch).read(), re.M)
with open(path) as f:
    text = f.read()
i = text.index(hunk[1] + "\n")
# Only the one that the hunk means: the place is in its head.
start = int(re.search(r"@@ -(\d+)", hunk[0])[1])
lines = text.split("\n")
assert lines[start - 1] == hunk[1]
lines[start - 1] += " /* changed */"
with open(path, "w") as f:
    f.write("\n".join(lines))
END
expect "fuzz is reported" 0 "$tmp/linux" "$patch: $file: hunk [0-9]+ applied with fuzz"

fresh_tree
sed -i 's/^PATCHLEVEL = .*/PATCHLEVEL = 1/' "$tmp/linux/Makefile"
expect "another release" 0 "$tmp/linux" 'warning: .* is Linux 7\.1'

mkdir -p "$tmp/empty"
expect "a directory without Linux" 1 "$tmp/empty" 'error: .*no Linux source tree'
expect "no directory at all" 1 "$tmp/nowhere" 'error: KSRC.*(not a|no such) directory'

echo "$passed $failed 0" >"$PG_CHECK_CASES"
((failed == 0))
