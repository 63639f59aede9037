"""NVMe over Fabrics: `verbena nvmf` and the plugin of nbdkit beside NBD over TCP and beside fio on the
file itself by io_uring. Reads of 512 MiB in memory: MB/s of 4 KiB blocks, GB/s of 1 MiB, us at depth 1."""

import contextlib
import dataclasses
import json

from cases import KIB, MIB, Case, Peer
from measurements import Failed, Perftest, finish, listens
from sites import harness

BYTES = 512 * MIB
SECONDS = 2
NQN = "nqn.2026-01.io.verbena:bench"


@dataclasses.dataclass(frozen=True)
class CachedFile:
    path: object

    def close(self):
        self.path.unlink(missing_ok=True)


def json_of(output):
    return json.loads(output[output.index("{"):])


@contextlib.contextmanager
def running(program, is_ready, what):
    try:
        harness.wait_until(lambda: program.ended() or is_ready(), 30, what)
        if program.ended():
            raise Failed(str(program))
        yield program
    finally:
        program.kill()


@contextlib.contextmanager
def nvmf_target(site, *options):
    """A target with a memory namespace. Its address and port."""
    port = harness.free_tcp_port()
    address = f"{site.left.address}:{port}"
    target = site.start(site.left, site.build.verbena, "nvmf", "target", "--nqn", NQN, "--namespace",
                        f"memory:{BYTES}", "--listen", address, *options)
    with running(target, lambda: "listening" in target.output(), "the target listens"):
        yield address


@dataclasses.dataclass(frozen=True)
class NVMfBench:
    """`verbena nvmf bench`. `what`: GB/s, MB/s, or us (the median)."""
    pattern: str
    size: int
    depth: int
    what: str
    polls: bool = False
    target_options: tuple = ()

    def run(self, site):
        poll = ("--poll",) if self.polls else ()
        with nvmf_target(site, *self.target_options, *poll) as address:
            told = json_of(finish(site.start(
                site.right, site.build.verbena, "nvmf", "bench", address, "--nqn", NQN, "--rw",
                self.pattern, "--block", self.size, "--depth", self.depth, "--seconds", SECONDS,
                "--json", *poll)))
        if self.what == "us":
            return told["latency_us"]["median"]
        return told["iops"] * self.size / (1e9 if self.what == "GB/s" else 1e6)

    def __str__(self):
        return " ".join(("verbena nvmf bench", self.pattern, f"{self.size} B, {self.depth} in flight",
                         *(("polling",) if self.polls else ()), *self.target_options))


@dataclasses.dataclass(frozen=True)
class Fio:
    """fio's reads: by its nbd engine over TCP from nbdkit's memory; by the same from our plugin, whose
    remote namespace a target has; or by io_uring from a file. GB/s or MB/s."""
    over: str  # tcp, plugin or file
    pattern: str
    size: int
    depth: int
    what: str

    def run(self, site):
        with getattr(self, f"_{self.over}")(site) as where:
            told = json_of(finish(site.start(
                site.right, "fio", "--name=read", f"--rw={self.pattern}", f"--bs={self.size}",
                f"--iodepth={self.depth}", f"--size={BYTES}", f"--runtime={SECONDS}", "--time_based",
                "--output-format=json", *where)))
        return told["jobs"][0]["read"]["bw_bytes"] / (1e9 if self.what == "GB/s" else 1e6)

    @contextlib.contextmanager
    def _tcp(self, site):
        port = harness.free_tcp_port()
        server = site.start(site.left, "nbdkit", "-f", "-i", site.left.address, "-p", port, "memory",
                            str(BYTES))
        with running(server, lambda: harness.sockets("tcp", port, "0A", pid=server.pid),
                     "nbdkit listens"):
            yield ("--ioengine=nbd", f"--uri=nbd://{site.left.address}:{port}")

    @contextlib.contextmanager
    def _plugin(self, site):
        plugin = site.build.folder.resolve() / "lib" / "nbdkit-verbena-plugin.so"
        socket = site.new_folder() / "nbd"
        with nvmf_target(site) as address:
            # fio has the core; nbdkit has many threads.
            server = site.start_on_device(site.right.on_any_core(), "nbdkit", "-f", "-U", socket,
                                          plugin, f"target={address}", f"nqn={NQN}")
            with running(server, socket.exists, "nbdkit listens"):
                yield ("--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}")

    @contextlib.contextmanager
    def _file(self, site):
        """In the page cache of the usual folder for temporary files, and read through it."""
        def make():
            file = site.new_folder() / "file"
            with open(file, "wb") as written:
                for _ in range(BYTES // MIB):
                    written.write(bytes(MIB))
            file.chmod(0o666)  # fio opens it for writing too
            return CachedFile(file)
        yield ("--ioengine=io_uring", f"--filename={site.keep('file of fio', make).path}",
               "--invalidate=0")

    def __str__(self):
        return f"fio {self.pattern}, {self.over}, {self.size} B, {self.depth} in flight"


@dataclasses.dataclass(frozen=True)
class AddedLatency:
    """What a 4 KiB read by `verbena nvmf` takes more than the device's own READ, both polling: us."""

    def run(self, site):
        read = Perftest("ib_read_lat", ("-s", "4096", "-n", "20000", "-F"), "us").run(site)
        return NVMfBench("randread", 4 * KIB, 1, "us", polls=True).run(site) - read

    def __str__(self):
        return "verbena nvmf bench --poll less ib_read_lat, 4096 B"


def beside(name, site, what, pattern, size, depth, unit, goals):
    """`goals`: of NBD over TCP, and of the file itself, if that is compared."""
    title = f"NVMe {what}"
    over_tcp = Peer("NBD over TCP", Fio("tcp", pattern, size, depth, unit), goals[0])
    of_file = [Peer("fio on the file", Fio("file", pattern, size, depth, unit), goals[1],
                    is_limit=True)] if len(goals) > 1 else []
    yield Case(f"nvmf-{name}", site, title, unit, NVMfBench(pattern, size, depth, unit),
               (over_tcp, *of_file))
    yield Case(f"nvmf-nbd-{name}", site, f"{title}, by nbdkit", unit,
               Fio("plugin", pattern, size, depth, unit), (over_tcp,))


CASES = (
    *beside("4k-local", "same host", "4 KiB random reads, 32 in flight", "randread", 4 * KIB, 32,
            "MB/s", (3.0, 0.5)),
    *beside("1m-local", "same host", "1 MiB reads, 8 in flight", "read", MIB, 8, "GB/s", (2.0, 0.8)),
    *beside("4k-wire", "veth", "4 KiB random reads, 32 in flight", "randread", 4 * KIB, 32, "MB/s",
            (1.5,)),
    *beside("1m-wire", "veth", "1 MiB reads, 8 in flight", "read", MIB, 8, "GB/s", (0.95,)),
    Case("nvmf-latency", "same host", "NVMe 4 KiB read, 1 in flight, polling, more than a READ", "us",
         AddedLatency(), (), goal=6),
)
