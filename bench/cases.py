"""What is compared with what, and the goals: ratios of medians, ours to the peer's."""

import dataclasses

from cpu import IdleWakeups, TargetCPU
from measurements import (MPI, UCX, Collective, EventLatency, Gloo, Iperf3, Libfabric, Limit, ManyQPs,
                          Perftest, SocketPingPong, SocketWakes, Sockperf, UDPStream)
from security import SecuredPerftest
from soft_roce import GuestPerftest, GuestUDP

KIB = 1 << 10
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    measurement: object
    goal: float = None  # bandwidth, rate: ours is at least so much of it; latency: at most
    is_limit: bool = False  # of the machine; not another product


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    site: str  # as in sites.py
    what: str
    unit: str  # GB/s, MB/s, M/s: more is better; us, ms, 1/s and %: less is
    ours: object
    peers: tuple
    goal: float = None  # absolute, in `unit`

    @property
    def less_is_better(self):
        return self.unit in ("us", "ms", "1/s", "%")


def bandwidth(program, size, *options):
    return Perftest(program, ("-s", str(size), "-D", "2", "-F", *options), "GB/s")


def rate(program, size, *options):
    return Perftest(program, ("-s", str(size), "-D", "2", "-F", *options), "M/s")


def latency(program, size, *options, count=20000):
    return Perftest(program, ("-s", str(size), "-n", str(count), "-F", *options), "us")


def cma(test, size, count, unit="GB/s"):
    return UCX(test, "cma", size, count, unit, ("-d", "memory", "-x", "cma", "-D", "zcopy"))


def same_host_large(verb, size, count):
    program = {"write": "ib_write_bw", "read": "ib_read_bw"}[verb]
    return Case(
        f"local-{verb}-{size >> 10}k", "same host", f"{verb.upper()} {size >> 10} KiB", "GB/s",
        bandwidth(program, size),
        (Peer("process_vm", Limit("limit_process_vm", (verb, size, 1)), 0.9, is_limit=True),
         Peer("UCX cma", cma("put_bw" if verb == "write" else "get", size, count), 1.0),
         Peer("Open MPI vader", MPI("vader", "bandwidth", size, 100), 1.0)))


def with_environment(measurement, **variables):
    return dataclasses.replace(measurement, environment=tuple(variables.items()))


def shared(measurement):
    return with_environment(measurement, VERBENA_SHARE="on")


def in_arena(measurement):
    """The C library takes a program's memory from one mapping that grows, and not each large part
    from one of its own, which would begin anywhere and have few whole huge pages."""
    tunables = "glibc.malloc.mmap_max=0:glibc.malloc.top_pad=67108864"
    return with_environment(measurement, GLIBC_TUNABLES=tunables)


def same_host_shared(verb, size):
    program = {"write": "ib_write_bw", "read": "ib_read_bw"}[verb]
    return Case(f"shared-{verb}-{size >> 10}k", "same host",
                f"{verb.upper()} {size >> 10} KiB, VERBENA_SHARE=on", "GB/s",
                shared(bandwidth(program, size)),
                (Peer("Open MPI vader", MPI("vader", "bandwidth", size, 100), 2.5),))


# MPI's names of the tests of `verbena coll`.
COLLECTIVES = {"all_reduce": "allreduce", "all_gather": "allgather",
               "reduce_scatter": "reducescatter", "alltoall": "alltoall", "broadcast": "broadcast"}


def size_name(size):
    return f"{size // MIB}m" if size >= MIB else f"{size}b"


def collective(site, test, size, count, goal, ranks=2, gloo=None):
    """libverbena-coll beside Open MPI, and gloo where `gloo` is a goal: ratios of times."""
    transport = "vader" if site == "same host" else "tcp"
    peers = [Peer(f"Open MPI {transport}",
                  MPI(transport, COLLECTIVES[test], size, count, ranks), 1 / goal)]
    if gloo:
        peers.append(Peer("gloo tcp", Gloo(size, count), 1 / gloo))
    if site == "veth":
        peers.append(Peer("Open MPI, UCX tcp",
                          MPI("ucx", COLLECTIVES[test], size, count, ranks), 1 / goal))
    place = "local" if site == "same host" else "wire"
    return Case(f"{place}-coll-{test}-{size_name(size)}-{ranks}", site,
                f"verbena coll {test} {size_name(size)}, {ranks} ranks", "us",
                Collective(test, size, count, ranks), tuple(peers))


