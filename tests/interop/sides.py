"""The two sides of an interop case, and programs that run on them: `verbena run` here, and a guest of
tests/lab with Linux's soft-RoCE. For use inside `guest-run --host`."""

import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import time

LIMIT_S = 60  # of one program; emulated, a guest is slow


class Program:
    """A running program, its output in one file."""

    def __init__(self, side, command, popen_command):
        self.side, self.command = side, command
        self._file = tempfile.TemporaryFile()
        self._process = subprocess.Popen(popen_command, stdin=subprocess.DEVNULL, stdout=self._file,
                                         stderr=subprocess.STDOUT, start_new_session=True)

    @property
    def status(self):
        """The exit status; None while it runs."""
        return self._process.poll()

    def wait(self, limit_s=LIMIT_S):
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        if self.status is None:
            os.killpg(self._process.pid, signal.SIGTERM)  # guest-exec ends its command then
            if self.wait(3) is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def output(self):
        size = os.fstat(self._file.fileno()).st_size
        return os.pread(self._file.fileno(), size, 0).decode(errors="replace")

    def __str__(self):
        state = "still running" if self.status is None else f"exit status {self.status}"
        return f"{self.side.name}$ {self.command}\n{self.output().rstrip()}\n[{state}]"


class Verbena:
    """This machine."""
    name = "verbena"
    address = "10.77.0.1"
    pingpong = "-g 3"
    perftest = "-x 3"
    pingpong_ipv6 = "-g 1"
    conversation = "VP_DEV=verbena0 VP_GID=3"

    def __init__(self, build):
        self.verbena = pathlib.Path(build) / "bin/verbena"
        self.folder = pathlib.Path(__file__).resolve().parent

    def start(self, command):
        return Program(self, command, [self.verbena, "run", "--", "bash", "-c", "exec " + command])

    def listens(self, port):
        return subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True,
                              check=False).stdout != b""


class Linux:
    """The guest."""
    name = "linux"
    address = "10.77.0.2"
    pingpong = "-d rxe0 -g 1"
    perftest = "-d rxe0 -x 1"
    pingpong_ipv6 = "-d rxe0 -g 0"
    conversation = "VP_DEV=rxe0 VP_GID=1"
    folder = pathlib.Path("/host")

    def start(self, command):
        return Program(self, command, ["guest-exec", f"exec timeout {LIMIT_S} {command}"])

    def listens(self, port):
        return self.call(f"ss -Hltn 'sport = :{port}' | grep -q .") == 0

    @staticmethod
    def call(command):
        """Runs a shell line to its end; its exit status."""
        return subprocess.run(["guest-exec", command], check=False).returncode


def wait_until(condition, limit_s, what):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {limit_s} s")
        time.sleep(0.05)


def quoted(*parts):
    return shlex.join(str(part) for part in parts)
