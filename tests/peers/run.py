#!/usr/bin/env python3
"""Runs the tests of another project's tree on a Verbena build and prints their score.

usage: run.py BUILD_DIR NAME|PATH [--rebuild] [-- ARGS]
       run.py BUILD_DIR --list

A PATH is a checked-out tree; it is copied to build/peers/NAME/source and built in build/peers/NAME/build.
A NAME runs what an earlier call has copied and built. ARGS go to the tree's last test command: a gtest
filter, names of unittest modules. Nothing is downloaded. Each command has a time limit. The exit
status is 1 when a test fails that the table does not list as known, or when no test ran; 2 when the
tree cannot be built or is not one of the table (trees.py).
"""

import argparse
import collections
import glob
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import trees  # noqa: E402

WORK = pathlib.Path(__file__).resolve().parents[2] / "build" / "peers"
JOBS = os.environ.get("JOBS") or str(os.cpu_count())
BUILD_LIMIT_S = 7200
LINES_SHOWN = 20  # of a command that failed
ADDRESS_ALONE = "10.77.0.1"  # in a network namespace that has no other
# Makes the interface net0, waits until it is up, and runs a command.
WITH_INTERFACE = """
ip link set lo up
ip link add net0 type veth peer name net1 || exit 1
ip address add "$0/24" dev net0
ip link set net1 up
ip link set net0 up
tries=0
until ip link show net0 | grep -q LOWER_UP; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || exit 1
  sleep 0.1
done
"$@"
status=$?
sleep 1  # `verbena run` removes its files when the program has ended, and this ends all processes
exit "$status"
"""


class Refused(Exception):
    """The tree cannot be run as asked, or not on this machine."""


# --- which tree, and what it needs


def find_tree(given):
    """Returns the table's entry and the folder of the tree to copy; None for the folder: no copy."""
    folder = pathlib.Path(given)
    if folder.is_dir():
        tree = trees.recognize(folder)
        if not tree:
            raise Refused(f"{given} is not a tree of the table; --list shows the files that tell")
        return tree, folder.resolve()
    tree = trees.by_name(given)
    if not tree:
        raise Refused(f"{given} is neither a folder nor a name of the table; --list shows them")
    if not (WORK / tree.name / "source").is_dir():
        raise Refused(f"no copy of {tree.name} in {WORK}: give the path of a checked-out tree")
    return tree, None


def is_there(need):
    if need.startswith("module:"):
        return subprocess.run([trees.PYTHON, "-c", f"import {need.removeprefix('module:')}"],
                              stderr=subprocess.DEVNULL).returncode == 0
    if "/" in need:
        return bool(glob.glob(need, root_dir="/usr/include"))
    return bool(shutil.which(need))


def require(tree):
    missing = [need for need in tree.needs if not is_there(need)]
    if missing:
        raise Refused(f"the build of {tree.name} needs what is not installed: {', '.join(missing)}")


# --- commands


