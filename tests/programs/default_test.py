#!/usr/bin/env python3
"""`verbena default`: programs use Verbena without `verbena run`, and then no longer. Runs in a user
namespace whose /etc is an overlay, so the system does not change.

usage: default_test.py BUILD_DIR [UNITTEST_ARGS...]
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import testing

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/test").resolve()
VERBENA = BUILD / "bin/verbena"
LIBRARY = BUILD / "lib/libibverbs.so.1"
PROGRAM = shutil.which("ibv_devinfo")

OVERLAY = """
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" none /etc
"""


def in_own_etc(script):
    """Runs a script of bash as root of a user namespace with an /etc of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["unshare", "-rm", "bash", "-c", OVERLAY + script, "bash", folder]
        return subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "VERBENA": str(VERBENA),
                                   "PROGRAM": PROGRAM or "", "VERBENA_ADDRESS": "127.33.9.1"})


class Default(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if PROGRAM is None:
            raise unittest.SkipTest("ibv_devinfo is not installed")
        tried = in_own_etc("true")
        if tried.returncode != 0:
            raise unittest.SkipTest(f"no overlay in a user namespace: {tried.stderr.strip()}")
        if LIBRARY.parent.stat().st_mode & 0o022:
            raise unittest.SkipTest("others can write to the build folder")

    def test_on_makes_programs_use_verbena_and_off_undoes_it(self):
        done = in_own_etc("""
            first() { ldd "$PROGRAM" | grep -o '/.*libibverbs.so.1'; }
            first
            "$VERBENA" default
            "$VERBENA" default on
            first
            "$PROGRAM" | grep hca_id
            "$VERBENA" default
            "$VERBENA" default off
            first
            find /etc/ld.so.conf.d -name '*verbena*'
        """)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        system = lines[0]
        off = "off: programs use the system's libibverbs, but under `verbena run`"
        on = f"on: programs use {LIBRARY}"
        self.assertNotEqual(system, str(LIBRARY))
        self.assertRegex(lines.pop(4), r"hca_id:\s+verbena0")
        self.assertEqual(lines, [system, off, on, str(LIBRARY), on, off, system])

    def test_verbena_run_is_the_same_in_both_states(self):
        done = in_own_etc('"$VERBENA" default on >/dev/null; "$VERBENA" run -- "$PROGRAM" -l; '
                          '"$VERBENA" default off >/dev/null; "$VERBENA" run -- "$PROGRAM" -l')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("verbena0"), 2)

    def test_says_what_it_cannot_write(self):
        done = subprocess.run([VERBENA, "default", "on", "--root", "/no/such/folder"],
                              capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/no/such/folder/etc/ld.so.conf.d/00-verbena.conf", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    testing.main()
