#!/usr/bin/env python3
"""What `./dev test` prints at its end: where the minutes went, the slowest tests, what was skipped.

usage: summary.py FOLDER

FOLDER holds what the run has left: phases.tsv (preset, phase, seconds), PRESET.xml (JUnit, by ctest),
tests.jsonl (a line for each test of a script; tests/programs/testing.py).
"""

import collections
import json
import pathlib
import sys
import xml.etree.ElementTree

SLOWEST = 10
PHASES = ("install", "build", "test")


def phases(folder):
    """{preset: {phase: seconds}}, in the order in which they ran."""
    table = {}
    for line in (folder / "phases.tsv").read_text().splitlines():
        preset, phase, seconds = line.split("\t")
        of_preset = table.setdefault(preset, collections.Counter())
        of_preset[phase] += int(seconds)
    return table


def ctest_tests(folder):
    """(preset, test, seconds, whether it was skipped) of each that ctest ran."""
    for path in sorted(folder.glob("*.xml")):
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            yield path.stem, case.get("name"), float(case.get("time", 0)), case.find("skipped") is not None


def script_tests(folder):
    path = folder / "tests.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  " + row[0].ljust(widths[0]) + "".join(
        "  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:])) for row in rows)


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}" if seconds else "-"


def time_table(of_presets):
    rows = [("", *PHASES, "min:s")]
    for preset, spent in of_presets.items():
        rows.append((preset, *(clock(spent[phase]) for phase in PHASES), clock(sum(spent.values()))))
    totals = [sum(spent[phase] for spent in of_presets.values()) for phase in PHASES]
    rows.append(("all", *map(clock, totals), clock(sum(totals))))
    return table(rows)


def slowest(tests):
    rows = [(name, preset, f"{seconds:.0f} s") for preset, name, seconds, _ in
            sorted(tests, key=lambda test: -test[2])[:SLOWEST]]
    return table(rows) if rows else ""


def skipped(tests, of_scripts):
    """One line: how many tests for which reason. Empty: nothing was skipped."""
    reasons = collections.Counter(test["why"] for test in of_scripts if test["outcome"] == "skipped")
    known = {test["script"] for test in of_scripts if test["outcome"] == "skipped"}
    for _, name, _, is_skipped in tests:
        if is_skipped and name.rpartition(".")[2] not in known:
            reasons[f"{name} gave no reason"] += 1
    return "; ".join(f"{count} ({why})" for why, count in reasons.most_common())


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], "phases.tsv").is_file():
        sys.exit(__doc__.split("usage: ")[1])
    folder = pathlib.Path(sys.argv[1])
    tests = list(ctest_tests(folder))
    print(f"== where the time went\n{time_table(phases(folder))}")
    print(f"== the slowest tests\n{slowest(tests)}")
    why = skipped(tests, script_tests(folder))
    if why:
        print(f"tests skipped: {why}")


if __name__ == "__main__":
    main()