def run(command, environment, log, limit_s):
    """Returns the exit status, or None when the command took longer than limit_s."""
    shown = [word for word in command if word != WITH_INTERFACE]
    print("+", shlex.join(shown), flush=True)
    with open(log, "ab") as output:
        process = subprocess.Popen(command, env=dict(os.environ, **environment), stdout=output,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # what the command has left behind
            except ProcessLookupError:
                pass
            process.wait()


def first_match(reasons, text):
    """Returns the reason whose regular expression is found in the text, or None."""
    return next((why for pattern, why in reasons.items() if re.search(pattern, text)), None)


def build_failure(tree, log):
    """Returns one line when the table explains the failure, and the end of the log otherwise."""
    text = log.read_text(errors="replace")
    why = first_match(tree.lacks, text)
    if why:
        return f"this tree of {tree.name} cannot be built: {why}"
    return "\n".join([*text.splitlines()[-LINES_SHOWN:], f"the build of {tree.name} failed: {log}"])


def filled(words, values):
    return [word.format(**values) for word in words]


def build(tree, copied_from, rebuild):
    """Copies and builds the tree, unless that was done before. Returns the folders of it."""
    place = WORK / tree.name
    values = {"source": str(place / "source"), "build": str(place / "build"), "jobs": JOBS,
              "python": trees.PYTHON, "here": str(pathlib.Path(__file__).resolve().parent)}
    if (place / "build" / tree.made).exists() and not rebuild:
        return values
    require(tree)
    (place / "build").mkdir(parents=True, exist_ok=True)
    log = place / "build.log"
    log.write_bytes(b"")
    copy = [("cp", "-au", f"{copied_from}/.", values["source"])] if copied_from else []
    for command in (*copy, *tree.build):
        if run(filled(command, values), {}, log, BUILD_LIMIT_S) != 0:
            raise Refused(build_failure(tree, log))
    if not (place / "build" / tree.made).exists():
        raise Refused(f"the build of {tree.name} did not make {tree.made}: {log}")
    return values


def own_address():
    """Returns a loopback address that other runs on this machine do not use."""
    pid = os.getpid()
    return f"127.{1 + pid % 250}.{pid // 250 % 256}.2"


def alone(words):
    """Returns the command that runs `words` with processes and interfaces of its own."""
    return ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child",
            "--mount-proc", "sh", "-c", WITH_INTERFACE, ADDRESS_ALONE, *words]


def test(tree, values, verbena, extra):
    """Runs the tree's tests. Returns their output, and whether one took too long."""
    values = dict(values, address=ADDRESS_ALONE if tree.alone else own_address())
    environment = {"VERBENA_ADDRESS": values["address"]}
    environment |= {name: value.format(**values) for name, value in tree.environment.items()}
    log = WORK / tree.name / "tests.log"
    log.write_bytes(b"")
    late = False
    for number, command in enumerate(tree.tests, 1):
        words = [str(verbena), "run", "--", *filled(command, values)]
        words += extra if number == len(tree.tests) else []
        words = alone(words) if tree.alone else words
        late |= run(words, environment, log, tree.limit_s) is None
    return log.read_text(errors="replace"), late


# --- the score


def report(tree, score, late):
    """Prints the score; returns whether it has only failures that are known."""
    reasons = {name: first_match(tree.known, name) for name in sorted(score.failed)}
    unexpected = [name for name, why in reasons.items() if not why]
    for name in unexpected:
        print(f"FAILED  {name}")
    for why, count in collections.Counter(filter(None, reasons.values())).items():
        print(f"known   {count} failed: {why}")
    if late:
        print(f"FAILED  the tests took longer than {tree.limit_s} s")
    if not score.count:
        print(f"FAILED  no test ran: {WORK / tree.name / 'tests.log'}")
    print(f"{tree.name}: {len(score.passed)} passed, {len(score.failed)} failed"
          f" ({len(score.failed) - len(unexpected)} known), {len(score.skipped)} skipped")
    return not unexpected and not late and score.count > 0


def list_trees():
    for tree in trees.TREES:
        print(f"{tree.name:10} {tree.what}\n{'':10} told by: {', '.join(tree.marks)}\n"
              f"{'':10} needs: {', '.join(tree.needs)}")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build_dir", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("tree", nargs="?", metavar="NAME|PATH")
    parser.add_argument("--list", action="store_true", help="the trees that can be run")
    parser.add_argument("--rebuild", action="store_true", help="copy and build the tree again")
    parser.add_argument("extra", nargs="*", metavar="ARGS", help="for the last test command, after --")
    given = parser.parse_args()
    if not given.list and not given.tree:
        parser.error("give the name or the path of a tree, or --list")
    return given


def main():
    given = arguments()
    if given.list:
        list_trees()
        return 0
    try:
        verbena = given.build_dir.resolve() / "bin/verbena"
        if not verbena.exists():
            raise Refused(f"{verbena} does not exist: ./dev build")
        tree, folder = find_tree(given.tree)
        values = build(tree, folder, given.rebuild)
        output, late = test(tree, values, verbena, given.extra)
    except Refused as refused:
        print(f"peers: {refused}", file=sys.stderr)
        return 2
    return 0 if report(tree, tree.read(output), late) else 1


if __name__ == "__main__":
    sys.exit(main())
