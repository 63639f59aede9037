"""Runs unmodified RDMA programs on Verbena's device, as a user would: `verbena run -- PROGRAM`.

As root, programs are run as an ordinary user (nobody), so that what passes needs no privilege.
Every wait is for a condition, with a limit. What fails is shown with both commands and outputs.
"""

import atexit
import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import children
import testing

NOBODY = 65534
ROCE_PORT = 4791
PAIR_LIMIT_S = 120  # spinning pairs on a busy machine get little of it
START_LIMIT_S = 60
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# VERBENA_CHECK=fatal tests/programs/X_test.py: the checker finds nothing in these programs.
CHECK = {name: os.environ[name] for name in ("VERBENA_CHECK",) if name in os.environ}
FINDING = re.compile(r"verbena check: (?!left at exit)")


def own_loopback_address():
    """A loopback address for this run alone: other users' programs cannot have its port 4791."""
    pid = os.getpid()
    return f"127.{1 + pid % 250}.{pid // 250 % 256}.1"


ADDRESS = own_loopback_address()


class Failure(AssertionError):
    """A program did not do what it should; the message has all that is known."""


# --- the machine ----------------------------------------------------------------------------------


def ordinary_user():
    """What to give subprocess.Popen so that the program has no privilege; its uid."""
    if os.geteuid() != 0:
        return {}, os.geteuid()
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}, NOBODY


def readable_by_others(path):
    """Whether the user that ordinary_user() names can read the file; true unless that is another."""
    if os.geteuid() != 0:
        return True
    folders = all(folder.stat().st_mode & 0o001 for folder in path.parents)
    return folders and path.stat().st_mode & 0o004


def udp_counters():
    """The Udp lines of /proc/net/snmp, as a dictionary."""
    names, values = [line.split()[1:] for line in pathlib.Path("/proc/net/snmp").read_text()
                     .splitlines() if line.startswith("Udp:")]
    return dict(zip(names, map(int, values)))


def sockets(table, port, state=None, pid="self"):
    """The rows of /proc/PID/net/TABLE and TABLE6 that are bound to the port, each as a list of
    fields."""
    rows = []
    for name in (table, table + "6"):
        path = pathlib.Path(f"/proc/{pid}/net") / name
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and state in (None, fields[3]):
                rows.append(fields)
    return rows


_given_ports = set()


def free_tcp_port():
    """A port that nothing listens on, and that no earlier call has returned."""
    while True:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        if port not in _given_ports:
            _given_ports.add(port)
            return port


def wait_until(condition, limit_s, what):
    """Polls until condition() is true, and returns what it gave."""
    deadline = time.monotonic() + limit_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {limit_s} s")
        time.sleep(0.01)


# --- what was run, and how it went ----------------------------------------------------------------


class Record:
    """For docs/compatibility.md: where VERBENA_RECORD names a file, each test adds a line to it: its
    name, its outcome, the commands it has run, what it remarked on programs."""

    def __init__(self):
        self.commands = []
        self.remarks = {}  # by program

    def begin(self):
        self.commands.clear()
        self.remarks.clear()

    def remark(self, program, text):
        """The program's row says so if the test passes: why it cannot run, or how it has to."""
        self.remarks[program] = text

    def end(self, test, outcome):
        path = os.environ.get("VERBENA_RECORD")
        if not path or not self.commands:
            return
        line = {"test": test.id(), "outcome": outcome, "commands": self.commands,
                "remarks": self.remarks}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


record = Record()


class RecordingResult(testing.Result):
    def startTest(self, test):
        record.begin()
        super().startTest(test)

    def ended(self, test, outcome):
        record.end(test, outcome)


# --- one program ----------------------------------------------------------------------------------


