#!/usr/bin/env python3
"""./dev bench: Verbena beside its peers and the machine's own limits, interleaved in one run.

In each round every measurement of every chosen case runs once, ours and the peers' in turn, so that
what else the machine does meets all of them. The table has medians over the rounds, and the median
of the rounds' ratios. It is printed, and left as bench.md, bench.json and bench.svg.

usage: run.py BUILD_DIR [--only PATTERN]... [--runs N] [--out DIR] [--list]
       run.py BUILD_DIR --micro | --instructions
"""

import argparse
import fnmatch
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
import unittest

import sites
import cases
import measurements
import nvmf
import picture
import program_cases
import results

EXPECTED = (OSError, subprocess.SubprocessError, measurements.Failed, sites.harness.Failure,
            unittest.SkipTest)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="PATTERN",
                        help="only cases whose name fits, for example 'wire-*' (repeatable)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="rounds (default: 5)")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="where the results go (default: build/bench)")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--micro", action="store_true",
                        help="the core's micro-benchmarks (Google Benchmark) instead")
    parser.add_argument("--instructions", action="store_true",
                        help="instructions of the core for each packet (callgrind) instead")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs: at least 1")
    options.out = options.out or pathlib.Path(options.build).parent / "bench"
    options.cases = chosen_cases(options)
    if not options.cases:
        parser.error(f"no case fits {', '.join(options.only)}; --list shows them")
    return options


def chosen_cases(options):
    """Without --only those of programs and of NVMe are left out; --list shows all."""
    every = (*cases.CASES, *program_cases.CASES, *nvmf.CASES)
    if options.only:
        return [case for case in every
                if any(fnmatch.fnmatch(case.name, pattern) for pattern in options.only)]
    return every if options.list else cases.CASES


def machine():
    model = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), "unknown CPU")
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(),
            "load_before": round(os.getloadavg()[0], 2)}


class Figures:
    """All values, by site and measurement; what cannot run here is told once."""

    def __init__(self):
        self.values, self.told = {}, set()

    def take(self, site_name, measurement, sites_made):
        """One run, unless this round has it already."""
        series = self.values.setdefault((site_name, measurement), [])
        try:
            series.append(measurement.run(sites_made.get(site_name)))
        except EXPECTED as reason:
            series.append(None)
            if (site_name, measurement) not in self.told:
                self.told.add((site_name, measurement))
                print(f"\r\033[K{measurement}: {reason}" if sys.stdout.isatty()
                      else f"{measurement}: {reason}", flush=True)

    def of(self, site_name, measurement):
        return results.Series(self.values.get((site_name, measurement), []))

    def line(self, case):
        return results.Line(case, self.of(case.site, case.ours),
                            [(peer, self.of(case.site, peer.measurement)) for peer in case.peers])


def say_progress(done, total, started, what):
    passed = time.monotonic() - started
    left = passed / done * (total - done) if done else 0
    line = f"[{done}/{total}, {left / 60:.1f} min left] {what}"
    if sys.stdout.isatty():
        print(f"\r\033[K{line[:118]}", end="", flush=True)
    else:
        print(line, flush=True)


def measure(options):
    chosen = list(dict.fromkeys((case.site, m) for case in options.cases
                                for m in (case.ours, *(peer.measurement for peer in case.peers))))
    figures, started, total = Figures(), time.monotonic(), len(chosen) * options.runs
    with sites.Sites(options.build) as made:
        for number in range(total):
            site_name, measurement = chosen[number % len(chosen)]
            say_progress(number, total, started, f"{site_name}: {measurement}")
            figures.take(site_name, measurement, made)
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    return [figures.line(case) for case in options.cases]


def write(options, lines, about):
    options.out.mkdir(parents=True, exist_ok=True)
    caption = (f"{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}; "
               f"{options.runs} rounds")
    text = results.table(lines)
    (options.out / "bench.md").write_text(f"{caption}\n\n{text}\n")
    (options.out / "bench.json").write_text(json.dumps(results.as_json(lines, about), indent=1))
    (options.out / "bench.svg").write_text(picture.svg(lines, caption))
    print(f"{caption}\n\n{text}\n\nIn {options.out}: bench.md, bench.json, bench.svg")


def run_micro(build):
    program = pathlib.Path(build, "bench/bench_core")
    if not program.exists():
        sys.exit(f"{program} was not built: is libbenchmark-dev installed?")
    return subprocess.run([program], check=False).returncode


def instructions(build, *work):
    """Of one frame: what 1000 more requests add to the count, which has no noise."""
    totals = []
    for count in (100, 1100):
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
             pathlib.Path(build, "bench/count_frames"), *work, str(count)],
            capture_output=True, text=True, check=True)
        collected = re.search(r"Collected : (\d+)", done.stderr)
        totals.append((int(collected[1]), int(done.stdout)))
    return (totals[1][0] - totals[0][0]) / (totals[1][1] - totals[0][1])


def run_instructions(build):
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed")
    print("| request | size | instructions for each frame, both sides |\n|---|---:|---:|")
    for verb in ("write", "read"):
        for size in (8, 4096, 65536):
            print(f"| RDMA {verb.upper()} | {size} | {instructions(build, verb, str(size)):.0f} |",
                  flush=True)
    return 0


def main():
    options = parse(sys.argv[1:])
    if options.list:
        for case in options.cases:
            beside = ", ".join(peer.name for peer in case.peers)
            print(f"{case.name:24} {case.site}: {case.what}; beside {beside}")
        return 0
    if options.micro:
        return run_micro(options.build)
    if options.instructions:
        return run_instructions(options.build)
    missing = [name for name in ("ib_write_bw", "ucx_perftest", "mpirun", "mpicc", "iperf3",
                                 "sockperf", "taskset") if not shutil.which(name)]
    if missing:
        print(f"not installed, so without figures: {', '.join(missing)}")
    about = machine()
    lines = measure(options)
    write(options, lines, about)
    return 0 if any(line.ours.median is not None for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
