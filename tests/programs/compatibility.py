#!/usr/bin/env python3
"""Runs the programs' tests and writes what was run, with what result: docs/compatibility.md.

usage: compatibility.py BUILD_DIR [-o FILE] [--records FILE] [TEST...]

  BUILD_DIR       of Verbena, as ./dev build leaves it
  -o FILE         the document (default: docs/compatibility.md)
  --records FILE  of an earlier run (VERBENA_RECORD), instead of running anything
  TEST            only these: pingpong, ucx, interop, ...
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INTEROP = HERE.parent / "interop/run.py"
NO_OPTION = re.compile(r"^(?:[0-9a-f:.]*[.:][0-9a-f:.]*|/.*)$")  # addresses, paths
UNSAID = {"-p", "--port"}  # ports, which each run draws
# Values with what each run draws: addresses, files of its own, UUIDs.
DRAWN = re.compile(r"\d+\.\d+\.\d+\.\d+|/tmp/|port=|^[0-9a-f]{8}-[0-9a-f]{4}-")
MAX_VALUES = 6
WRAPPERS = {"env", "nsenter", "prlimit", "stdbuf", "timeout"}
# Where programs are, those that Performance Co-Pilot starts among them.
FOLDERS = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/var/lib/pcp/pmdas/infiniband"
# The package of the library that each of these programs of ours uses.
LIBRARIES = {"pyverbs": "python3-pyverbs", "gloo_collectives": "libgloo0",
             "rpma_transfers": "librpma0"}


def record_tests(build, names):
    """Runs the tests; the lines that they recorded, and whether all passed."""
    with tempfile.NamedTemporaryFile("r", suffix=".records") as file:
        pathlib.Path(file.name).chmod(0o666)
        environment = os.environ | {"VERBENA_RECORD": file.name}
        scripts = [script for script in sorted(HERE.glob("*_test.py"))
                   if not names or script.stem.removesuffix("_test") in names]
        if not names or "interop" in names:
            scripts.append(INTEROP)
        good = True
        for script in scripts:
            print(f"== {script.name}", flush=True)
            done = subprocess.run([sys.executable, script, build], env=environment, check=False)
            good &= done.returncode in (0, 77)
        return [json.loads(line) for line in file], good


def inner_command(command):
    """What a program runs whose only purpose is to run another: the first word that is one."""
    for index, word in enumerate(command[1:], start=1):
        if not word.startswith("-") and not word.isdigit() and shutil.which(word):
            return command[index:]
    return []


def program_and_arguments(command):
    """Of "verbena run [options] -- program arguments"; None: another command of ours."""
    while command:
        name = pathlib.Path(command[0]).name
        if name == "verbena":
            if "run" not in command[1:2] or "--" not in command:
                return None
            command = command[command.index("--") + 1:]
        elif name in WRAPPERS:
            command = inner_command(command)
        elif name.startswith("python3"):
            uses = any("pyverbs" in word for word in command)
            return ("pyverbs", []) if uses else None
        else:
            return name, command[1:]
    return None


class Packages:
    """Which Debian package, of which version, a program is from."""

    def __init__(self):
        self._known = {}

    def of(self, program):
        if program not in self._known:
            self._known[program] = self._find(program)
        return self._known[program]

    @classmethod
    def _find(cls, program):
        if program in LIBRARIES:
            return LIBRARIES[program], cls._version(LIBRARIES[program])
        path = shutil.which(program, path=FOLDERS)
        for candidate in filter(None, (path, path and os.path.realpath(path))):
            owner = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True,
                                   check=False).stdout.partition(":")[0]
            if owner:
                return owner, cls._version(owner)
        return None

    @staticmethod
    def _version(package):
        return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package],
                              capture_output=True, text=True, check=True).stdout


class Row:
    def __init__(self):
        self.runs = collections.Counter()  # by outcome
        self.options = {}                  # flag: values
        self.remarks = []

    def add(self, arguments, outcome):
        self.runs[outcome] += 1
        for index, word in enumerate(arguments):
            if not re.match(r"^--?[A-Za-z]", word):
                continue
            flag, _, value = word.partition("=")
            if flag in UNSAID:
                continue
            values = self.options.setdefault(flag, [])
            if not value and index + 1 < len(arguments):
                value = arguments[index + 1]
            if value not in values and self._tells(value):
                values.append(value)

    @staticmethod
    def _tells(value):
        return value and not (value.startswith("-") or NO_OPTION.match(value) or DRAWN.search(value))

    def options_text(self):
        texts = []
        for flag, values in sorted(self.options.items()):
            shown = ", ".join(values[:MAX_VALUES]) + (", ..." if len(values) > MAX_VALUES else "")
            texts.append(f"`{flag} {shown}`" if values else f"`{flag}`")
        return " ".join(texts).replace("|", "\\|")

    def result(self):
        if self.runs["failed"]:
            return f"**{self.runs['failed']} of {sum(self.runs.values())} in a test that failed**"
        return "; ".join(self.remarks or ["passed" if self.runs["passed"] else "skipped here"])

    def remark(self, text):
        if text not in self.remarks:
            self.remarks.append(text)


def rows_of(records):
    """By (peer, program)."""
    packages, rows = Packages(), {}
    for record in records:
        for command in record["commands"]:
            found = program_and_arguments(command)
            if found is None or packages.of(found[0]) is None:
                continue
            key = (record.get("peer", ""), packages.of(found[0]), found[0])
            row = rows.setdefault(key, Row())
            row.add(found[1], record["outcome"])
            if found[0] in record.get("remarks", {}) and record["outcome"] == "passed":
                row.remark(record["remarks"][found[0]])
    return rows


def table(rows, peer):
    lines = ["| program | package | runs | result | options it was run with |", "|---|---|---|---|---|"]
    for (of_peer, (package, version), program), row in sorted(rows.items()):
        if of_peer == peer:
            lines.append(f"| {program} | {package} {version} | {sum(row.runs.values())} "
                         f"| {row.result()} | {row.options_text()} |")
    return lines


def release():
    """Debian 12, for example."""
    name = platform.freedesktop_os_release()
    return f"{name['NAME'].removesuffix(' GNU/Linux')} {name['VERSION_ID']}"


def document(rows):
    lines = ["# Compatibility", "",
             f"Programs that were run unmodified on Verbena, as {release()} ships them, and what came of it.",
             "`python3 tests/programs/compatibility.py build/release` has written this from the runs",
             "themselves; a row that was not run is not here. The tests, with what each checks of a",
             "program's output, are `tests/programs/*_test.py`.", "",
             "## On one machine, or between two network namespaces", "", *table(rows, "")]
    if any(key[0] == "linux" for key in rows):
        lines += ["", "## Against Linux's soft-RoCE", "",
                  "One side on Verbena, the other with the kernel's rdma_rxe in a guest (`./dev interop`),",
                  "each program both ways.", "", *table(rows, "linux")]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", dest="output", type=pathlib.Path,
                        default=HERE.parents[1] / "docs/compatibility.md")
    parser.add_argument("--records", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    if arguments.records:
        records, good = [json.loads(line) for line in arguments.records.open()], True
    else:
        records, good = record_tests(arguments.build.resolve(), arguments.tests)
    rows = rows_of(records)
    arguments.output.write_text(document(rows))
    for peer in sorted({key[0] for key in rows}):
        print("\n".join(line for line in table(rows, peer)))
    print(f"{arguments.output}: {len(rows)} programs")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
