"""What is measured with which program. Each class is one way to get one number from a site; equal
objects are run once in a round. Bandwidths in GB/s, latencies in us (one way, or as the program
says), rates in M/s."""

import dataclasses
import json
import re
import shlex
import subprocess

from sites import harness, two_hosts

LIMIT_S = 90


class Failed(Exception):
    """The program did not give a number."""


def finish(program, *others):
    """Waits for the program, then for the others; Failed unless it ended well."""
    status = program.wait(LIMIT_S)
    for other in others:
        if other.wait(5) is None:
            other.kill()
    if status != 0:
        program.kill()
        raise Failed("\n".join(str(p) for p in (program, *others)))
    return program.output()


def listens(table, port, program, state=None):
    harness.wait_until(
        lambda: harness.sockets(table, port, state, pid=program.pid) or program.ended(),
        30, f"{program.command} listens on port {port}")


def in_words(environment, *words):
    return " ".join((*(f"{name}={value}" for name, value in environment), *words))


def perftest_value(row, what):
    if isinstance(row, harness.Latency):
        return row.typical_us
    if what == "M/s":
        return row.messages_per_s / 1e6
    return max(row.mib_per_s * 2 ** 20, row.messages_per_s * row.size) / 1e9


@dataclasses.dataclass(frozen=True)
class Perftest:
    """An unmodified perftest program on our library. `what`: GB/s, M/s or us."""
    program: str
    options: tuple
    what: str
    environment: tuple = ()  # variables, (name, value) each, of both ends

    def run(self, site):
        port = harness.free_tcp_port()
        command = [self.program, *self.options, "-p", port]
        variables = dict(self.environment)
        server = site.start_on_device(site.left, *command, environment=variables)
        try:
            listens("tcp", port, server, "0A")
            client = site.start_on_device(site.right, *command, site.left.address,
                                          environment=variables)
            output = finish(client, server)
        finally:
            server.kill()
        rows = harness.perftest_rows(output)
        if len(rows) != 1:
            raise Failed(f"{client}")
        return perftest_value(rows[0], self.what)

    def __str__(self):
        return in_words(self.environment, self.program, *self.options)


@dataclasses.dataclass(frozen=True)
class ManyQPs:
    """WRITEs of 64 B by `active` of so many QPs in turn, in runs: M/s. bench/verbs/many_qps.cc."""
    qps: int
    active: int
    run_length: int
    seconds: int = 2
    environment: tuple = ()  # of both ends

    def run(self, site):
        port, variables = harness.free_tcp_port(), dict(self.environment)
        program = site.build.folder / "bench" / "verbs_many_qps"
        answerer = site.start_on_device(site.left, program, "answer", port, environment=variables)
        try:
            listens("tcp", port, answerer, "0A")
            return float(finish(site.start_on_device(
                site.right, program, "ask", site.left.address, port, self.qps, self.active,
                self.run_length, self.seconds, environment=variables), answerer))
        finally:
            answerer.kill()

    def __str__(self):
        words = f"many_qps, {self.active} of {self.qps} QPs in runs of {self.run_length}"
        return in_words(self.environment, words)


def wake_up_us(site, start, name, percentile, *options):
    """What a program with an answerer and an asker, who gets `options`, prints of percentile 50 or
    99."""
    port, program = harness.free_tcp_port(), site.build.folder / "bench" / name
    answerer = start(site.left, program, "answer", port)
    try:
        listens("tcp", port, answerer, "0A")
        output = finish(start(site.right, program, "ask", site.left.address, port, *options), answerer)
        return float(output.split()[0 if percentile == 50 else 1])
    finally:
        answerer.kill()


@dataclasses.dataclass(frozen=True)
class EventLatency:
    """From posting a request to the wake-up of a thread that sleeps in ibv_get_cq_event(): us at one
    percentile. bench/verbs/event_latency.cc, which prints the histogram."""
    kind: str
    percentile: int  # 50 or 99
    count: int = 1000

    def run(self, site):
        return wake_up_us(site, site.start_on_device, "verbs_event_latency", self.percentile,
                          self.kind, self.count)

    def __str__(self):
        return f"event_latency, {self.kind}, percentile {self.percentile} of {self.count}"


