# SPDX-License-Identifier: GPL-2.0
"""Pictures by gnuplot, for the reports of the demo and of the bench."""
import os
import subprocess
import sys

BLUE, ORANGE, GREY = "#1f5fa8", "#d9730d", "#808080"


def plot(script, out, name, size):
    """Writes OUT/NAME.png and OUT/NAME.svg. gnuplot's input stays in OUT/data."""
    terminals = {
        "png": f"set terminal pngcairo size {size[0]},{size[1]} font 'Sans,11' background 'white'",
        "svg": f"set terminal svg size {size[0]},{size[1]} font 'Sans,12' background 'white'",
    }
    for kind, terminal in terminals.items():
        file = os.path.join(out, f"{name}.{kind}")
        full = f"{terminal}\nset output '{file}.tmp'\n{script}\nunset output\n"
        with open(os.path.join(out, "data", f"{name}.{kind}.gp"), "w") as f:
            f.write(full)
        done = subprocess.run(["gnuplot"], input=full, text=True, stderr=subprocess.PIPE)
        if done.returncode or not os.path.getsize(file + ".tmp"):
            sys.exit(f"pghot: error: gnuplot failed on {name}.{kind}: {done.stderr.strip()}")
        os.replace(file + ".tmp", file)
