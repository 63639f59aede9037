"""What the library costs where it does nothing: read from /proc, of all threads of a process."""

import dataclasses
import os
import time

from measurements import Failed, listens
from sites import harness

WATCH_S = 2


def descendants(pid):
    """The process and those that it started."""
    children = harness.pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in descendants(int(child)))]


def of_threads(pid, file):
    return [task.joinpath(file).read_text()
            for process in descendants(pid)
            for task in harness.pathlib.Path(f"/proc/{process}/task").iterdir()]


def wakeups(pid):
    """How often its threads have gone to sleep."""
    return sum(int(line.split()[1]) for text in of_threads(pid, "status")
               for line in text.splitlines() if line.startswith("voluntary_ctxt_switches"))


def cpu_s(pid):
    ticks = os.sysconf("SC_CLK_TCK")
    after_name = [text.rpartition(")")[2].split() for text in of_threads(pid, "stat")]
    return sum(int(fields[11]) + int(fields[12]) for fields in after_name) / ticks


def server_of(site, command, port):
    server = site.start_on_device(site.left, *command)
    listens("tcp", port, server, "0A")
    return server


@dataclasses.dataclass(frozen=True)
class IdleWakeups:
    """Of a program that has the device open, with a QP, and waits for somebody to connect by TCP:
    1/s."""

    def run(self, site):
        port = harness.free_tcp_port()
        server = server_of(site, ("ib_write_bw", "-p", port), port)
        try:
            time.sleep(0.5)  # it has gone to sleep
            before = wakeups(server.pid)
            time.sleep(WATCH_S)
            return (wakeups(server.pid) - before) / WATCH_S
        finally:
            server.kill()

    def __str__(self):
        return "wakeups of an idle ib_write_bw"


@dataclasses.dataclass(frozen=True)
class TargetCPU:
    """Of the process that a saturating WRITE goes to, as a share of one core: %."""
    size: int

    def run(self, site):
        port = harness.free_tcp_port()
        command = ("ib_write_bw", "-s", self.size, "-D", WATCH_S + 3, "-F", "-p", port)
        server = server_of(site, command, port)
        client = site.start_on_device(site.right, *command, site.left.address)
        try:
            time.sleep(1.5)  # connected, and writing
            before = cpu_s(server.pid)
            time.sleep(WATCH_S)
            share = (cpu_s(server.pid) - before) / WATCH_S * 100
            if client.ended():
                raise Failed(f"{client}\n{server}")
            return share
        finally:
            client.kill()
            server.kill()

    def __str__(self):
        return f"CPU of the target of ib_write_bw -s {self.size}"
