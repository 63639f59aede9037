"""How a test script runs its unittest cases: which of them, and what it notes of each.

VERBENA_THOROUGH=1 runs all tests; without it those marked `@thorough` are left out.
VERBENA_TEST_LOG=FILE gets a JSON line for each test: script, name, outcome, seconds, and why it was
skipped. `./dev test` makes its tables from them (tests/tools/summary.py).
"""

import json
import os
import pathlib
import sys
import time
import unittest

THOROUGH = os.environ.get("VERBENA_THOROUGH") == "1"
SCRIPT = pathlib.Path(sys.argv[0]).stem


def thorough(test):
    """Marks a test, or a class of tests, that only a thorough run has: another test proves the same
    in less detail."""
    return test if THOROUGH else None


def sample(items, every):
    """All items in a thorough run, otherwise the first of each `every`."""
    items = list(items)
    return items if THOROUGH else items[::every]


def note(name, outcome, seconds, why=""):
    path = os.environ.get("VERBENA_TEST_LOG")
    if not path:
        return
    line = {"script": SCRIPT, "test": name, "outcome": outcome, "seconds": round(seconds, 2),
            "why": why}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


class Result(unittest.TextTestResult):
    """Notes each test. A subclass learns the outcome of a test by ended()."""

    def startTest(self, test):
        self._bad_before = len(self.failures) + len(self.errors)
        self._skipped_before = len(self.skipped)
        self._started = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        outcome, why = "passed", ""
        if len(self.failures) + len(self.errors) > self._bad_before:
            outcome = "failed"
        elif len(self.skipped) > self._skipped_before:
            outcome, why = "skipped", self.skipped[-1][1]
        note(test.id().removeprefix("__main__."), outcome, time.monotonic() - self._started, why)
        self.ended(test, outcome)

    def ended(self, test, outcome):
        pass

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if not isinstance(test, unittest.TestCase):  # a whole class, by its setUpClass
            note(str(test), "skipped", 0, reason)


def main(result=Result, argv=None):
    unittest.main(argv=argv, verbosity=2, buffer=False,
                  testRunner=unittest.TextTestRunner(verbosity=2, resultclass=result))
