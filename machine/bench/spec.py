# SPDX-License-Identifier: GPL-2.0
"""Scenario and row files of the bench, and how a real machine is scaled down.

Both kinds of file hold lines of a keyword and its argument; "#" starts a comment, a
line that begins with a blank goes on with the one before. {EXPRESSION} in an argument
is replaced by its value: arithmetic on the names that scale() makes.
"""
import ast
import operator
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))

# What the kernel and the published runs use on a machine of full size.
SCAN_SIZE_MB = 256          # debugfs sched/numa_balancing/scan_size_mb
SCAN_PERIOD_MIN_MS = 1000   # scan_period_min_ms
SCAN_PERIOD_MAX_MS = 60000  # scan_period_max_ms
SCAN_MB_PER_S = 2560        # MAX_SCAN_WINDOW in kernel/sched/fair.c
DAMON_QUOTA = 128 << 20     # bytes a second
DAMON_REGIONS = 100000


class SpecError(Exception):
    pass


# --------------------------------------------------------------------------
# Files

# keyword -> may it stand there more than once
SCENARIO_WORDS = {
    "title": False, "real": False, "S": False, "T": False, "T_quick": False, "real_seconds": False,
    "real_buffer_mb": False, "real_hot_mb": False, "real_slow_mb": False, "threshold_ms": False, "threads": False, "cpus": False,
    "memory": False, "append": False, "guest": True, "work": False, "work_quick": False, "rows": False,
    "layout": False, "published": True, "order": True, "note": True, "steady": False, "steady_quick": False,
}
SCENARIO_NEEDS = ("title", "S", "T", "real_seconds", "real_buffer_mb", "threads", "cpus", "memory", "work", "rows")
ROW_WORDS = {
    "name": False, "append": False, "needs": True, "set": True, "on": True, "work": False, "steady": False,
    "promoted": False,
}
ROW_NEEDS = ("name",)


def parse(path, words, needs):
    """{keyword: [arguments]}"""
    out = {}
    last = None
    with open(path) as f:
        lines = f.read().splitlines()
    for number, line in enumerate(lines, 1):
        line = line if not line.lstrip().startswith("#") else ""
        if not line.strip():
            continue
        if line[0].isspace():
            if last is None:
                raise SpecError(f"{path}:{number}: this line continues none")
            out[last][-1] += " " + line.strip()
            continue
        last, *rest = line.split(None, 1)
        value = rest[0].strip() if rest else ""
        if last not in words:
            raise SpecError(f"{path}:{number}: there is no keyword '{last}'; there are: {', '.join(words)}")
        if last in out and not words[last]:
            raise SpecError(f"{path}:{number}: '{last}' stands here a second time")
        out.setdefault(last, []).append(value)
    for word in needs:
        if word not in out:
            raise SpecError(f"{path}: the line '{word} ...' is missing")
    return out


NAME = r"[A-Za-z0-9_-]+"


def names_in(directory):
    return sorted(n for n in os.listdir(os.path.join(HERE, directory)) if re.fullmatch(NAME, n))


def find(directory, what, name):
    if name not in names_in(directory):
        raise SpecError(f"there is no {what} '{name}'; there are: {' '.join(names_in(directory))} "
                        f"(files in machine/bench/{directory}/)")
    return os.path.join(HERE, directory, name)


# --------------------------------------------------------------------------
# {EXPRESSION}

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
             ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
FUNCTIONS = {"min": min, "max": max, "round": round}