def collective_on_iwarp(size, count, gloo=None):
    case = collective("veth", "all_reduce", size, count, 1.0, gloo=gloo)
    return dataclasses.replace(case, name=case.name.replace("wire-", "iwarp-"),
                               what=f"{case.what}, iWARP",
                               ours=with_environment(case.ours, VERBENA_LINK="iwarp"))


def allreduce(site, size, count):
    peers = [Peer("Open MPI tcp", MPI("tcp", "allreduce", size, count),
                  1.0 if site == "same host" else 0.5)]
    if site == "same host":
        peers.append(Peer("Open MPI vader", MPI("vader", "allreduce", size, count), 1.1))
    return Case(f"{'local' if site == 'same host' else 'wire'}-allreduce-{size // MIB}m", site,
                f"allreduce {size // MIB} MiB, 2 ranks", "us",
                MPI("ours", "allreduce", size, count), tuple(peers))


def losing(share, size, retransmission):
    """Goodput of a wire that loses so many percent of all packets, each way."""
    kind = retransmission.replace("_", "-")
    return Case(f"loss-{share}-write-{size >> 10}k-{kind}", f"veth losing {share} %",
                f"WRITE {size >> 10} KiB, {share} % lost, {kind}", "GB/s",
                with_environment(bandwidth("ib_write_bw", size),
                                 VERBENA_RETRANSMISSION=retransmission),
                (Peer("iperf3", Iperf3()),))


def links(name, what, unit, measurement, *peers):
    """AF_PACKET and AF_XDP beside UDP sockets, on the same veth, and others beside AF_PACKET."""
    on = {link: with_environment(measurement, VERBENA_LINK=link)
          for link in ("udp", "packet", "xdp")}
    return Case(f"links-{name}", "veth, as root", f"{what}, AF_PACKET", unit, on["packet"],
                (Peer("UDP sockets", on["udp"]), Peer("AF_XDP", on["xdp"]), *peers))


def iwarp(name, what, unit, measurement, *peers):
    """An iWARP device beside programs over the same kernel's TCP, and beside RoCE on UDP sockets."""
    ours = with_environment(
        dataclasses.replace(measurement, options=("-R", *measurement.options)),
        VERBENA_LINK="iwarp")
    return Case(f"iwarp-{name}", "veth", f"{what}, iWARP", unit, ours,
                (*peers, Peer("RoCE on UDP", measurement)))


def beside_soft_roce(name, what, unit, program, *options):
    """At least twice its bandwidth; a latency that is no worse. The limit: the same datagrams by
    sockets, without a CRC and without a transport."""
    limit = (GuestUDP("exchange", (300,)) if unit == "us" else GuestUDP("stream", (4116, 8000)))
    ours, theirs = (GuestPerftest(stack, program, (*options, "-F"), unit)
                    for stack in ("verbena", "rxe"))
    return Case(f"soft-roce-{name}", "two guests", what, unit, ours,
                (Peer("Linux soft-RoCE", theirs, 1.0 if unit == "us" else 2.0),
                 Peer("UDP sockets", limit, is_limit=True)))


def beside_soft_iwarp(name, what, unit, program, *options):
    """No worse in bandwidth and latency."""
    ours, theirs = (GuestPerftest(stack, program, (*options, "-F"), unit)
                    for stack in ("verbena iwarp", "siw"))
    return Case(f"soft-iwarp-{name}", "two guests", f"{what}, iWARP", unit, ours,
                (Peer("Linux siw", theirs, 1.0),))


def secured(name, what, unit, measurement, by_nic, encrypted):
    """Through a NIC process, and encrypted, beside the same in-process and in clear. A NIC process at
    each end polls, too: on two cores the rows show how four pollers share them."""
    return (Case(f"nic-{name}", "veth", f"{what}, verbena nic", unit,
                 SecuredPerftest(measurement, by_nic=True),
                 (Peer("in-process", measurement, by_nic),)),
            Case(f"encrypted-{name}", "veth", f"{what}, encrypted", unit,
                 SecuredPerftest(measurement, encrypted=True),
                 (Peer("in clear", measurement, encrypted),)),
            Case(f"nic-encrypted-{name}", "veth", f"{what}, verbena nic, encrypted", unit,
                 SecuredPerftest(measurement, by_nic=True, encrypted=True),
                 (Peer("in-process, in clear", measurement),)))


