#!/usr/bin/env python3
"""pyverbs on Verbena, unmodified: pyverbs_tour.py in an interpreter that runs on the device, and
rdma-core's own tests, which Debian's package brings, as far as they are not about one vendor's card.

usage: pyverbs_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import gzip
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
TOUR = pathlib.Path(__file__).with_name("pyverbs_tour.py")
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's own
OWN_TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")
MODULES = ("addr", "atomic", "cq", "cq_events", "cqex", "device", "fork", "mr", "odp", "parent_domain",
           "pd", "qp", "qpex", "relaxed_ordering", "shared_pd")


def is_missing():
    return subprocess.run([PYTHON, "-c", "import pyverbs.device"], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode != 0


@unittest.skipIf(is_missing(), "python3-pyverbs is not installed")
class PyverbsTest(unittest.TestCase):
    def test_tour(self):
        """As text: the ordinary user that runs it may not be able to read this folder."""
        program = BUILD.run(PYTHON, "-c", TOUR.read_text())
        self.assertEqual(program.process.returncode, 0, program)
        self.assertIn("OK", program.output().splitlines(), program)

    def unpack(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-pyverbs-test-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        (folder / "tests").mkdir(0o755)
        for file in OWN_TESTS.iterdir():
            text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            (folder / "tests" / file.name.removesuffix(".gz")).write_bytes(text)
        return folder

    @unittest.skipUnless(OWN_TESTS.exists(), "rdma-core's tests are not installed")
    def test_those_of_rdma_core(self):
        program = BUILD.run(PYTHON, "-B", self.unpack() / "tests/run_tests.py", "-v",
                            "--dev", "verbena0", "--gid", "3",
                            *(f"tests.test_{module}" for module in MODULES), limit_s=240)
        output = program.output()
        ran = int(re.search(r"^Ran (\d+) tests", output, re.MULTILINE)[1])
        skipped = int((re.search(r"skipped=(\d+)", output) or [0, 0])[1])
        self.assertGreater(ran - skipped, 100, program)
        failed = re.findall(r"^(?:ERROR|FAIL): (\w+)", output, re.MULTILINE)
        self.assertEqual(failed, [], program)


if __name__ == "__main__":
    harness.main()
