#!/usr/bin/env python3
"""Measures what each rule of progress gives: every rule is switched off, one at a time.

A rule of bench/rules.toml is one edit of the source. Each edit is applied to a copy of the tree,
built, and kept; then all builds are measured in turn, round by round. The table has the median of
the rounds' ratios of each measurement: the build without the rule to the build with all rules.
Latencies are inverted, so that below 1 the rule helps.

  RULE...    only these rules
  --list     prints the rules and ends
  --runs N   rounds (default: 5)
  --build    builds and ends, without a measurement
  --measure  measures what was built before
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "mutants")]
import measurements  # noqa: E402
import sites  # noqa: E402
import source_edits  # noqa: E402

WORK = ROOT / "build" / "rules"
TREE = WORK / "tree"
ALL_RULES = "all rules"
PRESET = "test"
KEPT = ("lib/libibverbs.so.1", "lib/librdmacm.so.1", "lib/libverbena-paths.so", "bin/verbena")
LOCAL, PACKETS = (("VERBENA_LOCAL", "on"),), (("VERBENA_LOCAL", "off"),)


@dataclasses.dataclass(frozen=True)
class Rule(source_edits.Edit):
    what: str


@dataclasses.dataclass(frozen=True)
class UCXOnDevice:
    """ucx_perftest's tagged messages of 8 bytes over rc_verbs, on our library: us."""
    environment: tuple = ()
    what: str = "us"

    def run(self, site):
        port = measurements.harness.free_tcp_port()
        command = ["ucx_perftest", "-f", "-t", "tag_lat", "-s", "8", "-n", "30000", "-p", port]
        variables = {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_WARN_UNUSED_ENV_VARS": "n",
                     **dict(self.environment)}
        server = site.start_on_device(site.left, *command, environment=variables)
        try:
            measurements.listens("tcp", port, server, "0A")
            client = site.start_on_device(site.right, *command, site.left.address,
                                          environment=variables)
            output = measurements.finish(client, server)
        finally:
            server.kill()
        return float(output.strip().splitlines()[-1].split()[1])


def perftest(program, what, *options, environment=LOCAL):
    return measurements.Perftest(program, options, what, environment)


def measured():
    """{what: (path, measurement)}."""
    rate = ("-s", "64", "-D", "1", "-F")
    latency = ("-s", "8", "-n", "20000", "-F")
    events = ("-s", "8", "-n", "2000", "-F", "-e")
    of_host = {
        "WRITE 64 B": perftest("ib_write_bw", "M/s", *rate),
        "WRITE latency": perftest("ib_write_lat", "us", *latency),
        "SEND latency": perftest("ib_send_lat", "us", *latency),
        "SEND events": perftest("ib_send_lat", "us", *events),
    }
    of_packets = {
        "WRITE 64 B": perftest("ib_write_bw", "M/s", *rate, environment=PACKETS),
        "WRITE 64 B, 64 QPs": perftest("ib_write_bw", "M/s", *rate, "-q", "64",
                                       environment=PACKETS),
        "WRITE 64 KiB": perftest("ib_write_bw", "GB/s", "-s", "65536", "-D", "1", "-F",
                                 environment=PACKETS),
        "WRITE latency": perftest("ib_write_lat", "us", *latency, environment=PACKETS),
        "SEND latency": perftest("ib_send_lat", "us", *latency, environment=PACKETS),
        "SEND events": perftest("ib_send_lat", "us", *events, environment=PACKETS),
        "UCX tag": UCXOnDevice(PACKETS),
    }
    of_wire = {what: of_packets[what] for what in ("WRITE 64 B", "WRITE latency", "SEND events")}
    return {f"{prefix} {what}": (path, measurement)
            for prefix, path, group in (("host", "same host", of_host),
                                        ("packets", "same host", of_packets),
                                        ("veth", "veth", of_wire))
            for what, measurement in group.items()}


def read_rules():
    entries = tomllib.loads((ROOT / "bench" / "rules.toml").read_text())["rule"]
    return [Rule(**entry) for entry in entries]


def build(name):
    """Builds the copy as it is, and keeps what programs load."""
    subprocess.run(["cmake", "--build", "--preset", PRESET, "--target", "product"], cwd=TREE,
                   check=True, stdout=subprocess.DEVNULL)
    for file in KEPT:
        kept = WORK / name / file
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / "build" / PRESET / file, kept)
    print(f"built: {name}", flush=True)


def build_all(rules):
    source_edits.update(TREE)
    subprocess.run(["cmake", "--preset", PRESET], cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    build(ALL_RULES)
    for rule in rules:
        with source_edits.Applied(TREE, rule):
            build(rule.name)


def gain(measurement, without_rule, with_rule):
    """Below 1: the rule helps."""
    return with_rule / without_rule if measurement.what == "us" else without_rule / with_rule


def measure_all(rules, runs):
    ratios = {}
    names = [ALL_RULES, *(rule.name for rule in rules)]
    of_build = {name: sites.Sites(WORK / name) for name in names}
    for turn in range(runs):
        for what, (path, measurement) in measured().items():
            values = {}
            for name in names:
                try:
                    value = measurement.run(of_build[name].get(path))
                    if value:  # perftest rounds what took very long to 0.00
                        values[name] = value
                except (measurements.Failed, OSError) as error:
                    print(f"{what}, {name}: {str(error).splitlines()[0]}", file=sys.stderr)
            for name in names[1:]:
                if name in values and ALL_RULES in values:
                    ratios.setdefault((name, what), []).append(
                        gain(measurement, values[name], values[ALL_RULES]))
        print(f"round {turn + 1} of {runs}; load {os.getloadavg()[0]:.1f}", flush=True)
    return ratios


def table(rules, ratios):
    whats = list(measured())
    lines = ["| without | " + " | ".join(whats) + " |", "|---|" + "---:|" * len(whats)]
    for rule in rules:
        cells = [f"{statistics.median(ratios[rule.name, what]):.2f}"
                 if (rule.name, what) in ratios else "-" for what in whats]
        lines.append(f"| {rule.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="bench/rules.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=5, help=argparse.SUPPRESS)
    parser.add_argument("--build", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("rule", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    rules = read_rules()
    unknown = set(options.rule) - {rule.name for rule in rules}
    if unknown:
        parser.error(f"no rule {', '.join(sorted(unknown))}; --list shows them")
    rules = [rule for rule in rules if not options.rule or rule.name in options.rule]
    if options.list:
        print("\n".join(f"{rule.name:22} {rule.what}" for rule in rules))
        return
    if not options.measure:
        build_all(rules)
    if not options.build:
        print(table(rules, measure_all(rules, options.runs)))


if __name__ == "__main__":
    main()
