"""Verbena beside Linux's soft-RoCE (rdma_rxe) and soft-iWARP (siw): the same perftest run in two
guests of the lab (tests/lab), of one emulated CPU each, on the same interface, the two stacks in
turn. Emulated: a figure alone means nothing, and a ratio does.

Needs root and a lab that is built (tests/lab/guest-build)."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time
import unittest

from measurements import Failed, perftest_value
from sites import harness

LAB = pathlib.Path(__file__).resolve().parents[1] / "tests/lab"
LINK_MTU = 4200  # gives both stacks a path MTU of 4096
PREFIX = "10.77.0."  # guest N is N + 1
BOOT_LIMIT_S, RUN_LIMIT_S, LAB_LIMIT_S = 120, 120, 7200
SERVER_START_S = 5  # nothing in the guest says when it listens


@dataclasses.dataclass(frozen=True)
class KernelStack:
    module: str
    kind: str
    options: tuple  # of perftest


@dataclasses.dataclass(frozen=True)
class OurStack:
    environment: tuple
    options: tuple


STACKS = {
    "rxe": KernelStack("rdma_rxe", "rxe", ("-d", "rxe0", "-x", "1")),
    "siw": KernelStack("siw", "siw", ("-R",)),
    "verbena": OurStack((), ()),
    "verbena iwarp": OurStack(("VERBENA_LINK=iwarp",), ("-R",)),
}


def why_not():
    """What is missing here, or an empty string."""
    if not shutil.which("qemu-system-x86_64"):
        return "qemu-system-x86_64 is not installed"
    if os.geteuid() != 0 or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "guests need root and /dev/net/tun"
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    built = pathlib.Path(os.environ.get("LAB_BUILD") or cache / "rdma-lab")
    return "" if (built / "root.img").exists() else "no guest is built: tests/lab/guest-build"


def needed_libraries(library):
    """Those that the guests may lack."""
    listed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return re.findall(r"=> (\S*/libisal\S+)", listed)


class Guests:
    """The two of them, with our library and the limit's program in /host."""
    name = "two guests"

    def __init__(self, build, folder):
        if reason := why_not():
            raise unittest.SkipTest(reason)
        share = folder / "guests"
        share.mkdir()
        library = build.folder / "lib/libibverbs.so.1"
        for file in (library, build.folder / "lib/librdmacm.so.1", *needed_libraries(library),
                     build.folder / "bench/limit_udp_window"):
            shutil.copy(file, share)
        self._lab = subprocess.Popen(
            [LAB / "guest-run", "--raw", "--guests", "2", "--cpus", "1", "--rdma", "none", "--mtu", str(LINK_MTU),
             "--share", share, "--time-limit", str(LAB_LIMIT_S), "--hold", str(LAB_LIMIT_S)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)
        self._environment = os.environ | {"LAB_SOCK": self._socket()}

    def close(self):
        os.killpg(self._lab.pid, signal.SIGTERM)  # unshare, in front of the lab, passes none on
        self._lab.wait()

    def _socket(self):
        for line in self._lab.stdout:
            if found := re.search(r"LAB_SOCK=([^,\s]+)", line):
                return found[1]
        raise unittest.SkipTest("the guests did not start")

    def start(self, number, command):
        return subprocess.Popen([LAB / "guest-exec", "-g", str(number), command], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=self._environment)

    def both(self, command):
        for number in (1, 2):
            run = self.start(number, command)
            output, _ = run.communicate(timeout=RUN_LIMIT_S)
            if run.returncode != 0:
                raise Failed(f"{command}\n{output}")

    @contextlib.contextmanager
    def driver(self, stack):
        """The kernel's driver, which takes the port of RoCE as long as it is loaded."""
        link = f"{stack.kind}0"
        self.both(f"modprobe {stack.module} && rdma link add {link} type {stack.kind} netdev eth0")
        try:
            yield
        finally:
            self.both(f"rdma link del {link}; modprobe -r {stack.module}")

    def exchange(self, command_of):
        """`command_of(number)` in guest 1, then in guest 2: what the latter prints."""
        server = self.start(1, command_of(1))
        time.sleep(SERVER_START_S)
        client = self.start(2, f"{command_of(2)} {PREFIX}2")
        try:
            output, _ = client.communicate(timeout=RUN_LIMIT_S)
            return output
        finally:
            for run in (client, server):
                run.kill()
                run.wait()


@dataclasses.dataclass(frozen=True)
class GuestPerftest:
    """`stack`: one of STACKS. `what`: GB/s or us."""
    stack: str
    program: str
    options: tuple
    what: str

    def run(self, site):
        stack = STACKS[self.stack]
        command = [self.program, *stack.options, *self.options]
        if isinstance(stack, OurStack):
            return self._value(site.exchange(lambda number: shlex.join(
                ["env", "LD_LIBRARY_PATH=/host", f"VERBENA_ADDRESS={PREFIX}{number + 1}",
                 *stack.environment, *command])))
        with site.driver(stack):
            return self._value(site.exchange(lambda _: shlex.join(command)))

    def _value(self, output):
        rows = harness.perftest_rows(output)
        if len(rows) != 1:
            raise Failed(f"{self}\n{output}")
        return perftest_value(rows[0], self.what)

    def __str__(self):
        return f"{' '.join([self.program, *self.options])} in guests ({self.stack})"


@dataclasses.dataclass(frozen=True)
class GuestUDP:
    """What bare UDP sockets do there (bench/limits/udp_window.cc)."""
    mode: str
    options: tuple  # SIZE and COUNT, or COUNT

    def run(self, site):
        output = site.exchange(lambda _: shlex.join(
            ["/host/limit_udp_window", self.mode, "4900", *map(str, self.options)]))
        try:
            return float(output)
        except ValueError:
            raise Failed(f"{self}\n{output}") from None

    def __str__(self):
        return f"UDP sockets, {self.mode} {' '.join(map(str, self.options))} in guests"
