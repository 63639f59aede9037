"""Programs that people run, over verbs or over TCP: each class is one program and one number. Both
transports of a program run on the same site, one after the other in each round."""

import dataclasses
import json
import os
import re
import subprocess

import ceph_cluster
import qemu_guest
from measurements import Failed, finish, listens
from sites import harness

HERE = harness.pathlib.Path(__file__).resolve().parent
GLOO_SOURCE = HERE.parent / "tests/programs/gloo/collectives.cc"
MEMORY_FOLDER = harness.pathlib.Path("/dev/shm")


def finish_all(programs):
    """Waits for programs that end by themselves; their outputs."""
    try:
        return [finish(program) for program in programs]
    finally:
        for program in programs:
            program.kill()


@dataclasses.dataclass(frozen=True)
class Ceph:
    """`rados bench` on one monitor and one OSD in memory: MB/s. Objects to be read are written
    before, and deleted afterwards. The cluster lives until the end of the run of benchmarks."""
    messenger: str  # async+rdma or async+posix
    mode: str       # write, seq or rand
    size: int
    depth: int
    seconds: int = 5

    def run(self, site):
        cluster = site.keep(f"ceph {self.messenger}", lambda: self._cluster(site))
        return cluster.measure(self.mode, self.size, self.depth, self.seconds)

    def _cluster(self, site):
        folder = site.new_folder()
        port = harness.free_tcp_port()
        while 6800 <= port <= 7300:  # which OSDs take
            port = harness.free_tcp_port()
        cluster = ceph_cluster.Cluster(site.build.start, folder, site.build.address, port,
                                       self.messenger)
        cluster.bring_up()
        return cluster

    def __str__(self):
        return f"rados bench {self.mode}, {self.size} B, {self.depth} in flight ({self.messenger})"


