#!/usr/bin/env python3
"""Writes a scenario of HPCC's ns-3 model for `verbena sim`: a fat tree of K-port switches, in which
every host sends one message to another, all at once, and receives one.

  fat_tree.py K FOLDER [--bytes N] [--payload N]

K = 16: 1,024 hosts; K = 32: 8,192. Links of 100 Gb/s and 1 us; DCQCN, PFC, 32 MiB for each switch: the
settings of tests/reference/macro/perm128_dcqcn, which is K = 8. The same words, the same files.
"""

import argparse
import pathlib
import random

CONFIG = pathlib.Path(__file__).resolve().parents[1] / "tests/reference/macro/perm128_dcqcn/config.txt"


def links(k):
    """Hosts first, then edge, aggregation and core switches."""
    half = k // 2
    edge, aggregation, core = k * half * half, k * half * half + k * half, k * half * half + k * k
    for host in range(edge):
        yield host, edge + host // half
    for pod in range(k):
        for i in range(half):
            for j in range(half):
                yield edge + pod * half + i, aggregation + pod * half + j
                yield aggregation + pod * half + i, core + i * half + j


def permutation(hosts, prng):
    """(source, destination) of all hosts, none of which is its own destination."""
    order = list(range(hosts))
    prng.shuffle(order)
    return list(zip(order, order[1:] + order[:1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("k", type=int)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bytes", type=int, default=2_000_000, help="of each message")
    parser.add_argument("--payload", type=int, default=1000, help="bytes of each packet")
    options = parser.parse_args()
    k = options.k
    if k < 2 or k % 2:
        parser.error("K is even")
    hosts, switches = k ** 3 // 4, 5 * k * k // 4
    joined = list(links(k))
    flows = permutation(hosts, random.Random(1))
    options.folder.mkdir(parents=True, exist_ok=True)
    with (options.folder / "topology.txt").open("w") as out:
        print(hosts + switches, switches, len(joined), file=out)
        print(*range(hosts, hosts + switches), file=out)
        for a, b in joined:
            print(a, b, "100Gbps 1000ns 0", file=out)
    with (options.folder / "flow.txt").open("w") as out:
        print(len(flows), file=out)
        for source, destination in flows:
            print(source, destination, 3, 100, options.bytes, "2.000000000", file=out)
    config = CONFIG.read_text().replace("PACKET_PAYLOAD_SIZE 1000",
                                        f"PACKET_PAYLOAD_SIZE {options.payload}")
    (options.folder / "config.txt").write_text(config)


if __name__ == "__main__":
    main()