def many_qps(name, what, active, run_length, goal=1 / 1.3):
    return Case(f"wire-many-{name}", "veth", f"WRITE 64 B, {what}", "M/s",
                ManyQPs(1000, active, run_length),
                (Peer("1 QP", ManyQPs(1, 1, 64), goal, is_limit=True),))


def many_connections(active, run_length):
    ours, alone = (ManyQPs(connections, count, run_length, environment=(("VERBENA_LINK", "iwarp"),))
                   for connections, count in ((1000, active), (1, 1)))
    return Case("iwarp-many", "veth", f"WRITE 64 B, {active} of 1,000 connections, iWARP", "M/s",
                ours,
                (Peer("1 connection", alone, 1 / 1.3, is_limit=True),))


def wake_ups(site, place):
    """Of a thread asleep in ibv_get_cq_event(), by requests that come a millisecond apart."""
    for kind, way in (("send", "one-way"), ("write-imm", "one-way"), ("write", "there-and-back"),
                      ("read", "there-and-back"), ("atomic", "there-and-back")):
        for percentile, goal in ((50, 30), (99, 200)):
            yield Case(f"{place}-event-{kind}-p{percentile}", site,
                       f"wake-up by {kind}, percentile {percentile}", "us",
                       EventLatency(kind, percentile),
                       (Peer("blocking TCP", SocketWakes(way, percentile), is_limit=True),), goal=goal)


WIRE_TCP = "tcp"
WRITE_LATENCY_PEERS = (Peer("raw UDP", SocketPingPong("udp", 24), 1.4, is_limit=True),
                       Peer("sockperf", Sockperf(24)),
                       Peer("UCX tag, tcp", UCX("tag_lat", WIRE_TCP, 8, 20000, "us"), 1.0))

