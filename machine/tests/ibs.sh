#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ibs.sh [arguments of ibs.py]: builds the program in ibs/ and runs it on the
# modelled machine. QEMU=... takes another emulator.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/lib.sh"

need_packages gcc binutils python3
qemu=${QEMU:-$("$PG_MACHINE/qemu.sh")}
out=$PG_BUILD/tests
src=$PG_MACHINE/tests/ibs
mkdir -p "$out"

# 64-bit code, in an ELF file that multiboot takes.
flags=(-m64 -ffreestanding -fno-pic -mno-red-zone -mgeneral-regs-only -mcmodel=small
       -fno-stack-protector -fno-asynchronous-unwind-tables -O2 -Wall -Wextra -Werror)
gcc "${flags[@]}" -c "$src/ibs.c" -o "$out/ibs.o"
gcc -c "$src/start.S" -o "$out/start.o"
ld -m elf_x86_64 -z max-page-size=4096 -z noexecstack -T "$src/link.ld" -o "$out/ibs.elf64" "$out/start.o" "$out/ibs.o"
objcopy -O elf32-i386 "$out/ibs.elf64" "$out/ibs.elf"

exec python3 "$PG_MACHINE/tests/ibs.py" "$@" "$qemu" "$out/ibs.elf"