class Program:
    """A running process, and what it has printed. Standard output and error go into one file."""

    def __init__(self, command, environment, user=None):
        self.command = [str(part) for part in command]
        self.environment = environment
        record.commands.append(self.command)
        self._file = tempfile.TemporaryFile(buffering=0)
        self._text = None  # of the file, once the process has ended
        user = ordinary_user()[0] if user is None else user
        base = {"PATH": PATH, "HOME": "/tmp", "LC_ALL": "C"} | CHECK
        self.process = children.Child(
            self.command, stdin=subprocess.DEVNULL, stdout=self._file, stderr=subprocess.STDOUT,
            env=base | environment, cwd="/tmp", start_new_session=True, **user)

    @property
    def pid(self):
        return self.process.pid

    def ended(self):
        if self._text is None and self.process.poll() is not None:
            self._text = self._read()
            self._file.close()
            if CHECK and FINDING.search(self._text):
                raise Failure(str(self))
        return self._text is not None

    def output(self):
        return self._text if self.ended() else self._read()

    def _read(self):
        size = os.fstat(self._file.fileno()).st_size
        return os.pread(self._file.fileno(), size, 0).decode(errors="replace")  # moves no offset

    def wait(self, limit_s):
        """The exit status; None: still running after the limit."""
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        self.ended()
        return self.process.returncode

    def kill(self):
        if not self.ended():
            self.process.kill()
        self.process.wait()
        self.ended()

    def status_text(self):
        status = self.process.poll()
        if status is None:
            return "still running"
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        return f"exit status {status}"

    def shell_line(self):
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join(settings + [shlex.join(self.command)])

    def __str__(self):
        return f"$ {self.shell_line()}\n{self.output().rstrip()}\n[{self.status_text()}]"


# --- a build, and programs on it ------------------------------------------------------------------


@dataclasses.dataclass
class Pair:
    """Two programs that ran against each other, both with exit status 0."""
    server: Program
    client: Program
    seconds: float


def again_without_clock(run):
    """For what runs a pair of perftest: it gives up where other work disturbs its measurement of the
    CPU's clock. The pair runs again then, twice at most."""
    @functools.wraps(run)
    def run_again(*arguments, **options):
        for _ in range(2):
            try:
                return run(*arguments, **options)
            except (Failure, AssertionError) as failure:
                if "Can't produce a report" not in str(failure):
                    raise
        return run(*arguments, **options)
    return run_again