@dataclasses.dataclass(frozen=True)
class SocketWakes:
    """The same of a thread that sleeps in read(2) on a TCP socket. bench/limits/wakes.cc."""
    way: str  # one-way or there-and-back
    percentile: int
    count: int = 1000

    def run(self, site):
        return wake_up_us(site, site.start, "limit_wakes", self.percentile, self.way, self.count)

    def __str__(self):
        return f"TCP, {self.way}, percentile {self.percentile} of {self.count}"


@dataclasses.dataclass(frozen=True)
class UCX:
    """ucx_perftest, on UCX's own transports. `what`: GB/s, M/s or us."""
    test: str
    transports: str
    size: int
    count: int
    what: str
    uct: tuple = ()  # UCT options that name a transport: -d memory -x cma -D zcopy

    def run(self, site):
        port = harness.free_tcp_port()
        command = ["ucx_perftest", "-f", "-t", self.test, "-s", self.size, "-n", self.count,
                   "-p", port, *self.uct]
        # Memory as malloc gives it; cma's own choice would be huge pages.
        variables = {"UCX_TLS": self.transports, "UCX_CMA_ALLOC": "heap",
                     "UCX_WARN_UNUSED_ENV_VARS": "n"}
        server = site.start(site.left, *command, environment=variables)
        try:
            listens("tcp", port, server, "0A")
            client = site.start(site.right, *command, site.left.address, environment=variables)
            output = finish(client, server)
        finally:
            server.kill()
        last = output.strip().splitlines()[-1].split()
        if len(last) != 8:
            raise Failed(f"{client}")
        # iterations, latency: 50 %, average, overall; MB/s: average, overall; messages/s likewise
        values = {"us": float(last[1]), "GB/s": float(last[5]) * 2 ** 20 / 1e9,
                  "M/s": float(last[7]) / 1e6}
        return values[self.what]

    def __str__(self):
        return f"ucx_perftest -t {self.test} -s {self.size} ({self.transports})"


@dataclasses.dataclass(frozen=True)
class Libfabric:
    """fi_pingpong over reliable unconnected endpoints of a provider: us for half a round trip."""
    provider: str
    size: int
    count: int = 100000  # the time to connect is in the figure
    environment: tuple = ()

    def run(self, site):
        port = harness.free_tcp_port()
        command = ["fi_pingpong", "-p", self.provider, "-e", "rdm", "-S", self.size, "-I",
                   self.count]
        start = site.start_on_device if "verbs" in self.provider else site.start
        variables = dict(self.environment)
        server = start(site.left, *command, "-B", port, environment=variables)
        try:
            listens("tcp", port, server, "0A")
            client = start(site.right, *command, "-P", port, site.left.address,
                           environment=variables)
            output = finish(client, server)
        finally:
            server.kill()
        rows = [line.split() for line in output.splitlines() if line[:1].isdigit()]
        if len(rows) != 1:
            raise Failed(output)
        return float(rows[0][6])  # bytes, sent, acknowledged, total, time, MB/s, usec/xfer, Mxfers/s

    def __str__(self):
        return in_words(self.environment, f"fi_pingpong -p {self.provider}, {self.size} B")


