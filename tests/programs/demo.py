#!/usr/bin/env python3
"""./dev demo: Debian's own RDMA programs, unmodified, as pairs of processes that talk RoCEv2 over UDP
port 4791 of this machine, with no RDMA hardware and no privilege. One table; then what was proven.

usage: demo.py BUILD_DIR [--address ADDRESS] [--quick]
"""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import time

import harness

PACKAGES = ["perftest", "ibverbs-utils"]


@dataclasses.dataclass
class Job:
    program: str
    options: list
    what: str  # of the size: "64 KiB"
    iterations: int


JOBS = [
    Job("ib_write_bw", ["-s", "65536"], "64 KiB", 20000),
    Job("ib_write_bw", ["-s", "1048576", "-q", "4"], "1 MiB, 4 QPs", 1000),
    Job("ib_write_bw", ["-s", "64"], "64 B", 100000),
    Job("ib_read_bw", ["-s", "65536"], "64 KiB", 20000),
    Job("ib_send_bw", ["-s", "65536"], "64 KiB", 20000),
    Job("ib_send_bw", ["-s", "64"], "64 B", 100000),
    Job("ib_atomic_bw", [], "8 B", 50000),
    Job("ib_write_lat", ["-s", "8"], "8 B", 10000),
    Job("ib_read_lat", ["-s", "8"], "8 B", 10000),
    Job("ib_send_lat", ["-s", "8"], "8 B", 10000),
    Job("ib_atomic_lat", [], "8 B", 10000),
    Job("ibv_rc_pingpong", ["-g", "3", "-c", "-s", "4096"], "4 KiB, data checked", 1000),
    Job("ibv_uc_pingpong", ["-g", "3", "-c", "-s", "4096"], "4 KiB, data checked", 1000),
    Job("ibv_ud_pingpong", ["-g", "3", "-c", "-s", "1024"], "1 KiB, data checked", 1000),
]


def free_address():
    """127.0.0.1, unless another user's processes have its RoCE port."""
    _, uid = harness.ordinary_user()
    others = [row for row in harness.sockets("udp", harness.ROCE_PORT) if int(row[7]) != uid]
    return harness.ADDRESS if others else "127.0.0.1"


class Witness:
    """Looks at the processes while they run: as whom, with which library, on which port."""

    def __init__(self, build):
        self.build = build
        self.uids, self.libraries = set(), set()
        self.processes_with_library = set()
        self.port_owners = set()
        # As /proc/net/udp has it: hexadecimal, the first byte last.
        self.address_in_proc = bytes(map(int, build.address.split(".")))[::-1].hex().upper()
        self.udp_before = harness.udp_counters()
        self._next_look = 0.0

    def __call__(self, server, client):
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + 0.1
        for program in (server, client):
            try:
                self._look_at(program.pid)
            except OSError:
                pass  # it has just ended
        self.port_owners |= {int(row[7]) for row in harness.sockets("udp", harness.ROCE_PORT)
                             if row[1].startswith(self.address_in_proc)}

    def _look_at(self, pid):
        process = pathlib.Path(f"/proc/{pid}")
        if not os.readlink(process / "exe").startswith("/usr/bin/ib"):
            return  # verbena itself, not yet the program
        status = (process / "status").read_text()
        for line in (process / "maps").read_text().splitlines():
            if "/libibverbs.so" in line:
                self.libraries.add(line.split()[-1])
                self.processes_with_library.add(pid)
        # real, effective, saved and file-system uid
        self.uids |= set(map(int, status.split("Uid:")[1].split()[:4]))

    def datagrams(self):
        now = harness.udp_counters()
        return {name: now[name] - self.udp_before[name] for name in now}


# --- one line of the table ------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    program: str
    what: str
    speed: str
    messages: str


def rate_text(per_second):
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if per_second >= factor:
            return f"{per_second / factor:.2f} {unit}/s"
    return f"{per_second:.0f} /s"


def bandwidth_text(bytes_per_second):
    if bytes_per_second >= 1e9:
        return f"{bytes_per_second / 1e9:.2f} GB/s"
    return f"{bytes_per_second / 1e6:.1f} MB/s"


def row_of(job, pair):
    if job.program.endswith("pingpong"):
        result = harness.pingpong_result(pair.client.output())
        if result is None:
            raise harness.Failure(f"no result:\n{pair.client}")
        _, round_trip_us = result
        return Row(job.program, job.what, f"{round_trip_us / 2:.2f} us",
                   rate_text(2e6 / max(round_trip_us, 0.01)))
    rows = harness.perftest_rows(pair.client.output())
    if len(rows) != 1:
        raise harness.Failure(f"no result:\n{pair.client}")
    if isinstance(rows[0], harness.Latency):
        return Row(job.program, job.what, f"{rows[0].typical_us:.2f} us",
                   rate_text(1e6 / rows[0].average_us))
    # For small messages perftest prints the rate with more digits than the bandwidth.
    messages = rows[0].messages_per_s
    return Row(job.program, job.what,
               bandwidth_text(max(rows[0].mib_per_s * 2 ** 20, messages * rows[0].size)),
               rate_text(messages))


# --- progress -------------------------------------------------------------------------------------


