# SPDX-License-Identifier: GPL-2.0
#
# The two commands are "make demo" and "make check"; "make help" lists the rest.
# All work is done by the scripts in machine/ (see machine/README.md).

VARIANT ?= small
export VARIANT KSRC CONFIG REFETCH FILES MEM_MB CPUS APPEND HMAT LATENCY HOTPLUG_MB HOSTTOOLS TIMEOUT QEMU QEMU_EXTRA MACHINE MODEL TRUTH JOBS OUT SCENARIO ROWS QUICK TWICE BENCH_JOBS

# Scripts print progress as they go; two of them at once would mix.
.NOTPARALLEL:
.PHONY: help demo check bench figures kernel machine kunit shell run series deb clean distclean

help:
	@echo 'pghot: promotes hot pages from slow memory to DRAM. A Linux 7.3 overlay.'
	@echo
	@echo '  make demo      build a patched kernel, boot it, watch hot pages move to DRAM'
	@echo '  make check     all tests: static checks, KUnit, kselftests'
	@echo '  make bench     promoters side by side; SCENARIO=t1 ROWS=B0,N2 QUICK=1 choose'
	@echo '  make figures   measure every figure that the documents state'
	@echo
	@echo '  make kunit     the KUnit suites only'
	@echo '  make shell     a shell in the guest'
	@echo "  make run CMD='...' [FILES='a b']"
	@echo '                 run a command in the guest, with these files in /root;'
	@echo '                 what it leaves in /root/out comes back in build/guest/'
	@echo '  make kernel    build only (VARIANT=$(VARIANT); also: $(filter-out $(VARIANT),$(patsubst machine/config/%.config,%,$(wildcard machine/config/*.config))))'
	@echo '  make series    the patch series: a git branch and mails, in build/series/'
	@echo '  make machine   the patched QEMU that MACHINE=model and MACHINE=fast need'
	@echo "  make deb       a Debian kernel package with this machine's configuration"
	@echo '                 (or CONFIG=file, or CONFIG=small), in build/deb/'
	@echo '  make clean     remove build/'
	@echo '  make distclean remove build/ and the cache, with kernel source and compiler cache'
	@echo
	@echo 'Variables:  KSRC=/path/to/linux    your own 7.3 tree (copied, never modified)'
	@echo '            VARIANT=debug          the kernel with all the debugging'
	@echo '            MEM_MB=512,512,1024    sizes of the DRAM nodes 0 and 1, and of slow node 2'
	@echo "            CPUS=2  APPEND='...'   processors and kernel parameters of the guest"
	@echo '            MACHINE=model          slow memory is slow, in virtual time; fast; stock'
	@echo '            HOSTTOOLS=1            "host COMMAND" in the guest runs your programs'
	@echo '            TIMEOUT=900            seconds until make run gives up'
	@echo 'More of them: machine/README.md'

demo:
	@machine/demo.sh

check:
	@machine/check.sh $(CHECKS)

# Not "small", unless that was asked for.
bench: export VARIANT := $(if $(filter file,$(origin VARIANT)),bench,$(VARIANT))
bench:
	@machine/bench.sh

figures:
	@machine/figures.sh

kernel:
	@machine/build.sh $(VARIANT)

machine:
	@machine/qemu.sh

kunit:
	@machine/kunit.sh

shell:
	@machine/guest.sh --shell --

# As it was given: make would expand the dollars in CMD.
run: export PGHOT_CMD := $(value CMD)
run:
	@machine/run.sh

series:
	@machine/series.sh

deb:
	@machine/deb.sh

clean:
	@machine/clean.sh build

distclean:
	@machine/clean.sh build cache