def evaluate(text, names):
    def value(node):
        if isinstance(node, ast.Expression):
            return value(node.body)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in names:
                raise SpecError(f"'{text}': there is no '{node.id}'; there are: {', '.join(sorted(names))}")
            return names[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS \
                and not node.keywords:
            return FUNCTIONS[node.func.id](*map(value, node.args))
        raise SpecError(f"'{text}' is not arithmetic")

    try:
        return value(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ZeroDivisionError, TypeError) as e:
        raise SpecError(f"'{text}': {e}") from None


def integer(text, names):
    """Knobs are whole numbers. One that is scaled to nothing would mean something else."""
    exact = evaluate(text, names)
    whole = round(exact)
    if whole == 0 and exact != 0:
        raise SpecError(f"'{text}' is {exact:.3g} here, which no whole number stands for")
    return whole


def expand(text, names):
    return re.sub(r"\{([^{}]*)\}", lambda m: str(integer(m.group(1), names)), text)


# --------------------------------------------------------------------------
# Scale

def scale(S, T, real_seconds, real_buffer_mb, real_slow_mb, threshold_ms=1000):
    """What rows and work lines may use.

    Sizes are divided by S, the duration by T, so that what is done at a rate of bytes
    or pages per second must be done at a rate divided by S / T to come as far.

    The scan of NUMA balancing arms scan_size_mb, then waits for a period: first for a
    second (scan_delay_ms), and after a whole pass for scan_period_*_ms divided by the
    number of scan_size_mb that the program has, but so long that no more than 2560 MB a
    second are armed. That limit is part of the kernel's code. So these periods are set
    such that the scan waits here for as long as it would there.
    """
    k = S / T
    n = {"S": S, "T": T, "k": k, "seconds": real_seconds / T, "buffer_mb": real_buffer_mb / S,
         "slow_mb": real_slow_mb / S, "threshold_ms": threshold_ms}
    n["scan_size_mb"] = max(1, round(SCAN_SIZE_MB / k))
    windows_there = max(1, real_buffer_mb / SCAN_SIZE_MB)
    windows_here = max(1, n["buffer_mb"] / n["scan_size_mb"])
    # scan_size_mb is a whole number: what it is too large or too small, the period is too.
    mend = n["scan_size_mb"] / (SCAN_SIZE_MB / k)
    low = max(1000 / (SCAN_MB_PER_S / SCAN_SIZE_MB), SCAN_PERIOD_MIN_MS / windows_there)
    high = max(low, SCAN_PERIOD_MAX_MS / windows_there)
    n["scan_period_min_ms"] = round(low * mend * windows_here)
    n["scan_period_max_ms"] = round(high * mend * windows_here)
    n["damon_quota"] = round(DAMON_QUOTA / k)
    n["damon_regions"] = max(10, round(DAMON_REGIONS / S))
    return n


class Scenario:
    def __init__(self, name, quick=False):
        self.name = name
        self.quick = quick
        self.path = find("scenarios", "scenario", name)
        d = parse(self.path, SCENARIO_WORDS, SCENARIO_NEEDS)
        self.d = d

        def num(word, default=None):
            if word not in d:
                return default
            try:
                value = float(d[word][0])
            except ValueError:
                raise SpecError(f"{self.path}: '{word}' is a number, not '{d[word][0]}'") from None
            return int(value) if value == int(value) else value

        self.title = d["title"][0]
        self.threads = num("threads")
        self.S, T = num("S"), num("T")
        self.T = num("T_quick", T) if quick else T
        if self.S <= 0 or self.T <= 0:
            raise SpecError(f"{self.path}: S and T are above 0")
        self.vars = scale(self.S, self.T, num("real_seconds"), num("real_buffer_mb"),
                          num("real_slow_mb", num("real_buffer_mb")),
                          evaluate(d.get("threshold_ms", ["1000"])[0], {"S": self.S, "T": self.T}))
        self.vars["threads"] = self.threads
        self.vars["hot_mb"] = num("real_hot_mb", num("real_buffer_mb")) / self.S
        # For periods of sampling: events for each hot page are what counts.
        self.vars["hot_pages"] = self.vars["hot_mb"] * 256
        self.seconds = self.vars["seconds"]
        self.cpus = num("cpus")
        self.memory = d["memory"][0]
        self.append = d.get("append", [""])[0]
        self.rows = d["rows"][0].split()
        self.layout = d.get("layout", ["t1"])[0]
        if self.layout not in ("t1", "t2"):
            raise SpecError(f"{self.path}: layout is t1 or t2")
        self.guest = d.get("guest", [])
        self.notes = d.get("note", [])
        self.steady = num("steady_quick", num("steady")) if quick else num("steady")
        self.work = expand(d["work"][0], self.vars)
        if quick and "work_quick" in d:
            self.work += " " + expand(d["work_quick"][0], self.vars)
        self.published = {}
        for line in d.get("published", []):
            words = line.split(None, 2)
            if len(words) != 3:
                raise SpecError(f"{self.path}: published ROW QUANTITY VALUE")
            self.published.setdefault(words[0], {})[words[1]] = words[2]
        self.order = [line.split() for line in d.get("order", [])]
        with open(self.path) as f:
            self.text = f.read()

    def describe(self):
        v = self.vars
        return [
            f"scale: sizes / S = {self.S}, time / T = {self.T}, so rates / S/T = {v['k']:g}; "
            f"{self.seconds:g} s instead of {self.seconds * self.T:g} s",
            f"NUMA balancing's scan: {v['scan_size_mb']} MB (for {SCAN_SIZE_MB}) per period of "
            f"{v['scan_period_min_ms']} to {v['scan_period_max_ms']} ms / (MB of the program / {v['scan_size_mb']})",
            f"DAMON: {v['damon_quota'] / (1 << 20):g} MiB/s (for 128), {v['damon_regions']} regions (for "
            f"{DAMON_REGIONS}); rate limits: 65536 MB/s -> {65536 / v['k']:g}, 1024 -> {1024 / v['k']:g}",
        ]


class Row:
    def __init__(self, name, scenario):
        # A file of one's own may stand anywhere.
        self.name = os.path.basename(name)
        if "/" in name:
            self.path = name
            if not os.path.isfile(name) or not re.fullmatch(NAME, self.name):
                raise SpecError(f"there is no row file '{name}' (with a name of letters, digits, '_' and '-')")
        else:
            self.path = find("rows", "row", name)
        d = parse(self.path, ROW_WORDS, ROW_NEEDS)
        v = scenario.vars
        try:
            self.title = d["name"][0]
            self.append = expand(d.get("append", [""])[0], v)
            self.needs = d.get("needs", [])
            self.set = [self.assignment(x, v) for x in d.get("set", [])]
            self.on = [self.step(x, v) for x in d.get("on", [])]
            self.work = expand(d.get("work", [""])[0], v)
            self.promoted = d.get("promoted", ["pgpromote_success"])[0]
            if not re.fullmatch(r"[a-z0-9_]+( [+-] [a-z0-9_]+)*", self.promoted):
                raise SpecError(f"'promoted {self.promoted}' is not a sum of counters of /proc/vmstat")
            # Nothing changes in such a row: it need not last as long as the others.
            self.seconds = scenario.seconds
            if d.get("steady", ["no"])[0] == "yes" and scenario.steady:
                self.seconds = min(scenario.steady, scenario.seconds)
        except SpecError as e:
            raise SpecError(f"{self.path}: {e}") from None
        with open(self.path) as f:
            self.text = f.read()

    @staticmethod
    def assignment(text, v):
        path, _, value = text.strip().partition(" ")
        if not value or not re.fullmatch(r"[/$][A-Za-z0-9_./$-]+", path):
            raise SpecError(f"'{text}' is not 'PATH VALUE'")
        value = expand(value.strip(), v)
        # It goes into a shell script, in double quotes.
        if re.search(r'["`\\]|\$\(', value):
            raise SpecError(f"'{value}': no quotes, back ticks or $( here")
        return path, value

    @classmethod
    def step(cls, text, v):
        if text.split()[0] == "sleep":
            seconds = expand(text.split(None, 1)[1], v)
            if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", seconds):
                raise SpecError(f"'{text}': sleep SECONDS")
            return "sleep", seconds
        return cls.assignment(text, v)

    def scripts(self, scenario):
        """The shell scripts for the guest: (before the work, when it starts)."""
        def put(steps):
            return [f"sleep {value}" if path == "sleep" else f'put "{path}" "{value}"' for path, value in steps]

        head = [". /root/in-guest.sh"]
        before = head + [f"need '{p}'" for p in self.needs]
        before += [expand(line, scenario.vars) for line in scenario.guest]
        before += put(self.set)
        args = f"{scenario.work} {self.work} --threads {scenario.threads} --duration-ms {round(self.seconds * 1000)}"
        if self.on:
            args += " --on /root/on.sh"
        before.append(f"measure {args}")
        return "\n".join(before) + "\n", "\n".join(head + put(self.on)) + "\n"