@dataclasses.dataclass(frozen=True)
class Gloo:
    """AllReduce of two ranks by gloo's chunked ring: us for each, the median."""
    transport: str  # ibverbs or tcp
    size: int       # bytes of the vector
    rounds: int

    def run(self, site):
        program, store = self._program(site), site.new_folder()
        ranks = [site.start_on_device(side.on_any_core(), program, rank, 2, self.transport, store,
                                      "ring_chunked", self.size // 4, self.rounds, side.address)
                 for rank, side in enumerate((site.left, site.right))]
        output = finish_all(ranks)[0]
        found = re.search(r"median us: ([\d.]+), wrong elements: 0$", output, re.MULTILINE)
        if not found:
            raise Failed(output)
        return float(found[1])

    @staticmethod
    def _program(site):
        program = site.folder / "gloo_collectives"
        if not program.exists():
            subprocess.run(["g++", "-std=c++17", "-O2", "-w", GLOO_SOURCE, "-o", program, "-lgloo",
                            "-libverbs"], check=True, stdin=subprocess.DEVNULL)
            program.chmod(0o755)
        return program

    def __str__(self):
        return f"gloo AllReduce, {self.size} B ({self.transport})"


@dataclasses.dataclass(frozen=True)
class QEMUMigration:
    """A running guest whose memory is random, to another QEMU: total time in ms, as QEMU tells it."""
    scheme: str  # rdma or tcp
    memory_mib: int

    def run(self, site):
        folder, guests = site.new_folder(MEMORY_FOLDER), []
        try:
            with open(folder / "source.memory", "wb") as file:
                for _ in range(self.memory_mib):
                    file.write(os.urandom(1 << 20))
            port = 20000 + os.getpid() % 10000
            guests.append(self._guest(site, site.left, folder, "source"))
            guests.append(self._guest(site, site.right, folder, "destination",
                                      f"{self.scheme}:{site.right.address}:{port}"))
            source = guests[0]
            source.wait_until_running()
            source.limit_bandwidth(1 << 40)
            result = source.migrate(f"{self.scheme}:{site.right.address}:{port}", 120)
        finally:
            for guest in guests:
                guest.close()
            harness.shutil.rmtree(folder, ignore_errors=True)
        if result["status"] != "completed":
            raise Failed(str(result))
        return result["total-time"]

    def _guest(self, site, side, folder, name, incoming=None):
        def start(*command):
            return site.start_on_device(side.on_any_core(), *command)
        return qemu_guest.Guest(start, folder, name, self.memory_mib, incoming)

    def __str__(self):
        return f"QEMU migration of {self.memory_mib} MiB ({self.scheme})"


@dataclasses.dataclass(frozen=True)
class Fio:
    """WRITEs or a TCP stream from one fio to another: GB/s."""
    engine: str  # rdma or net
    size: int
    depth: int
    seconds: int = 3

    def run(self, site):
        port = harness.free_tcp_port()
        common = ["fio", f"--ioengine={self.engine}", f"--bs={self.size}", f"--iodepth={self.depth}",
                  "--size=100g", f"--runtime={self.seconds}", "--time_based", f"--port={port}"]
        if self.engine == "rdma":
            server_options = ["--rw=read", "--verb=recv"]
            client_options = ["--rw=write", "--verb=write"]
        else:
            server_options = ["--rw=read", "--listen", "--protocol=tcp"]
            client_options = ["--rw=write", "--protocol=tcp"]
        server = site.start_on_device(site.left, *common, *server_options, "--name=server")
        try:
            harness.wait_until(lambda: server.ended() or self._is_ready(server, port), 30, "fio listens")
            client = site.start_on_device(site.right, *common, *client_options, "--name=client",
                                          f"--hostname={site.left.address}", "--output-format=json")
            output = finish(client)
        finally:
            server.kill()
        return json.loads(output[output.index("{"):])["jobs"][0]["write"]["bw_bytes"] / 1e9

    def _is_ready(self, server, port):
        if self.engine == "net":
            return harness.sockets("tcp", port, "0A", pid=server.pid)
        return "waiting for connection" in server.output()

    def __str__(self):
        return f"fio {self.engine}, {self.size} B, {self.depth} in flight"


@dataclasses.dataclass(frozen=True)
class RStream:
    """rstream on ordinary sockets, which librspreload makes rsockets of, or not. GB/s for a stream of
    large transfers, us one way for transfers in turn."""
    over: str  # rsockets or tcp
    size: int
    count: int
    what: str

    PRELOAD = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"

    def run(self, site):
        port = str(20000 + harness.free_tcp_port() % 10000)
        rounds, transfers = (self.count, 1) if self.what == "us" else (10, self.count)
        command = ["rstream", "-T", "s", "-p", port, "-S", self.size, "-I", rounds, "-C", transfers]
        preload = {"LD_PRELOAD": self.PRELOAD} if self.over == "rsockets" else {}
        wrapped = ["env", *(f"{name}={value}" for name, value in preload.items()), *command]
        server = site.start_on_device(site.left, *wrapped, "-b", site.left.address)
        output = ""
        try:
            for _ in range(50):
                client = site.start_on_device(site.right, *wrapped, "-s", site.left.address)
                if client.wait(60) == 0:
                    output = client.output()
                    break
                client.kill()
                harness.time.sleep(0.1)
        finally:
            server.kill()
        row = re.search(r"^custom .*?([\d.]+)s +([\d.]+) +([\d.]+)$", output, re.MULTILINE)
        if not row:
            raise Failed(f"{server}\n{client}")
        return float(row[3]) if self.what == "us" else float(row[2]) / 8

    def __str__(self):
        return f"rstream of {self.size} B over {self.over}"


@dataclasses.dataclass(frozen=True)
class EventWaits:
    """bench/verbs/event_waits.cc: exchanges of 64 B by threads that sleep, thousands in a second."""
    over: str   # verbs or tcp
    waits: str  # threads: one for each connection; epoll: one for all
    connections: int
    seconds: int = 2

    def run(self, site):
        port = harness.free_tcp_port()
        program = site.build.folder / "bench" / "verbs_event_waits"
        answerer = site.start_on_device(site.left.on_any_core(), program, "answer", port)
        try:
            listens("tcp", port, answerer, "0A")
            return float(finish(site.start_on_device(
                site.right.on_any_core(), program, "ask", site.left.address, port, self.over,
                self.waits, self.connections, self.seconds), answerer))
        finally:
            answerer.kill()

    def __str__(self):
        return f"event_waits, {self.over}, {self.waits}, {self.connections} connections"