CASES = (
    same_host_large("write", 64 << 10, 20000),
    same_host_large("write", MIB, 3000),
    same_host_large("write", 8 * MIB, 300),
    same_host_large("read", 64 << 10, 20000),
    same_host_large("read", MIB, 3000),
    same_host_large("read", 8 * MIB, 300),
    Case("local-write-1024k-huge", "same host", "WRITE 1024 KiB, huge pages", "GB/s",
         in_arena(bandwidth("ib_write_bw", MIB)),
         (Peer("process_vm, huge pages",
               Limit("limit_process_vm", ("write", MIB, 1, "huge")), 0.9, is_limit=True),
          Peer("UCX cma", cma("put_bw", MIB, 3000), 2.5),
          Peer("Open MPI vader", MPI("vader", "bandwidth", MIB, 100), 2.5))),
    Case("local-write-lat", "same host", "WRITE 8 B, one way", "us", latency("ib_write_lat", 8),
         (Peer("process_vm", Limit("limit_process_vm", ("write", 8, 1), "us"), is_limit=True),
          Peer("UCX cma put", cma("put_lat", 8, 50000, "us"))),
         goal=1.5),
    Case("local-send-lat", "same host", "SEND 8 B, one way", "us", latency("ib_send_lat", 8),
         (Peer("Open MPI vader", MPI("vader", "latency", 8, 20000), 2.0),)),
    Case("local-rate", "same host", "WRITE 8 B, post list 64, 4 QPs", "M/s",
         rate("ib_write_bw", 8, "-l", "64", "-q", "4"),
         (Peer("process_vm", Limit("limit_process_vm", ("write", 8, 1), "M/s"), is_limit=True),),
         goal=2.0),
    Case("local-rate-single", "same host", "WRITE 64 B, posted one by one", "M/s",
         rate("ib_write_bw", 64),
         (Peer("process_vm", Limit("limit_process_vm", ("write", 64, 1), "M/s"), is_limit=True),)),
    same_host_shared("write", MIB),
    same_host_shared("write", 8 * MIB),
    Case("shared-write-lat", "same host", "WRITE 8 B, one way, VERBENA_SHARE=on", "us",
         shared(latency("ib_write_lat", 8)), (), goal=0.3),
    Case("shared-rate", "same host", "WRITE 8 B, post list 64, VERBENA_SHARE=on", "M/s",
         shared(rate("ib_write_bw", 8, "-l", "64")), (), goal=10.0),
    allreduce("same host", MIB, 1000),
    allreduce("same host", 64 * MIB, 10),
    collective("same host", "all_reduce", 8, 20000, 1.0),
    collective("same host", "all_reduce", MIB, 500, 1.2, gloo=1.2),
    collective("same host", "all_reduce", 64 * MIB, 10, 1.3, gloo=3.0),
    collective("same host", "all_reduce", 64 * MIB, 10, 1.3, ranks=4),
    collective("same host", "all_gather", 16 * MIB, 20, 1.2),
    collective("same host", "reduce_scatter", 16 * MIB, 20, 1.2),
    collective("same host", "alltoall", 16 * MIB, 20, 1.2),
    collective("same host", "broadcast", 16 * MIB, 20, 1.2),
    Case("wire-write-1m", "veth", "WRITE 1 MiB, MTU 4096", "GB/s",
         bandwidth("ib_write_bw", MIB, "-m", "4096"),
         (Peer("UDP, GSO+GRO", UDPStream(4112), 0.65, is_limit=True),
          Peer("UDP, receiver rests 400 us", UDPStream(4112, 400), is_limit=True),
          Peer("UCX tag, tcp", UCX("tag_bw", WIRE_TCP, MIB, 2000, "GB/s"), 2.4),
          Peer("iperf3", Iperf3(), 2.0))),
    Case("wire-write-1m-mtu1024", "veth", "WRITE 1 MiB, MTU 1024", "GB/s",
         bandwidth("ib_write_bw", MIB, "-m", "1024"),
         (Peer("MTU 4096", bandwidth("ib_write_bw", MIB, "-m", "4096"), 0.8, is_limit=True),)),
    Case("wire-read-1m", "veth", "READ 1 MiB, MTU 4096", "GB/s",
         bandwidth("ib_read_bw", MIB, "-m", "4096"),
         (Peer("WRITE", bandwidth("ib_write_bw", MIB, "-m", "4096"), 0.8, is_limit=True),)),
    Case("wire-write-64k", "veth", "WRITE 64 KiB, MTU 4096", "GB/s",
         bandwidth("ib_write_bw", 64 << 10, "-m", "4096"),
         (Peer("UDP, GSO+GRO", UDPStream(4112), is_limit=True),
          Peer("UCX tag, tcp", UCX("tag_bw", WIRE_TCP, 64 << 10, 20000, "GB/s")))),
    Case("wire-write-lat", "veth", "WRITE 8 B, one way", "us", latency("ib_write_lat", 8),
         WRITE_LATENCY_PEERS),
    Case("wire-send-lat-events", "veth", "SEND 8 B, -e, one way", "us",
         latency("ib_send_lat", 8, "-e", count=5000),
         (Peer("blocking TCP", SocketPingPong("tcp", 8, 5000), 1.0, is_limit=True),)),
    *wake_ups("same host", "local"), *wake_ups("veth", "wire"),
    Case("wire-rate-q1", "veth", "WRITE 64 B", "M/s", rate("ib_write_bw", 64, "-q", "1"),
         (Peer("UCX tag, tcp", UCX("tag_bw", WIRE_TCP, 64, 200000, "M/s"), 10.0),)),
    Case("wire-rate-q16", "veth", "WRITE 64 B, 16 QPs", "M/s", rate("ib_write_bw", 64, "-q", "16"),
         (Peer("UCX tag, tcp", UCX("tag_bw", WIRE_TCP, 64, 200000, "M/s"), 10.0),)),
    *(iwarp(f"{verb}-1m", f"{verb.upper()} 1 MiB", "GB/s", bandwidth(f"ib_{verb}_bw", MIB),
            Peer("iperf3", Iperf3(), 0.95),
            Peer("UCX tag, tcp", UCX("tag_bw", WIRE_TCP, MIB, 2000, "GB/s"), 1.0))
      for verb in ("write", "read")),
    iwarp("write-lat", "WRITE 8 B, one way", "us", latency("ib_write_lat", 8),
          Peer("polling TCP", SocketPingPong("tcp-polling", 8), 1.25, is_limit=True),
          Peer("UCX tag, tcp", UCX("tag_lat", WIRE_TCP, 8, 20000, "us"))),
    iwarp("rate", "WRITE 64 B, post list 64", "M/s", rate("ib_write_bw", 64, "-l", "64"),
          Peer("UCX tag, tcp", UCX("tag_bw", WIRE_TCP, 64, 200000, "M/s"), 8.0)),
    many_connections(16, 64),
    links("write-1m", "WRITE 1 MiB, MTU 4096", "GB/s",
          bandwidth("ib_write_bw", MIB, "-m", "4096", "-x", "3")),
    links("write-1m-v1", "WRITE 1 MiB, MTU 4096, GID 2 (RoCEv1 on raw links)", "GB/s",
          bandwidth("ib_write_bw", MIB, "-m", "4096", "-x", "2")),
    links("write-lat", "WRITE 8 B, one way", "us", latency("ib_write_lat", 8, "-x", "3"),
          *WRITE_LATENCY_PEERS),
    links("rate", "WRITE 64 B", "M/s", rate("ib_write_bw", 64, "-x", "3")),
    links("libfabric-lat", "fi_pingpong rdm 64 B, one way", "us", Libfabric("verbs;ofi_rxm", 64),
          Peer("libfabric tcp", Libfabric("tcp;ofi_rxm", 64), 1.0)),
    *secured("write-1m", "WRITE 1 MiB, MTU 4096", "GB/s",
             bandwidth("ib_write_bw", MIB, "-m", "4096"), 0.8, 0.5),
    *secured("write-lat", "WRITE 8 B, one way", "us", latency("ib_write_lat", 8), None, None),
    *secured("rate", "WRITE 64 B", "M/s", rate("ib_write_bw", 64), 0.6, None),
    allreduce("veth", MIB, 1000),
    allreduce("veth", 64 * MIB, 10),
    collective("veth", "all_reduce", 8, 5000, 1.0),
    collective("veth", "all_reduce", MIB, 300, 1.0, gloo=1.0),
    collective("veth", "all_reduce", 64 * MIB, 10, 1.0, gloo=1.0),
    collective_on_iwarp(8, 5000),
    collective_on_iwarp(MIB, 300, gloo=1.0),
    collective_on_iwarp(64 * MIB, 10, gloo=1.0),
    *(losing(share, size, retransmission) for share in ("0", "0.01", "0.1", "1")
      for size in (MIB, 64 << 10) for retransmission in ("go_back_n", "selective_repeat")),
    many_qps("1-of-1000", "1 of 1,000 QPs", 1, 64),
    many_qps("1000", "1,000 QPs in runs of 16", 1000, 16),
    many_qps("1000-by-one", "1,000 QPs in turn, one each", 1000, 1, goal=None),
    # perftest's own loop asks each QP after each poll.
    Case("wire-rate-q1000", "veth", "WRITE 64 B, 1000 QPs, perftest", "M/s",
         rate("ib_write_bw", 64, "-q", "1000", "-t", "16"),
         (Peer("1 QP", rate("ib_write_bw", 64, "-q", "1"), 1 / 1.3, is_limit=True),)),
    Case("wire-libfabric-lat", "veth", "fi_pingpong rdm 64 B, one way", "us",
         Libfabric("verbs;ofi_rxm", 64),
         (Peer("libfabric tcp", Libfabric("tcp;ofi_rxm", 64), 1.0),)),
    Case("local-idle", "same host", "idle device, wakeups", "1/s", IdleWakeups(), (), goal=0),
    Case("local-target-cpu", "same host", "target of WRITE 1 MiB, CPU", "%", TargetCPU(MIB), (),
         goal=1),
    beside_soft_roce("write", "WRITE 64 KiB", "GB/s", "ib_write_bw", "-s", "65536", "-n", "500"),
    beside_soft_roce("read", "READ 64 KiB", "GB/s", "ib_read_bw", "-s", "65536", "-n", "500"),
    beside_soft_roce("send", "SEND 64 KiB", "GB/s", "ib_send_bw", "-s", "65536", "-n", "500"),
    beside_soft_roce("write-lat", "WRITE 8 B, one way", "us", "ib_write_lat", "-s", "8", "-n",
                     "300"),
    beside_soft_roce("send-lat", "SEND 8 B, one way", "us", "ib_send_lat", "-s", "8", "-n", "300"),
    beside_soft_iwarp("write", "WRITE 64 KiB", "GB/s", "ib_write_bw", "-s", "65536", "-n", "500"),
    beside_soft_iwarp("read", "READ 64 KiB", "GB/s", "ib_read_bw", "-s", "65536", "-n", "500"),
    beside_soft_iwarp("send", "SEND 64 KiB", "GB/s", "ib_send_bw", "-s", "65536", "-n", "500"),
    beside_soft_iwarp("write-lat", "WRITE 64 B, one way", "us", "ib_write_lat", "-s", "64", "-n",
                      "300"),
)
