#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# docs-check.sh [TREE]: checks the documents, in the patched tree or in TREE.
#
#  - the new pages, and those that the patches change, build without a warning;
#  - the ABI file is valid, and the kernel-doc comments are;
#  - each file in sysfs, counter, tracepoint and sysctl that the code makes is
#    described, and no file is described that it does not make;
#  - each file that the documents name is there.
#
# Output: build/docs/html, to be looked at with a browser.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages python3-sphinx python3-yaml

tree=${1:-}
[ -n "$tree" ] || tree=$("$PG_MACHINE/source.sh" tree)
tree=$(cd "$tree" && pwd -P)
out=$PG_BUILD/docs
log=$PG_LOG/docs.log
bad=0

fail() { say "docs: $*"; bad=1; }

admin=Documentation/admin-guide/mm/pghot.rst
design=Documentation/mm/pghot.rst
abi=Documentation/ABI/testing/sysfs-kernel-mm-pghot
pages=("$admin" "$design")
# Pages that a patch changes. kernel-parameters.txt is included by the .rst.
changed=(Documentation/mm/index.rst Documentation/admin-guide/mm/index.rst
	 Documentation/admin-guide/sysctl/vm.rst Documentation/admin-guide/sysctl/kernel.rst
	 Documentation/admin-guide/kernel-parameters.rst
	 Documentation/admin-guide/kernel-parameters.txt)

# ---------------------------------------------------------------------------
# Build. The whole documentation takes half an hour: a source directory with the
# directories of our pages and what these refer to, and an index over them.

# The kernel's extensions look for this name, and for MAINTAINERS beside it.
src=$out/src/Documentation
rm -rf "$out/src"
mkdir -p "$src/admin-guide/sysctl" "$src/core-api" "$out/src/ABI/testing"
cp "$tree/MAINTAINERS" "$out/src/"
cp -r "$tree/Documentation/mm" "$src/"
cp -r "$tree/Documentation/admin-guide/mm" "$src/admin-guide/"
cp "$tree"/Documentation/admin-guide/sysctl/{vm,kernel}.rst "$src/admin-guide/sysctl/"
cp "$tree"/Documentation/admin-guide/kernel-parameters.{rst,txt} "$src/admin-guide/"
cp "$tree/Documentation/core-api/memory-allocation.rst" "$src/core-api/"
cp "$tree/$abi" "$out/src/ABI/testing/"
{
	printf '%s\n' ABI === ''
	"$tree/tools/docs/get_abi.py" --dir "$out/src/ABI" rest
} >"$src/abi.rst"
{
	printf '%s\n' Documents ========= '' '.. toctree::' ''
	printf '   %s\n' mm/index admin-guide/mm/index admin-guide/sysctl/{vm,kernel} \
		admin-guide/kernel-parameters core-api/memory-allocation abi
} >"$src/index.rst"

mkdir -p "$PG_LOG"
: >"$out/warnings"
if ! srctree=$tree run_logged "building the documents" "$log" "" \
		sphinx-build -q -E -j "$PG_JOBS" -c "$tree/Documentation" -b html -D kerneldoc_srctree="$tree" -d "$out/doctrees" \
		-w "$out/warnings" "$src" "$out/html"; then
	fail "sphinx-build failed, see $log"
fi
# Other pages refer to what is not built here. What counts is ours: what stands in
# our pages or in those that the patches change, and what names us.
ours=$(printf '%s\n' "${pages[@]}" "${changed[@]}" Documentation/abi.rst)
while IFS= read -r line; do
	# Sphinx says where its input lies here.
	line=${line//"$out/src/"/}
	line=${line//"$tree/"/}
	case $line in
	*pghot*) fail "$line" ;;
	*) ! grep -qxF -- "${line%%:*}" <<<"$ours" || fail "$line" ;;
	esac
