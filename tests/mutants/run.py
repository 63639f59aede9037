#!/usr/bin/env python3
"""Shows that the tests catch errors: applies small wrong edits, one at a time, and runs tests.

  N        only the first N of the list, which are spread over the layers
  NAME     only this mutant; several may be named
  LAYER    only the mutants of this layer: transport, fabric, ...
  --quick  without the sanitizers' builds, whose turn comes last
  --list   prints the mutants and ends

The mutants are in tests/mutants/LAYER.toml. They are applied to a copy of the tree in
build/mutants/tree, which is built unmutated first and whose tests must pass then. For each mutant
the unit test of its layer runs, then the tests of the layers above, simulations, programs, until
one fails. A test that takes too long counts as failed. The exit status is 1 when more than one
mutant of twenty (2 of 40) is not caught, or when one does not compile.
"""

import argparse
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fast_set  # noqa: E402
import mutant_list  # noqa: E402
import source_edits  # noqa: E402

WORK = mutant_list.ROOT / "build" / "mutants"
TREE = WORK / "tree"
BASELINE = WORK / "baseline.json"
JOBS = os.environ.get("JOBS") or str(os.cpu_count())
ESCAPES_ALLOWED = 1 / 20
LEAST_LIMIT, SLOWER = 120, 10  # seconds; a test with a mutant may take so many times as long
FIRST_LIMIT = 1800           # seconds, of a test whose time is not known yet


# --- commands

def environment():
    env = dict(os.environ, GTEST_FAIL_FAST="1", PYTHONDONTWRITEBYTECODE="1")
    env.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")  # for precompiled headers
    env.setdefault("CCACHE_BASEDIR", str(mutant_list.ROOT))
    env.setdefault("CCACHE_NOHASHDIR", "1")
    return env


def adopt_orphans():
    """Makes this process the parent of what its commands leave behind (prctl(2))."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def descendants():
    """Returns the process IDs of all that this process has started, and they, and so on."""
    children = collections.defaultdict(list)
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = stat.read_text().rpartition(")")[2].split()[1]
            children[int(parent)].append(int(stat.parent.name))
    found = [os.getpid()]
    for pid in found:
        found += children[pid]
    return found[1:]


def end_descendants():
    """Ends the command and all that it has started, in whichever session that is."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and descendants():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            time.sleep(0.01)


def run(command, limit=None):
    """Returns (exit status, output); the status is None when the command took too long."""
    process = subprocess.Popen(command, cwd=TREE, env=environment(), text=True, errors="replace",
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        end_descendants()


def build(preset, targets):
    """Returns the compiler's output when the build fails, else None."""
    status, output = run(["cmake", "--build", "--preset", preset, "--parallel", JOBS, "--target",
                          *sorted(set(targets))])
    return None if status == 0 else output


def run_test(test, limit):
    """Returns what failed, or None."""
    command = ["ctest", "--preset", test.preset, "--parallel", JOBS, "--stop-on-failure",
               "--tests-regex", rf"^{re.escape(test.name)}(\.|$)"]
    if test.preset == "dev" and shutil.which("setarch"):  # where addresses have too many bits
        command = ["setarch", os.uname().machine, "-R", *command]
    status, output = run(command, limit)
    if status == 0:
        return None
    return "the time limit" if status is None else first_failure(output)


def first_failure(output):
    for pattern in (r"^(?:\d+: )?\[  FAILED  \] ([\w/.]+)",         # GoogleTest
                    r"^(?:\d+: )?(?:FAIL|ERROR): (\w+)",             # unittest
                    r"(CHECK\([^\n]*\) failed)", r"\*\*\*(\w[\w ]*)"):  # crashes, as ctest has them
        if found := re.search(pattern, output, re.MULTILINE):
            return found[1].strip()
    return "its exit status"


# --- the unmutated tree

def prepare(tests):
    """Builds the copy; returns the seconds of each test that passes, by its key."""
    tree_hash = source_edits.update(TREE)
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    seconds = known["seconds"] if known.get("tree") == tree_hash else {}
    for preset in sorted({test.preset for test in tests}, reverse=True):
        say(f"builds {preset} without a mutant")
        run(["cmake", "--preset", preset, "-D", "VERBENA_TESTS="])  # all tests in each
        if output := build(preset, [test.target for test in tests if test.preset == preset]):
            sys.exit(f"{output[-4000:]}\ndev mutants: the tree does not build without a mutant")
    for test in tests:
        if test.key in seconds:
            continue
        began = time.monotonic()
        failure = run_test(test, FIRST_LIMIT) and run_test(test, FIRST_LIMIT)
        if failure:
            say(f"{test.key} fails without a mutant ({failure}) and is left out")
        else:
            seconds[test.key] = time.monotonic() - began
            BASELINE.write_text(json.dumps({"tree": tree_hash, "seconds": seconds}, indent=1))
    return seconds


# --- mutants

def say(text):
    print(f"dev mutants: {text}", flush=True)


def catch(mutant, tests, seconds):
    """Returns (verdict, by what): caught, not caught, or does not compile."""
    with source_edits.Applied(TREE, mutant):
        for test in tests:
            if output := build(test.preset, [test.target]):
                return "does not compile", output[-2000:]
            limit = max(LEAST_LIMIT, SLOWER * seconds[test.key])
            if failure := run_test(test, limit):
                return "caught", f"{test.key}, {failure}"
    return "not caught", ""


def table(results):
    rows = [("", "mutant", "layer", "caught by", "seconds")]
    rows += [(str(number), mutant.name, mutant.layer, by if verdict == "caught" else verdict,
              f"{took:.0f}") for number, mutant, verdict, by, took in results]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in rows)


def run_all(selected, quick):
    tests = {number: fast_set.tests_for(mutant, quick) for number, mutant in selected}
    every = [test for test in fast_set.FAST_SET + fast_set.SANITIZED
             if any(test in of_mutant for of_mutant in tests.values())]
    seconds = prepare(every)
    results = []
    for place, (number, mutant) in enumerate(selected, 1):
        began = time.monotonic()
        usable = [test for test in tests[number] if test.key in seconds]
        verdict, by = catch(mutant, usable, seconds)
        took = time.monotonic() - began
        results.append((number, mutant, verdict, by, took))
        say(f"{place} of {len(selected)}: {mutant.name}: {verdict}"
            f"{' by ' + by if verdict == 'caught' else ''} ({took:.0f} s)")
        if verdict == "does not compile":
            print(by)
    print(table(results))
    return results


def exit_status(verdicts):
    missed = verdicts.count("not caught")
    broken = verdicts.count("does not compile")
    say(f"{verdicts.count('caught')} caught, {missed} not caught"
        + (f", {broken} do not compile" if broken else ""))
    return 1 if broken or missed > ESCAPES_ALLOWED * len(verdicts) else 0


def arguments():
    parser = argparse.ArgumentParser(prog="dev mutants", description=__doc__,
                                     usage="./dev mutants [--quick] [--list] [N | NAME | LAYER]...",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("which", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # raises KeyboardInterrupt
    adopt_orphans()
    args = arguments()
    try:
        selected = mutant_list.select(mutant_list.read_all(), args.which)
        if args.list:
            for number, mutant in selected:
                print(f"{number:3}  {mutant.layer:12} {mutant.name:40} {mutant.why}")
            return 0
        results = run_all(selected, args.quick)
    except mutant_list.ListError as error:
        print(f"dev mutants: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dev mutants: interrupted", file=sys.stderr)
        return 130
    return exit_status([verdict for _, _, verdict, _, _ in results])


if __name__ == "__main__":
    sys.exit(main())
