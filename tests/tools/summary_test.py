#!/usr/bin/env python3
"""What summary.py makes of the files of a run."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(__file__).with_name("summary.py")
JUNIT = """<testsuite tests="3"><testcase name="host_test" time="12.4"/>
<testcase name="interop" time="0.1"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="programs.silent" time="0"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>"""
NOTES = ({"script": "interop", "test": "all", "outcome": "skipped", "seconds": 0, "why": "needs root"},
         {"script": "cli_test", "test": "a", "outcome": "passed", "seconds": 1, "why": ""},
         {"script": "raw_test", "test": "b", "outcome": "skipped", "seconds": 0, "why": "needs root"})


class SummaryTest(unittest.TestCase):
    def summary(self, folder):
        return subprocess.run([sys.executable, SUMMARY, folder], capture_output=True, text=True)

    def test_tables_and_reasons(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "phases.tsv").write_text("all\tinstall\t9\ntest\tbuild\t200\ntest\ttest\t61\n")
            (folder / "test.xml").write_text(JUNIT)
            (folder / "tests.jsonl").write_text("".join(json.dumps(note) + "\n" for note in NOTES))
            done = self.summary(folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertIn(["test", "-", "3:20", "1:01", "4:21"], rows)
        self.assertIn(["all", "0:09", "3:20", "1:01", "4:30"], rows)
        self.assertIn(["host_test", "test", "12", "s"], rows)
        self.assertEqual(done.stdout.splitlines()[-1],
                         "tests skipped: 2 (needs root); 1 (programs.silent gave no reason)")

    def test_a_folder_without_a_run_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            done = self.summary(name)
        self.assertEqual(done.returncode, 1)
        self.assertIn("summary.py FOLDER", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
