#!/usr/bin/env python3
"""./dev interop: Verbena against Linux's own soft-RoCE (rdma_rxe), which runs in a small guest
(tests/lab). Standard programs, one side here on `verbena run`, the other in the guest, both ways;
scripted conversations with their completions and data checked; faults; packet loss in the path.
What we sent is decoded by tshark.

usage: run.py [BUILD_DIR] [--quick] [-k PATTERN] [--list] [--keep DIR]

  BUILD_DIR    of Verbena (default: build/release)
  --quick      each program in one direction only, and not each of its options (unless
               VERBENA_THOROUGH=1)
  -k PATTERN   only the cases whose name contains it
  --list       name the cases, run nothing
  --keep DIR   leave the packet captures there

The exit status is 77 where a guest cannot run: no QEMU, not root, no /dev/net/tun.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "programs"))
import testing  # noqa: E402

LAB = HERE.parent / "lab"
SKIPPED = 77
LINK_MTU = 4200  # at the boot; suite.py makes it smaller
TIME_LIMIT_S = 1100


def why_not():
    """What this machine lacks to run a guest, or an empty string."""
    for program in ("qemu-system-x86_64", "tcpdump", "tshark", "ip"):
        if not shutil.which(program):
            return f"{program} is not installed"
    if os.geteuid() != 0:
        return "a guest's network needs root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    if subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"],
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return "network namespaces cannot be made here"
    return ""


def run_suite(arguments, folder):
    inner = [sys.executable, HERE / "suite.py", arguments.build, "--captures", folder,
             *(["--all"] if arguments.all else []),
             *(["-k", arguments.pattern] if arguments.pattern else [])]
    command = [LAB / "guest-run", "--raw", "--rdma", "rxe", "--mtu", LINK_MTU, "--share", HERE,
               "--time-limit", TIME_LIMIT_S, "--host", shlex.join(map(str, inner))]
    return subprocess.run([str(part) for part in command], check=False).returncode


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1], add_help=True)
    parser.add_argument("build", nargs="?", default=HERE.parents[1] / "build/release",
                        type=pathlib.Path)
    parser.add_argument("-k", dest="pattern", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    arguments.all = testing.THOROUGH or not arguments.quick
    if arguments.list:
        return subprocess.run([sys.executable, HERE / "suite.py", "--list", "--all"],
                              check=False).returncode
    arguments.build = arguments.build.resolve()
    if not (arguments.build / "bin/verbena").exists():
        sys.exit(f"{arguments.build}/bin/verbena does not exist: ./dev build")
    reason = why_not()
    if not reason and subprocess.run([LAB / "guest-build"], check=False).returncode != 0:
        reason = "the guest could not be built"
    if reason:
        print(f"interop: SKIPPED, nothing was run against Linux's soft-RoCE: {reason}")
        testing.note("interop", "skipped", 0, reason)
        return SKIPPED
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="verbena-interop-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return run_suite(arguments, folder.resolve())
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