@dataclasses.dataclass(frozen=True)
class MPI:
    """Two ranks of bench/mpi/measure.c under Open MPI. `transport`: vader, tcp, ucx (UCX over TCP),
    or ours (UCX on our device)."""
    transport: str
    mode: str
    size: int
    count: int
    ranks: int = 2

    OPTIONS = {
        "vader": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"],
        "tcp": ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"],
        "ours": ["--mca", "pml", "ucx", "--mca", "btl", "self"],
        "ucx": ["--mca", "pml", "ucx", "--mca", "btl", "self", "-x", "UCX_TLS"],
    }

    def run(self, site):
        program = self._program(site)
        ranks = ["-n", str(self.ranks), "--oversubscribe", "--bind-to", "none"]
        if site.left.address != site.right.address:
            ranks += ["--host", f"{site.left.address}:1,{site.right.address}:1", "--mca",
                      "plm_rsh_agent", self._agent(site), "--mca", "oob_tcp_if_include",
                      "10.77.0.0/24", "--mca", "btl_tcp_if_include", "10.77.0.0/24"]
        # In a user namespace of its own an ordinary user looks like root.
        variables = {"TMPDIR": str(site.folder), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [program, self.mode, self.size, self.count]
        if self.transport == "ours":
            command = [site.build.verbena, "run", "--", *command]
            ranks += ["-x", "UCX_TLS", "-x", "UCX_NET_DEVICES", "-x", "VERBENA_ADDRESS"]
            variables |= {"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": "verbena0:1",
                          "VERBENA_ADDRESS": site.left.device}
        elif self.transport == "ucx":
            variables["UCX_TLS"] = "tcp,self"
        mpirun = harness.Program([*site.left.host, "mpirun", *ranks, *self.OPTIONS[self.transport],
                                  *command], variables)
        found = re.search(r"^RESULT ([\d.]+)$", finish(mpirun), re.MULTILINE)
        if not found:
            raise Failed(f"{mpirun}")
        return float(found[1])

    @staticmethod
    def _program(site):
        program = site.folder / "measure"
        if not program.exists():
            source = harness.pathlib.Path(__file__).parent / "mpi/measure.c"
            subprocess.run(["mpicc", "-O2", source, "-o", program], check=True,
                           stdin=subprocess.DEVNULL)
            program.chmod(0o755)
        return program

    @staticmethod
    def _agent(site):
        """What mpirun starts its daemon on the other host with: `agent HOST COMMAND`. It is in the
        user namespace of both already."""
        agent = site.folder / "agent"
        if not agent.exists():
            enter = shlex.join(part for part in site.right.host if part != "--user")
            agent.write_text(f'#!/bin/sh\nshift\nexec {enter} sh -c "$*"\n')
            agent.chmod(0o755)
        return str(agent)

    def __str__(self):
        return f"Open MPI {self.transport}: {self.mode} {self.size} B"


@dataclasses.dataclass(frozen=True)
class Collective:
    """Ranks of `verbena coll`: us for one operation, out of place. On two hosts one rank on each."""
    test: str
    size: int
    count: int
    ranks: int = 2
    environment: tuple = ()

    def run(self, site):
        arguments = ["-b", self.size, "-e", self.size, "--iters", self.count, "--no-check"]
        if site.left.address == site.right.address:
            done = harness.Program([*site.left.host, site.build.verbena, "coll", self.test, "-n",
                                    self.ranks, "--address", site.left.device, *arguments],
                                   dict(self.environment))
            return self.time_in(finish(done))
        port = harness.free_tcp_port()
        programs = [harness.Program(
            [*side.host, site.build.verbena, "coll", self.test, "--address", side.device,
             "--rendezvous", f"tcp://{site.left.address}:{port}", *arguments],
            {"RANK": str(rank), "WORLD_SIZE": "2", **dict(self.environment)})
            for rank, side in enumerate((site.left, site.right))]
        return self.time_in([finish(program) for program in programs][0])

    @staticmethod
    def time_in(output):
        rows = [line.split() for line in output.splitlines() if re.match(r" +\d", line)]
        if len(rows) != 1:
            raise Failed(output)
        return float(rows[0][5])

    def __str__(self):
        return in_words(self.environment,
                        f"verbena coll {self.test}, {self.size} B, {self.ranks} ranks")


@dataclasses.dataclass(frozen=True)
class Gloo:
    """AllReduce by torch.distributed's gloo over TCP, one rank on each side."""
    size: int
    count: int

    PROGRAM = """
import statistics, sys, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
data = torch.ones(int(sys.argv[1]) // 4)
def one():
    start = time.perf_counter()
    dist.all_reduce(data)
    return (time.perf_counter() - start) * 1e6
for _ in range(3):
    one()
times = [one() for _ in range(int(sys.argv[2]))]
if dist.get_rank() == 0:
    print("RESULT", statistics.median(times))
"""

    def run(self, site):
        port = harness.free_tcp_port()
        programs = [harness.Program(
            [*side.host, "/usr/bin/python3", "-c", self.PROGRAM, self.size, self.count],
            {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": site.left.address,
             "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
             "GLOO_SOCKET_IFNAME": "lo" if site.left.address == site.right.address
             else two_hosts.INTERFACE})
            for rank, side in enumerate((site.left, site.right))]
        found = re.search(r"^RESULT ([\d.]+)", [finish(one) for one in programs][0], re.MULTILINE)
        if not found:
            raise Failed(f"{programs[0]}")
        return float(found[1])

    def __str__(self):
        return f"gloo: AllReduce of {self.size} B"


@dataclasses.dataclass(frozen=True)
class Iperf3:
    seconds: int = 2

    def run(self, site):
        port = harness.free_tcp_port()
        server = site.start(site.left, "iperf3", "-s", "-1", "-p", port)
        try:
            listens("tcp", port, server, "0A")
            client = site.start(site.right, "iperf3", "-J", "-c", site.left.address, "-p", port,
                                "-t", self.seconds)
            output = finish(client, server)
        finally:
            server.kill()
        return json.loads(output)["end"]["sum_received"]["bits_per_second"] / 8e9

    def __str__(self):
        return "iperf3"


@dataclasses.dataclass(frozen=True)
class Sockperf:
    """UDP ping-pong, non-blocking receives."""
    size: int

    def run(self, site):
        port = harness.free_tcp_port()
        server = site.start(site.left, "sockperf", "server", "--nonblocked", "-i", site.left.address,
                            "-p", port)
        try:
            listens("udp", port, server)
            client = site.start(site.right, "sockperf", "ping-pong", "--nonblocked", "-i",
                                site.left.address, "-p", port, "-t", "1", "-m", self.size)
            output = finish(client)
        finally:
            server.kill()
        found = re.search(r"percentile 50\.000 = +([\d.]+)", output)
        if not found:
            raise Failed(f"{client}")
        return float(found[1])

    def __str__(self):
        return f"sockperf ping-pong, {self.size} B"


@dataclasses.dataclass(frozen=True)
class Limit:
    """A program of bench/limits that needs no other side and prints GB/s and us for each call."""
    program: str
    options: tuple
    what: str = "GB/s"

    def run(self, site):
        program = site.start(site.right, site.build.folder / "bench" / self.program, *self.options)
        bandwidth, latency = map(float, finish(program).split())
        return {"GB/s": bandwidth, "us": latency, "M/s": 1 / latency}[self.what]

    def __str__(self):
        return " ".join(map(str, (self.program, *self.options)))


@dataclasses.dataclass(frozen=True)
class UDPStream:
    """Datagrams of that size, cut and joined by the kernel."""
    datagram: int
    rest_us: int = 0  # of a receiver that has found nothing
    seconds: int = 2

    def run(self, site):
        port = harness.free_tcp_port()
        program = site.build.folder / "bench" / "limit_udp_stream"
        receiver = site.start(site.left, program, "receive", port, self.rest_us)
        try:
            listens("udp", port, receiver)
            sender = site.start(site.right, program, "send", site.left.address, port, self.datagram,
                                self.seconds)
            finish(sender)
            return float(finish(receiver))
        finally:
            receiver.kill()

    def __str__(self):
        rest = f", receiver rests {self.rest_us} us" if self.rest_us else ""
        return f"UDP with GSO and GRO, {self.datagram} B{rest}"


@dataclasses.dataclass(frozen=True)
class SocketPingPong:
    """`protocol`: udp (both sides spin), tcp (both block) or tcp-polling (both spin)."""
    protocol: str
    size: int
    count: int = 20000

    def run(self, site):
        port = harness.free_tcp_port()
        program = site.build.folder / "bench" / "limit_pingpong"
        answerer = site.start(site.left, program, self.protocol, "answer", port)
        try:
            table = self.protocol.partition("-")[0]
            listens(table, port, answerer, "0A" if table == "tcp" else None)
            return float(finish(site.start(site.right, program, self.protocol, "ask",
                                           site.left.address, port, self.size, self.count)))
        finally:
            answerer.kill()

    def __str__(self):
        return f"raw {self.protocol.upper()} ping-pong, {self.size} B"
