# SPDX-License-Identifier: GPL-2.0
"""How guest.sh is told to be the machine of the bench."""
import shutil

import spec

# Parts of a run that the record of accesses tells apart.
INTERVALS = 60


class Machine:
    def __init__(self, qemu):
        self.name = "model" if qemu else "stock"
        self.has_truth = bool(qemu)
        self.binary = qemu or shutil.which("qemu-system-x86_64")
        if not self.binary:
            raise spec.SpecError("there is no qemu-system-x86_64; on Debian, install qemu-system-x86")

    def environment(self, truth, seconds):
        # Without "rep stosb" and "rep movsb", which QEMU emulates byte by byte, the guest
        # clears and copies pages much faster.
        env = {"MACHINE": self.name, "CPU": "max,la57=off,erms=off"}
        if self.has_truth:
            env.update(QEMU=self.binary, TRUTH=truth, MODEL=f"truth-interval={max(1, round(seconds * 1000 / INTERVALS))}")
        return env