done <"$out/warnings"
for page in mm/pghot admin-guide/mm/pghot; do
	[ -s "$out/html/$page.html" ] || fail "$page.html was not built"
	grep -qs 'href="pghot.html"' "$out/html/${page%/*}/index.html" ||
		fail "${page%/*}/index.rst does not list pghot"
done

# ---------------------------------------------------------------------------
# The ABI file and the comments

text=$(cd "$tree" && python3 tools/docs/get_abi.py --dir Documentation/ABI validate 2>&1) || fail "get_abi.py failed"
text=$(grep pghot <<<"$text") && fail "$text"
cd "$tree"
find include/linux/pghot.h include/trace/events/pghot.h mm/pghot -name '*.[ch]' -print0 | sort -z |
	xargs -0 tools/docs/kernel-doc -none -Werror -Wall >"$out/kernel-doc.log" 2>&1 ||
	fail "kernel-doc: $(cat "$out/kernel-doc.log")"

# ---------------------------------------------------------------------------
# Does the text say what the code does?

# same WHAT HAVE WANT: lists of names, one a line
same() {
	local diff
	diff=$(diff <(sort -u <<<"$2") <(sort -u <<<"$3")) ||
		fail "$1: '<' is in the document only, '>' in the code only:"$'\n'"$(grep '^[<>]' <<<"$diff")"
}