class Progress:
    """One line for each program: rewritten in a terminal, printed once it ends elsewhere."""

    def __init__(self, total):
        self.total, self.done = total, 0
        self.live = sys.stdout.isatty()

    def start(self, job, options):
        self.done += 1
        self.line = f"[{self.done:2}/{self.total}] {job.program} {' '.join(options)}"
        self.started = time.monotonic()
        if self.live:
            print(f"{self.line} ...", end="", flush=True)

    def tick(self):
        if self.live:
            print(f"\r{self.line} ... {time.monotonic() - self.started:.0f} s", end="", flush=True)

    def finish(self, text):
        print(f"{chr(13) if self.live else ''}{self.line}: {text}"
              f" ({time.monotonic() - self.started:.1f} s)", flush=True)


def print_table(rows):
    cells = [("program", "size", "bandwidth/latency", "messages/s")]
    cells += [(row.program, row.what, row.speed, row.messages) for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(4)]
    for number, line in enumerate(cells):
        print(f"  {line[0]:<{widths[0]}}  {line[1]:<{widths[1]}}  {line[2]:>{widths[2]}}"
              f"  {line[3]:>{widths[3]}}")
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))


# --- what was proven ------------------------------------------------------------------------------


def unmodified_programs():
    """Whether the binaries are as Debian's packages have them, in words."""
    versions = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *PACKAGES],
                              capture_output=True, text=True, check=False).stdout.split("\n")
    verify = subprocess.run(["dpkg", "--verify", *PACKAGES], capture_output=True, text=True,
                            check=False).stdout
    changed = [line.split()[-1] for line in verify.splitlines() if "/usr/bin/" in line]
    text = ", ".join(filter(None, versions))
    if not text:
        return False, "the programs are not from Debian packages: nothing to compare them with"
    if changed:
        return False, f"changed since they were installed: {' '.join(changed)}"
    return True, f"unmodified binaries: {text}; checksums verified with dpkg"


def no_rdma_in_this_machine():
    devices = pathlib.Path("/sys/class/infiniband")
    found = sorted(entry.name for entry in devices.iterdir()) if devices.exists() else []
    modules = pathlib.Path("/proc/modules")
    loaded = modules.read_text().split("\n") if modules.exists() else []
    rdma = [line.split()[0] for line in loaded
            if line.startswith(("ib_", "rdma_", "mlx", "siw", "irdma"))]
    if not found and not rdma:
        return True, "no RDMA device (/sys/class/infiniband) and no RDMA module in the kernel"
    return True, (f"this kernel has RDMA ({' '.join(found + rdma)}), but it was not used: see the "
                  "library")


def ordinary_user(witness):
    _, uid = harness.ordinary_user()
    if witness.uids != {uid}:
        return False, f"the programs ran as uid {sorted(witness.uids)}, not {uid}"
    return uid != 0, f"as an ordinary user: uid {uid}, real, effective and saved"


def our_library(witness):
    if witness.libraries != {str(witness.build.library)}:
        return False, f"not only Verbena's libibverbs was loaded: {sorted(witness.libraries)}"
    return True, f"{len(witness.processes_with_library)} processes had {witness.build.library}"


def on_the_roce_port(witness, uid):
    counted = witness.datagrams()
    text = (f"RoCEv2 on UDP port {harness.ROCE_PORT}: bound by uid {sorted(witness.port_owners)}; "
            f"{counted['OutDatagrams']:,} UDP sends (bursts count once), "
            f"{counted['InErrors']:,} receive errors")
    return witness.port_owners == {uid} and counted["OutDatagrams"] > 0, text


def report_proof(witness):
    _, uid = harness.ordinary_user()
    proofs = [unmodified_programs(), our_library(witness), ordinary_user(witness),
              no_rdma_in_this_machine(), on_the_roce_port(witness, uid)]
    print("\nWhat was proven:" if all(ok for ok, _ in proofs) else "\nNot all was proven:")
    for ok, text in proofs:
        print(f"  {'yes' if ok else 'NO '}  {text}")
    return all(ok for ok, _ in proofs)


def run_jobs(build, jobs, witness, divisor):
    rows, failures = [], []
    progress = Progress(len(jobs))

    def watch(server, client):
        witness(server, client)
        progress.tick()
    for job in jobs:
        options = [*job.options, "-n", str(max(job.iterations // divisor, 100))]
        progress.start(job, options)
        try:
            row = row_of(job, build.run_pair(job.program, *options, watch=watch))
            rows.append(row)
            progress.finish(row.speed)
        except harness.Failure as failure:
            failures.append(str(failure))
            progress.finish("FAILED")
    return rows, failures


def main():
    parser = argparse.ArgumentParser(prog="demo", description="Unmodified RDMA programs on Verbena")
    parser.add_argument("build", metavar="BUILD_DIR")
    parser.add_argument("--address", default=free_address(), help="the device's IP address")
    parser.add_argument("--quick", action="store_true", help="a tenth of the iterations")
    arguments = parser.parse_args()
    build = harness.Build(arguments.build, arguments.address)

    print(f"Each program runs twice, as requester and responder, on {arguments.address}:")
    print(f"  {build.verbena} run -- PROGRAM ...\n", flush=True)
    witness = Witness(build)
    rows, failures = run_jobs(build, JOBS, witness, 10 if arguments.quick else 1)
    print()
    print_table(rows)
    print("  Latency: typical, one way (READ and atomic: there and back); ping-pong: average, one way.")
    proven = report_proof(witness)
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    if failures:
        print(f"\n{len(failures)} of {len(JOBS)} programs failed", file=sys.stderr)
    return 0 if proven and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