class Build:
    """A build folder: what ./dev build leaves in build/PRESET."""

    def __init__(self, folder, address=ADDRESS, prefix=(), user=None):
        """`prefix`: a command that runs the command after it. `user`: for subprocess.Popen; unless
        given, an ordinary one."""
        self.folder = self.original = pathlib.Path(folder).resolve()
        self.address = address
        self.prefix = prefix
        self.user = user
        for file in (self.verbena, self.library):
            if not file.exists():
                sys.exit(f"{file} does not exist: ./dev build")
        if not all(readable_by_others(file) for file in (self.verbena, self.library)):
            self._copy_for_others()

    @property
    def verbena(self):
        return self.folder / "bin/verbena"

    @property
    def library(self):
        return self.folder / "lib/libibverbs.so.1"

    def _copy_for_others(self):
        """As root in a folder of root's own: the ordinary user gets a copy."""
        copy = pathlib.Path(tempfile.mkdtemp(prefix="verbena-copy-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        copy.chmod(0o755)
        for file in (self.verbena, *self.library.parent.glob("lib*.so*")):
            (copy / file.parent.name).mkdir(exist_ok=True)
            (copy / file.parent.name).chmod(0o755)
            shutil.copy(file, copy / file.parent.name)
            (copy / file.parent.name / file.name).chmod(0o755)
        self.folder = copy

    def start(self, *command, environment=None):
        """Starts a program on the device."""
        variables = {"VERBENA_ADDRESS": self.address} | (environment or {})
        return Program([*self.prefix, self.verbena, "run", "--", *command], variables, self.user)

    def run(self, *command, limit_s=PAIR_LIMIT_S, environment=None):
        """Runs a program on the device to its end, whichever that is."""
        return self._finish(self.start(*command, environment=environment), limit_s)

    def run_verbena(self, *arguments, limit_s=PAIR_LIMIT_S, environment=None):
        variables = {"VERBENA_ADDRESS": self.address} | (environment or {})
        return self._finish(Program([*self.prefix, self.verbena, *arguments], variables, self.user),
                            limit_s)

    def devices_of(self, *programs):
        """What `verbena stats --json` says of these programs; nothing of one that did not answer."""
        shown = self.run_verbena("stats", "--json")
        if shown.process.returncode != 0:
            raise Failure(f"it says nothing:\n{shown}")
        text = shown.output()
        devices = json.loads(text[text.index("["):])  # those that did not answer are warned of
        return [d for d in devices if d["pid"] in [program.pid for program in programs]]

    def wait_for_traffic(self, server, client):
        """Until the client is in the middle of its work, with its QPs; Failure where one ends."""
        def sends():
            ended = server.ended() or client.ended()
            return ended or any(qp["sent_packets"] > 100 for device in self.devices_of(client)
                                for qp in device["qps"])
        wait_until(sends, START_LIMIT_S, f"the client sends\n{server}\n{client}")
        if server.ended() or client.ended():
            raise Failure(f"it has ended\n{server}\n{client}")

    @staticmethod
    def _finish(program, limit_s):
        if program.wait(limit_s) is None:
            program.kill()
            raise Failure(f"not finished within {limit_s} s:\n{program}")
        return program

    def start_pair(self, program, *arguments, environment=None, to=None):
        """The server, and once it listens the client: `program ARGS` and `program ARGS ADDRESS`."""
        port = free_tcp_port()
        command = [program, *arguments, "-p", port]
        server = self.start(*command, environment=environment)
        try:
            wait_until(lambda: sockets("tcp", port, "0A") or server.ended(), START_LIMIT_S,
                       f"{program} listens on TCP port {port}")
        except Failure as failure:
            server.kill()
            raise Failure(f"{failure}\n{server}") from None
        if server.ended():
            raise Failure(f"the server ended before it listened:\n{server}")
        return server, self.start(*command, to or self.address, environment=environment)

    @again_without_clock
    def run_pair(self, program, *arguments, limit_s=PAIR_LIMIT_S, environment=None, watch=None):
        """Runs both to the end; Failure unless both exit with 0. watch(server, client) is called
        again and again meanwhile."""
        started = time.monotonic()
        server, client = self.start_pair(program, *arguments, environment=environment)

        def both_ended():
            if watch:
                watch(server, client)
            failed = any(p.ended() and p.process.returncode != 0 for p in (server, client))
            return failed or (server.ended() and client.ended())
        try:
            wait_until(both_ended, limit_s, "both end")
            for program_of_pair in (client, server):  # one has failed: the other may follow
                program_of_pair.wait(5)
            if server.process.poll() != 0 or client.process.poll() != 0:
                raise Failure("not both ended well")
        except Failure as failure:
            state = f"server {server.status_text()}, client {client.status_text()}"
            stop(server, client)
            raise Failure(f"{failure}: {state}\n{server}\n{client}") from None
        return Pair(server, client, time.monotonic() - started)


def stop(*programs):
    for program in programs:
        program.kill()


# --- what programs print --------------------------------------------------------------------------


@dataclasses.dataclass
class Bandwidth:
    size: int
    iterations: int
    mib_per_s: float
    messages_per_s: float


@dataclasses.dataclass
class Latency:
    size: int
    iterations: int
    typical_us: float
    average_us: float


def perftest_rows(output):
    """The result lines of perftest, one for each size."""
    rows, is_latency = [], None
    for line in output.splitlines():
        if "#bytes" in line:
            is_latency = "usec" in line
        elif is_latency is not None and re.match(r"\s*\d+\s+\d+\s+[\d.]", line):
            fields = [float(field) for field in line.split()]
            size, iterations = int(fields[0]), int(fields[1])
            if is_latency:
                rows.append(Latency(size, iterations, typical_us=fields[4], average_us=fields[5]))
            else:
                rows.append(Bandwidth(size, iterations, fields[3], fields[4] * 1e6))
    return rows


def pingpong_result(output):
    """Iterations, and microseconds for each, there and back; None: it printed none."""
    found = re.search(r"(\d+) iters in [\d.]+ seconds = ([\d.]+) usec/iter", output)
    return (int(found[1]), float(found[2])) if found else None


# --- tests ----------------------------------------------------------------------------------------


def build_from_command_line():
    """Takes the build folder from the command line; the rest is unittest's (-k PATTERN, ...)."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "build/release"
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        folder = sys.argv.pop(1)
    return Build(folder)


def main():
    testing.main(RecordingResult)
