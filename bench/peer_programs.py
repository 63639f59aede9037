"""Programs of other projects' trees, over verbs or over TCP. `./dev peers PATH` has built them, and what
was not built has no figure."""

import dataclasses
import re
import unittest

from measurements import Failed, finish, listens
from sites import harness

PEERS = harness.pathlib.Path(__file__).resolve().parents[1] / "build/peers"


def built(tree, path):
    program = PEERS / tree / "build" / path
    if not program.exists():
        raise unittest.SkipTest(f"build/peers has no {program.name} of {tree}: ./dev peers PATH makes it")
    return program


@dataclasses.dataclass(frozen=True)
class BRPC:
    """rdma_performance of brpc in its default event mode: GB/s of attachments, each in a call of its
    own. The server answers without them."""
    rdma: bool
    size: int
    threads: int = 2
    depth: int = 4
    seconds: int = 3

    # Registered at once, and zeroed by the kernel; the default of 1 GiB takes most of a second.
    POOL_MIB = 256

    def run(self, site):
        port, other = harness.free_tcp_port(), harness.free_tcp_port()
        folder = "rdma_performance"
        common = [f"-use_rdma={str(self.rdma).lower()}",
                  f"-rdma_memory_pool_initial_size_mb={self.POOL_MIB}"]
        server = site.start_on_device(site.left.on_any_core(), built("brpc", f"{folder}/server"),
                                      *common, f"-port={port}")
        try:
            listens("tcp", port, server, "0A")
            output = finish(site.start_on_device(
                site.right.on_any_core(), built("brpc", f"{folder}/client"), *common,
                f"-servers={site.left.address}:{port}", f"-dummy_port={other}",
                f"-thread_num={self.threads}", f"-queue_depth={self.depth}",
                f"-attachment_size={self.size}", f"-test_seconds={self.seconds}"))
        finally:
            server.kill()
        found = re.search(r"Throughput: ([\d.]+)MB/s", output)
        if not found or "RPC call failed" in output:
            raise Failed(output)
        return float(found[1]) * 2 ** 20 / 1e9

    def __str__(self):
        over = "verbs" if self.rdma else "TCP"
        return f"brpc, {self.size} B, {self.threads} threads, {self.depth} in flight ({over})"


@dataclasses.dataclass(frozen=True)
class Mooncake:
    """transfer_engine_bench of Mooncake, with its default of two workers for a device: blocks written
    by two threads, in batches: GB/s."""
    protocol: str  # rdma or tcp
    size: int
    seconds: int = 3

    BUFFER = 256 << 20

    def run(self, site):
        program = built("mooncake", "example/transfer_engine_bench")
        # It takes the next port too; neither is one that the kernel gives to others.
        ports = [20000 + 2 * (harness.free_tcp_port() % 5000) for _ in range(2)]
        names = [f"{side.address}:{port}" for side, port in zip((site.left, site.right), ports)]

        def start(side, name, mode, *options):
            return site.start_on_device(
                side.on_any_core(), program, f"--mode={mode}", f"--protocol={self.protocol}",
                "--metadata_server=P2PHANDSHAKE", f"--local_server_name={name}",
                "--device_name=verbena0", f"--buffer_size={self.BUFFER}", "--report_precision=4",
                *options, environment={"MC_GID_INDEX": "3"})

        target = start(site.left, names[0], "target")
        try:
            harness.wait_until(lambda: target.ended() or "numa node num" in target.output(), 30,
                               "Mooncake's target is ready")
            output = finish(start(
                site.right, names[1], "initiator", f"--segment_id={names[0]}", "--operation=write",
                f"--block_size={self.size}", "--batch_size=64", "--threads=2",
                f"--duration={self.seconds}"))
        finally:
            target.kill()
        found = re.search(r"throughput ([\d.]+) GB/s", output)
        if not found:
            raise Failed(output)
        return float(found[1])

    def __str__(self):
        return f"Mooncake, {self.size} B ({self.protocol})"
