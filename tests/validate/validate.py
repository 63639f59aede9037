#!/usr/bin/env python3
"""Compares simulations with what HPCC's ns-3 model gave (tests/reference).

  validate.py [--build FOLDER] [--quick] [--seeds N] [SCENARIO...]

Prints a table of ours against the reference, with the bound of each; exits 1 when any is outside.
--quick: the scenarios on one switch only, which take a few seconds.
"""

import argparse
import csv
import gzip
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "tests" / "reference"
SEEDED_BOUNDS = {"mean FCT": 2, "longest queue": 5, "ECN marks": 10}  # percent, means of the seeds
TAILS = {50: 1, 95: 3, 99: 5}  # percentile of the slowdown: percent
TREE_SEEDS = 3  # of a fat tree whose marks are left to chance: percentiles are means of so many
BUCKETS, BUCKET_BOUND = 20, 10  # of the flows, by size; percent
VICTIM_BOUND = 3  # percent


def text_of(path):
    if path.exists():
        return path.read_text()
    return gzip.open(f"{path}.gz", "rt").read()


class Outcome:
    """The files of one run."""

    def __init__(self, folder):
        self.folder = folder
        self.flows = [line.split() for line in text_of(folder / "fct.txt").splitlines()]
        self.fct = {tuple(f[:4]): (int(f[5]), int(f[6]), int(f[7])) for f in self.flows}
        self.stat, self.longest_queue = {}, 0
        for line in text_of(folder / "stdout.txt").splitlines():
            words = line.split()
            if line.startswith("STAT"):
                self.stat = dict(zip(words[1::2], map(float, words[2::2])))
            elif line.startswith("MAXQ"):
                self.longest_queue = max(self.longest_queue, int(words[-1]))

    def last(self):
        """When the last flow ended, since the first began: in nanoseconds."""
        return (max(start + fct for start, fct, _ in self.fct.values()) -
                min(start for start, _, _ in self.fct.values()))

    def slowdowns(self, flows=None):
        chosen = self.fct if flows is None else flows
        return [max(1.0, self.fct[flow][1] / self.fct[flow][2]) for flow in chosen]

    def buckets(self):
        """The flows in equal parts, the smallest first; none where all have one size."""
        ordered = sorted(self.flows, key=lambda flow: (int(flow[4]), flow[:4]))
        if len({flow[4] for flow in ordered}) < BUCKETS:
            return []
        keys = [tuple(flow[:4]) for flow in ordered]
        return [keys[i * len(keys) // BUCKETS:(i + 1) * len(keys) // BUCKETS]
                for i in range(BUCKETS)]

    def victims(self):
        """Flows whose sender was paused while they ran, and whose receiver was nobody's incast: at
        most two flows to it were under way at the time."""
        pauses = {}
        for line in text_of(self.folder / "pfc.txt").splitlines():
            at, node, is_switch, _, paused = map(int, line.split())
            if not is_switch and paused:
                pauses.setdefault(node, []).append(at)
        spans = [(flow[1], start, start + fct) for flow, (start, fct, _) in self.fct.items()]

        def is_victim(flow):
            start, fct, _ = self.fct[flow]
            sender = (int(flow[0], 16) - 0x0b000001) >> 8 & 0xffff
            if not any(start <= at <= start + fct for at in pauses.get(sender, [])):
                return False
            return sum(to == flow[1] and begin < start + fct and start < end
                       for to, begin, end in spans) <= 2
        return [flow for flow in self.fct if is_victim(flow)]


def percentile(values, percent):
    values = sorted(values)
    at = (len(values) - 1) * percent / 100
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


class Table:
    def __init__(self):
        self.failed = 0
        print(f"{'scenario':28} {'what':16} {'ours':>14} {'reference':>14} {'off by':>9} {'bound':>7}")

    def row(self, scenario, what, ours, reference, bound):
        off = 100 * (ours - reference) / reference if reference else (0.0 if ours == 0 else 100.0)
        good = abs(off) <= bound
        self.failed += not good
        print(f"{scenario:28} {what:16} {ours:14.6g} {reference:14.6g} {off:8.2f}% {bound:6.2f}%"
              f"{'' if good else '  <-- outside'}", flush=True)


def simulate(build, scenario, seed=1):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([build / "bin" / "verbena", "sim", REFERENCE / scenario, "-o", out,
                        "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL)
        return Outcome(pathlib.Path(out))


def compare_alone(table, build, scenario):
    ours, reference = simulate(build, scenario), Outcome(REFERENCE / scenario)
    same = sum(ours.fct.get(flow) == times for flow, times in reference.fct.items())
    table.row(scenario, "FCTs equal", same, len(reference.fct), 0)


def compare_pauses(table, build, scenario):
    ours, reference = simulate(build, scenario), Outcome(REFERENCE / scenario)
    table.row(scenario, "last finish", ours.last(), reference.last(), 0.1)
    table.row(scenario, "longest queue", ours.longest_queue, reference.longest_queue, 1)
    table.row(scenario, "pauses", ours.stat["pause_sent"], reference.stat["pause_sent"], 2)
    table.row(scenario, "drops", ours.stat["drops"], 0, 0)


def compare_seeds(table, build, scenario, seeds):
    runs = [simulate(build, scenario, seed) for seed in range(1, seeds + 1)]
    name = scenario.split("/")[1]
    rows = [r for r in csv.DictReader(text_of(REFERENCE / "micro_seeds.csv").splitlines())
            if r["scenario"] == name]

    def mean(column):
        return statistics.mean(float(r[column]) for r in rows)
    senders = len(runs[0].fct)
    table.row(scenario, "mean FCT", statistics.mean(
        fct for run in runs for _, fct, _ in run.fct.values()), mean("fct_mean_ns"),
        SEEDED_BOUNDS["mean FCT"])
    table.row(scenario, "longest queue", statistics.mean(r.longest_queue for r in runs),
              mean("maxq_bytes"), 10 if senders == 2 else SEEDED_BOUNDS["longest queue"])
    table.row(scenario, "ECN marks", statistics.mean(r.stat["ecn_marks"] for r in runs),
              mean("ecn_marks"), SEEDED_BOUNDS["ECN marks"])
    if mean("pauses"):
        table.row(scenario, "pauses", statistics.mean(r.stat["pause_sent"] for r in runs),
                  mean("pauses"), 15)
    table.row(scenario, "drops", sum(r.stat["drops"] for r in runs), 0, 0)


def compare_buckets(table, scenario, ours, reference):
    """The bucket whose median, and the one whose mean, is furthest off."""
    for what, value in (("p50", lambda v: percentile(v, 50)), ("mean", statistics.mean)):
        pairs = [(value(ours.slowdowns(flows)), value(reference.slowdowns(flows)))
                 for flows in reference.buckets()]
        if pairs:
            table.row(scenario, f"worst bucket {what}",
                      *max(pairs, key=lambda pair: abs(pair[0] / pair[1] - 1)), BUCKET_BOUND)


def compare_fat_tree(table, build, scenario):
    reference = Outcome(REFERENCE / scenario)
    seeds = TREE_SEEDS if reference.stat["ecn_marks"] else 1
    runs = [simulate(build, scenario, seed) for seed in range(1, seeds + 1)]
    ours = runs[0]
    table.row(scenario, "flows ended", len(ours.fct), len(reference.fct), 0)
    for percent, bound in TAILS.items():
        table.row(scenario, f"slowdown p{percent}",
                  statistics.mean(percentile(run.slowdowns(), percent) for run in runs),
                  percentile(reference.slowdowns(), percent), bound)
    compare_buckets(table, scenario, ours, reference)
    if victims := reference.victims():
        table.row(scenario, f"{len(victims)} victims", statistics.mean(ours.slowdowns(victims)),
                  statistics.mean(reference.slowdowns(victims)), VICTIM_BOUND)
    table.row(scenario, "drops", sum(run.stat["drops"] for run in runs), 0, 0)
    print(f"{scenario:28} {ours.stat['hops_per_s'] / 1e6:.2f} M hops/s, {ours.stat['run_s']:.1f} s, "
          f"{ours.stat['maxrss_mb']:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("scenario", nargs="*")
    options = parser.parse_args()
    table = Table()
    for folder in sorted(REFERENCE.glob("m*cro/*"), key=lambda f: (f.parent.name != "micro", f.name)):
        scenario, name = f"{folder.parent.name}/{folder.name}", folder.name
        if options.scenario and name not in options.scenario:
            continue
        if folder.parent.name == "macro":
            if not options.quick:
                compare_fat_tree(table, options.build, scenario)
        elif name.startswith("single"):
            compare_alone(table, options.build, scenario)
        elif name.endswith("pfconly"):
            compare_pauses(table, options.build, scenario)
        else:
            compare_seeds(table, options.build, scenario, options.seeds)
    print(f"validate: {table.failed} outside their bounds")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