# attribute_names FILE: of struct kobj_attribute and of the macros around it
attribute_names() {
	sed -nE 's/.*__ATTR_(RW|RO)\(([a-z0-9_]+)\).*/\2/p
		s/^PGHOT_(KNOB|NODE)_ATTR\(([A-Za-z_]+),.*/\2/p
		s/^PGHOT_LOOK_ATTR\(([a-z_]+)\).*/look_\1/p' "$1" | grep -vxE '(look_)?_name'
}

documented=$(sed -n 's,^What:[[:space:]]*/sys/kernel/mm/pghot/,,p' "$abi" | grep -v '/$' | sed '/^$/d')
made=$(
	attribute_names mm/pghot/sysfs.c | sed 's,^enabled$,sources/<source>/enabled,'
	attribute_names mm/pghot/sysfs-node.c | sed 's,^,nodes/node<N>/,'
	attribute_names mm/pghot/hintfault.c | sed 's,^,sources/hintfaults/,'
	attribute_names mm/pghot/hwhint-sysfs.c | sed 's,^,sources/hwhints/,'
)
same "$abi" "$documented" "$made"
while IFS= read -r name; do
	grep -qE "^$name( |\$)" "$admin" || fail "$admin does not describe the file $name"
done < <(sed 's,.*/,,; s,^skipped_.*,skipped_REASON,' <<<"$made" | sort -u)

same "$admin, counters" "$(grep -oE '^(pghot|hwhint)_[a-z_]+' "$admin")" \
	"$(sed -nE 's/.*= "((pghot|hwhint)_[a-z_]+)".*/\1/p' mm/vmstat.c)"
same "$admin, tracepoints" "$(sed -nE 's/^pghot:([a-z_]+) .*/\1/p' "$admin")" \
	"$(sed -nE 's/^TRACE_EVENT\(([a-z_]+),/\1/p' include/trace/events/pghot.h)"
vm=Documentation/admin-guide/sysctl/vm.rst
listed=$(sed -nE 's/^- (pghot_[A-Za-z_]+).*/\1/p' "$vm")
same "$vm" "$listed" \
	"$(sed -nE 's/.*(procname.*= |PGHOT_SYSCTL\()"(pghot_[A-Za-z_]+)".*/\2/p' mm/pghot/sysctl.c)"
same "$vm, sections" "$(grep -xE 'pghot_[A-Za-z_]+' "$vm")" "$listed"

# Ranges and defaults, from the code's tables into the text of the ABI file.
python3 - "$abi" <<'PY' || bad=1
import re, sys
abi = open(sys.argv[1]).read()
knobs, hint = open("mm/pghot/knobs.c").read(), open("mm/pghot/hintfault.c").read()
known = {"PGHOT_HEAT_MAX": 15, "NUMA_NO_NODE": -1, "SZ_1M": 1 << 20, "SZ_16M": 1 << 24}
internal = open("mm/pghot/internal.h").read() + open("mm/pghot/record.h").read() + hint
for name, value in re.findall(r"#define\s+(PGHOT_\w+)\s+(\w+)", internal):
    known[name] = known.get(value, value)
bad = 0

def number(text):
    text = text.strip()
    return int(known.get(text, text))

def check(file, what, texts):
    global bad
    entry = re.search(r"What:\s+/sys/kernel/mm/pghot/%s\n(.*?)(?:\nWhat:|\Z)" % re.escape(file), abi, re.S)
    body = " ".join(entry[1].split()) if entry else ""
    for t in texts:
        if t not in body:
            print("pghot: docs: %s: %s: the text does not have '%s'" % (file, what, t), file=sys.stderr)
            bad = 1

default = dict(re.findall(r"^\t\.(\w+)\s*=\s*(\w+),", re.search(r"pghot_knobs __read_mostly = \{(.*?)\n\};", knobs, re.S)[1], re.M))
for const, low, high in re.findall(r"\[(PGHOT_\w+)\]\s*= \{ (\w+), ([^}]+) \}", knobs):
    field = const[len("PGHOT_"):].lower()
    file = field.replace("_mbps", "_MBps")
    texts = ["default %d" % number(default[field])]
    if file == "target_nid":
        texts = ["%d, the default" % number(default[field])]
    else:
        texts.append("%d to %d" % (number(low), number(high)))
    check(file, "range and default", texts)
    del default[field]
if default:
    print("pghot: docs: knobs without a range: %s" % " ".join(default), file=sys.stderr)
    bad = 1
for name in ("ms", "faults"):
    value = re.search(r"pghot_latency_%s __read_mostly = (\d+);" % name, hint)[1]
    check("sources/hintfaults/latency_" + name, "range and default",
          ["1 to %d, default %s" % (number("PGHOT_LATENCY_%s_MAX" % name.upper()), value)])
sys.exit(bad)
PY

# ---------------------------------------------------------------------------
# Files that the documents name

for file in "${pages[@]}" "$abi"; do
	while IFS= read -r name; do
		[ -e "$name" ] || fail "$file names $name, which is not there"
	done < <(grep -oE '(^|[^/A-Za-z0-9_])(Documentation|include|tools)/[A-Za-z0-9_./-]*[A-Za-z0-9_]' "$file" |
		 sed 's/^[^A-Za-z]//' | sort -u)
done

# ---------------------------------------------------------------------------
# Tests that the tables name

# Without the quotes of reST, and in one line.
text=$(sed '1,/^What was asked for$/d' "$design" | tr -d '`' | tr -s ' \n' ' ')
[[ $text = *KUnit* && $text = *selftest* ]] || fail "$design has no tables with tests"
while read -r kind name; do
	case $kind in
	KUnit) grep -qrF "KUNIT_CASE($name)" mm/pghot/tests ;;
	*) [ -e "tools/testing/selftests/mm/pghot/$name" ] || [ -e "tools/testing/selftests/mm/pghot/$name.c" ] ;;
	esac || fail "$design names the $kind $name, which is not there"
done < <(grep -oE '(KUnit|selftest) [a-z_.]*[a-z_]' <<<"$text" | sort -u)
while read -r name cases; do
	for c in $(tr -d '(),' <<<"$cases"); do
		grep -qE "^TEST(_F)?(_TIMEOUT)?\((.*, )?${c}[,)]" "tools/testing/selftests/mm/pghot/$name.c" ||
			fail "$design names the test $c of $name, which is not there"
	done
done < <(grep -oE 'selftest [a-z_]+ \([a-z_, ]+\)' <<<"$text" | sed 's/^selftest //' | sort -u)

if ((bad)); then
	exit 1
fi
say "docs: pages, ABI file and comments are in order; see ${out#"$PWD"/}/html/mm/pghot.html"
