"""Programs over verbs beside themselves over TCP. They take minutes, and packages that nothing else
needs, so they run only when `--only 'program-*'` names them."""

from cases import MIB, Case, Peer, latency
from measurements import Iperf3, SocketPingPong
from models import CurlFromNginx, KVBlocks, ModelFetch, Rsync
from peer_programs import BRPC, Mooncake
from programs import Ceph, EventWaits, Fio, Gloo, QEMUMigration, RStream

SITES = (("local", "same host"), ("wire", "veth"))


def ceph(mode, size, depth):
    return Case(f"program-ceph-{mode}-{size >> 10}k", "same host",
                f"Ceph, {mode} {size >> 10} KiB, {depth} in flight", "MB/s",
                Ceph("async+rdma", mode, size, depth),
                (Peer("its TCP messenger", Ceph("async+posix", mode, size, depth), 1.2),))


def on_both_sites(name, what, unit, ours, tcp, goal, peer="TCP"):
    return [Case(f"program-{name}-{place}", site, what, unit, ours, (Peer(peer, tcp, goal),))
            for place, site in SITES]


def gloo(size, rounds):
    return on_both_sites(f"gloo-{size >> 10}k", f"gloo AllReduce {size >> 10} KiB", "us",
                         Gloo("ibverbs", size, rounds), Gloo("tcp", size, rounds), 1 / 1.5)


def fio(size, depth):
    return on_both_sites(f"fio-{size >> 10}k", f"fio {size >> 10} KiB, {depth} in flight", "GB/s",
                         Fio("rdma", size, depth), Fio("net", size, depth), 1.5, "fio net")


def rstream(size, count, what):
    title = "in turn, one way" if what == "us" else "stream"
    return on_both_sites(f"preload-{size}", f"rstream {size} B, {title}, librspreload", what,
                         RStream("rsockets", size, count, what), RStream("tcp", size, count, what), 1.0)


def brpc(size):
    return on_both_sites(f"brpc-{size >> 10}k", f"brpc {size >> 10} KiB, 2 threads, 4 in flight", "GB/s",
                         BRPC(True, size), BRPC(False, size), 1.2)


def mooncake(size):
    return on_both_sites(f"mooncake-{size >> 10}k", f"Mooncake {size >> 10} KiB, 2 workers", "GB/s",
                         Mooncake("rdma", size), Mooncake("tcp", size), 3.0)


def loads(size):
    """One fetcher beside TCP, on one host and across veth; four beside one: 1.3 times its time."""
    return (Case(f"program-model-{size >> 20}m", "same host", f"model of {size >> 20} MiB", "GB/s",
                 ModelFetch(size), (Peer("curl from nginx", CurlFromNginx(size), 2.0),
                                    Peer("rsync", Rsync(size), 2.0))),
            Case(f"program-model-{size >> 20}m-4", "same host",
                 f"model of {size >> 20} MiB, four fetchers", "GB/s", ModelFetch(size, 4),
                 (Peer("one fetcher", ModelFetch(size), 1 / 1.3),)),
            Case(f"program-model-{size >> 20}m-wire", "veth", f"model of {size >> 20} MiB", "GB/s",
                 ModelFetch(size), (Peer("iperf3", Iperf3(), 1.0),)))


def kv_blocks(count, size):
    return Case(f"program-kv-{count}x{size >> 10}k", "same host",
                f"{count} scattered KV blocks of {size >> 10} KiB", "GB/s",
                KVBlocks("gbps", count, size),
                (Peer("one WRITE", KVBlocks("contiguous_gbps", count, size), 0.8),
                 Peer("TCP", KVBlocks("tcp_gbps", count, size), 1.0)))


def with_events(name, program, size, goal):
    """The socket's figure is one way; so is that of SEND, while READ goes there and back. perftest
    has no -e for WRITE."""
    return on_both_sites(f"events-{name}-{size}", f"{name.upper()} {size} B, -e", "us",
                         latency(program, size, "-e", count=5000), SocketPingPong("tcp", size, 5000),
                         goal, "blocking TCP, one way")


def event_waits(waits, connections, what):
    return on_both_sites(f"waits-{waits}-{connections}", what, "k/s",
                         EventWaits("verbs", waits, connections), EventWaits("tcp", waits, connections),
                         1.0)


CASES = (
    *(ceph(mode, MIB, 8) for mode in ("seq", "rand", "write")),
    *(ceph(mode, 4096, 32) for mode in ("seq", "rand", "write")),
    *gloo(1024, 1000), *gloo(MIB, 100), *gloo(64 * MIB, 5),
    *on_both_sites("qemu-2g", "QEMU migration of 2 GiB of random memory", "ms",
                   QEMUMigration("rdma", 2048), QEMUMigration("tcp", 2048), 1.0),
    *loads(2048 * MIB), kv_blocks(1280, 65536),
    *fio(4096, 16), *fio(MIB, 16), *brpc(65536), *brpc(MIB), *mooncake(65536),
    *rstream(64, 20000, "us"), *rstream(MIB, 300, "GB/s"),
    *with_events("send", "ib_send_lat", 8, 1.0), *with_events("send", "ib_send_lat", 65536, 1.0),
    *with_events("read", "ib_read_lat", 8, 2.0), *with_events("read", "ib_read_lat", 65536, 2.0),
    *event_waits("threads", 4, "4 threads, a QP and a channel each"),
    *event_waits("epoll", 64, "64 QPs, one channel, epoll"),
)
