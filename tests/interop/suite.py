#!/usr/bin/env python3
"""The cases of ./dev interop, run inside a lab: see run.py, which starts this.

usage: suite.py BUILD_DIR --captures DIR [--all] [-k PATTERN]
       suite.py --list [--all] [-k PATTERN]
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from sides import LIMIT_S, Linux, Verbena, wait_until

HERE = pathlib.Path(__file__).resolve().parent
# The MTUs of the guest's Ethernet, in the order in which the cases use them, and the RoCE MTUs to
# use on each.
MTUS = {4200: (2048, 4096), 1500: (256, 512, 1024)}
SIZES = (1, 4096, 65536)
START_LIMIT_S = 20


class Failure(Exception):
    """A case did not do what it should; the message has all that is known."""


class Hung(Failure):
    """Neither side has failed, and not both have ended in time."""


@dataclasses.dataclass
class Case:
    name: str
    passive: object  # the sides
    active: object
    run: object  # run(case) raises Failure
    command: str
    link_mtu: int = 1500


class Ports:
    """A TCP port for each pair that meets by TCP, a service for each that meets by rdma_cm."""
    last = 20000

    @classmethod
    def next(cls):
        cls.last += 1
        return cls.last


# --- how programs are run ------------------------------------------------------------------------


def finish(passive, active, limit_s=LIMIT_S):
    """Waits for both; Failure unless both exit with 0."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and None in (passive.status, active.status):
        if passive.status or active.status:
            time.sleep(1)  # the other may follow
            break
        time.sleep(0.02)
    ended_well = passive.status == 0 and active.status == 0
    hung = not passive.status and not active.status
    for program in (active, passive):
        program.kill()
    if not ended_well:
        raise (Hung if hung else Failure)(f"{passive}\n{active}")
    return passive, active


def up_to_three_times(run, on=Failure):
    for last_try in (False, False, True):
        try:
            return run()
        except on as failure:
            if last_try:
                raise
            print("    once more, after:", " ".join(str(failure).split())[:160], flush=True)


def run_pair(case, passive_options, active_options, port, address=None, limit_s=LIMIT_S):
    """Programs that meet over TCP."""
    passive = case.passive.start(f"{case.command} {passive_options}")
    try:
        wait_until(lambda: case.passive.listens(port) or passive.status is not None, START_LIMIT_S,
                   f"{case.passive.name} listens")
    except TimeoutError as error:
        passive.kill()
        raise Failure(f"{error}\n{passive}") from None
    active = case.active.start(f"{case.command} {active_options} {address or case.passive.address}")
    return finish(passive, active, limit_s)


def pingpong(case, limit_s=LIMIT_S):
    port = Ports.next()
    options = f"-p {port} -n 100 -c"
    passive, active = run_pair(case, f"{case.passive.pingpong} {options}",
                               f"{case.active.pingpong} {options}", port, limit_s=limit_s)
    for side in (passive, active):
        if "100 iters" not in side.output() or "invalid data" in side.output():
            raise Failure(f"no result, or wrong data\n{side}")


def pingpong_uc(case):
    """Nothing is sent again: where the guest drops a packet, both wait for ever."""
    up_to_three_times(lambda: pingpong(case, limit_s=15), on=Hung)


def pingpong_ipv6(case):
    port = Ports.next()
    options = f"-p {port} -n 100 -c"
    run_pair(case, f"{case.passive.pingpong_ipv6} {options}",
             f"{case.active.pingpong_ipv6} {options}", port)


def perftest(case):
    port = Ports.next()
    options = f"-p {port} -F"
    _, active = run_pair(case, f"{case.passive.perftest} {options}",
                         f"{case.active.perftest} {options}", port)
    if not re.search(r"^ *\d+ +\d+ +[\d.]+ +[\d.]+", active.output(), re.MULTILINE):
        raise Failure(f"no result\n{active}")


def perftest_cm(case):
    """perftest connects twice, and where its server is the slower side the second request can come
    before it listens again; then all is begun anew."""
    def run():
        options = f"-p {Ports.next()} -F -R"
        return run_connected(case, f"{case.command} {options}",
                             f"{case.command} {options} {case.passive.address}", limit_s=15)
    up_to_three_times(run)


REFUSALS = ("REJECTED", "refused", "Unexpected CM event", "unable to connect",
            "Failed to connect RDMA CM events", "UNREACHABLE", "rdma_connect")


def run_connected(case, passive_command, active_command, limit_s=LIMIT_S):
    """Programs that meet by rdma_cm: nothing tells when one listens, so a refused one tries again."""
    passive = case.passive.start(passive_command)
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        time.sleep(0.3)
        active = case.active.start(active_command)
        status = active.wait(limit_s)
        refused = status not in (0, None) and any(word in active.output() for word in REFUSALS)
        if not refused or passive.status is not None or time.monotonic() > deadline:
            return finish(passive, active, limit_s=15)
        active.kill()


def rping(case):
    port = Ports.next()
    _, active = run_connected(case, f"rping -s -a {case.passive.address} -p {port} -v {case.command}",
                              f"rping -c -a {case.passive.address} -p {port} -v -V {case.command}")
    if active.output().count("ping data: rdma-ping-") != 10:
        raise Failure(f"not ten pings\n{active}")


def cm_program(case):
    port = Ports.next()
    port = "" if case.command.startswith("udaddy") else f"-p {port}"  # its -p is a port space
    run_connected(case, f"{case.command} -b {case.passive.address} {port}",
                  f"{case.command} -s {case.passive.address} {port}")


def client_and_server(case):
    port = Ports.next()
    passive, active = run_connected(case, f"rdma_server -s {case.passive.address} -p {port}",
                                    f"rdma_client -s {case.passive.address} -p {port}")
    if "end 0" not in passive.output() or "end 0" not in active.output():
        raise Failure(f"{passive}\n{active}")


def refused_connection(case):
    """Nobody listens on that port of the other side, where another program listens."""
    listener = case.passive.start(f"rping -s -a {case.passive.address} -p {Ports.next()}")
    time.sleep(2)
    active = case.active.start(f"rping -c -a {case.passive.address} -p 9999 -C 1")
    status = active.wait(15)
    active.kill()
    listener.kill()
    if status in (0, None) or "RDMA_CM_EVENT_REJECTED" not in active.output():
        raise Failure(f"not rejected\n{active}")


def conversation(case):
    port = Ports.next()

    def command(side, role, *rest):
        lose = "/host/lose INPUT" if side is case_linux(case) else "guest-exec /host/lose OUTPUT"
        words = " ".join(str(word) for word in (role, case.command, port, *rest))
        return f'env {side.conversation} VP_LOSE="{lose}" /usr/bin/python3 {side.folder}/conversation.py {words}'
    passive = case.passive.start(command(case.passive, "passive"))
    try:
        wait_until(lambda: case.passive.listens(port) or passive.status is not None, START_LIMIT_S,
                   f"{case.passive.name} listens")
    except TimeoutError as error:
        passive.kill()
        raise Failure(f"{error}\n{passive}") from None
    active = case.active.start(command(case.active, "active", case.passive.address))
    try:
        finish(passive, active)
    finally:
        Linux.call("/host/lose INPUT none; /host/lose OUTPUT none")
    if "as expected" not in active.output():
        raise Failure(f"{passive}\n{active}")


def case_linux(case):
    return case.passive if isinstance(case.passive, Linux) else case.active


# --- the cases -----------------------------------------------------------------------------------


def commands():
    """All of them: how it is run, name, command, the link's MTU."""
    for size in SIZES:
        yield pingpong, "ibv_rc_pingpong", f"-s {size}", 1500
        # With its 16 QPs and large messages packets are lost, and now and then one end has all that
        # it wants and is gone before the other has its last acknowledgement, and sends on and on.
        yield pingpong, "ibv_srq_pingpong", f"-s {size}" + (" -q 4" if size > 4096 else ""), 1500
    yield pingpong, "ibv_rc_pingpong", "-e", 1500
    yield pingpong_uc, "ibv_uc_pingpong", "-e", 1500
    yield pingpong, "ibv_srq_pingpong", "-e", 1500
    for link_mtu, mtus in MTUS.items():
        for mtu in mtus:
            yield pingpong, "ibv_rc_pingpong", f"-s 20000 -m {mtu}", link_mtu
            yield pingpong_uc, "ibv_uc_pingpong", f"-s 20000 -m {mtu}", link_mtu
            for operation in ("send", "write", "read"):
                yield perftest, f"ib_{operation}_bw", f"-m {mtu} -s 30000 -n 50", link_mtu
    yield pingpong, "ibv_ud_pingpong", "-s 1024", 1500
    yield pingpong, "ibv_ud_pingpong", "-s 1 -e", 1500
    yield pingpong_ipv6, "ibv_rc_pingpong", "-s 5000", 1500
    yield pingpong_ipv6, "ibv_ud_pingpong", "-s 500", 1500
    for operation in ("send", "write", "read", "atomic"):
        yield perftest, f"ib_{operation}_bw", "-n 50", 1500
        yield perftest, f"ib_{operation}_lat", "-n 50", 1500
    yield perftest, "ib_send_bw", "-a -n 5", 1500
    yield perftest, "ib_write_bw", "-q 4 -n 50", 1500
    yield perftest, "ib_write_bw", "-b -n 50", 1500
    yield perftest, "ib_send_bw", "-e -n 100", 1500
    yield perftest, "ib_write_bw", "-c UC -n 50", 1500
    yield perftest, "ib_send_lat", "-c UC -n 50", 1500
    yield perftest, "ib_send_bw", "-c UD -s 1024 -n 50", 1500
    yield perftest, "ib_send_lat", "-c UD -s 1024 -n 50", 1500
    yield perftest_cm, "ib_write_bw", "-n 50", 1500
    yield perftest_cm, "ib_send_lat", "-n 50", 1500
    yield rping, "rping", "-C 10", 1500
    yield rping, "rping", "-C 10 -S 20000", 1500
    yield cm_program, "ucmatose", "-c 1 -C 10", 1500
    yield cm_program, "ucmatose", "-c 4 -C 10 -S 3000", 1500
    yield cm_program, "udaddy", "-c 1 -C 10 -S 512", 1500
    yield cm_program, "rstream", "-T b -T v -S 4096 -C 50", 1500
    yield cm_program, "rstream", "-T v -S 100000 -C 10", 1500
    yield cm_program, "riostream", "-T b -T v -S 4096 -C 20", 1500
    yield client_and_server, "rdma_client", "", 1500
    yield cm_program, "rstream", "-S 4096 -C 20 -T v", 1500
    yield cm_program, "rstream", "-S 100000 -C 20 -T v", 1500
    yield refused_connection, "rping to a port without listener", "", 1500
    for name in scenarios():
        yield conversation, "conversation", name, 1500


# Not in the sample: another command of it proves the same.
LEFT_OUT = ("ibv_rc_pingpong -s 1", "ibv_srq_pingpong -s 1", "ibv_srq_pingpong -s 65536 -q 4",
            "ibv_rc_pingpong -e", "ibv_srq_pingpong -e", "ibv_uc_pingpong -s 20000 -m 2048",
            "ib_send_bw -m 2048 -s 30000 -n 50", "ib_write_bw -m 2048 -s 30000 -n 50",
            "ib_read_bw -m 2048 -s 30000 -n 50", "ib_send_bw -n 50", "ib_write_bw -n 50",
            "ib_write_bw -b -n 50", "ib_send_bw -a -n 5", "ib_send_lat -c UC -n 50",
            "ib_send_bw -c UD -s 1024 -n 50", "rstream -T v -S 100000 -C 10",
            "rstream -S 4096 -C 20 -T v", "ucmatose -c 1 -C 10", "rping -C 10")


# Where a packet is lost, each side recovers in its own way.
BOTH_WAYS = ("conversation lost-request", "conversation lost-ack", "conversation lost-response")


def scenarios():
    """The scenarios of conversation.py, whose imports this interpreter may lack."""
    text = (HERE / "conversation.py").read_text()
    return re.findall(r'^    "([a-z-]+)": Scenario', text, re.MULTILINE)


def cases(build, every):
    """All cases in both directions; or a sample: those that are not LEFT_OUT, in one direction each,
    which alternates, unless they are in BOTH_WAYS."""
    here, linux = Verbena(build), Linux()
    directions = ((linux, here), (here, linux))
    turn = 0
    for run, program, options, link_mtu in commands():
        name = f"{program} {options}".strip()
        chosen = directions
        if not every and name not in BOTH_WAYS:
            if name in LEFT_OUT or (link_mtu == 1500 and "-m " in options):
                continue
            chosen = directions[turn % 2:][:1]
            turn += 1
        for passive, active in chosen:
            shown = name + (" over IPv6" if run is pingpong_ipv6 else "")
            yield Case(f"{active.name} to {passive.name}: {shown}", passive, active, run,
                       options if run in (rping, conversation) else name, link_mtu)


# --- running them --------------------------------------------------------------------------------


def record(case, outcome):
    """For docs/compatibility.md; conversations are no programs of a package."""
    path = os.environ.get("VERBENA_RECORD")
    if not path or case.run in (conversation, refused_connection):
        return
    command = f"rping {case.command}" if case.run is rping else case.command
    line = {"test": case.name, "outcome": outcome, "commands": [command.split()], "peer": "linux"}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def run_case(case):
    """The text that goes into the table, and whether it passed."""
    started = time.monotonic()
    try:
        case.run(case)
        failure = ""
    except Failure as error:
        failure = str(error)
    word = "FAILED" if failure else "ok"
    record(case, "failed" if failure else "passed")
    print(f"{case.name:68} {word:6} {time.monotonic() - started:6.1f} s", flush=True)
    if failure:
        print("\n".join("    " + line for line in failure.splitlines()), flush=True)
    return not failure


def set_link_mtu(mtu):
    """Of both ends of the link. Devices take the RoCE MTU from it when they are opened."""
    for device in ("tap1", "br0"):
        subprocess.run(["ip", "link", "set", device, "mtu", str(mtu)], check=True)
    if Linux.call(f"ip link set eth0 mtu {mtu}") != 0:
        raise SystemExit("interop: the guest's interface does not take another MTU")


class Capture:
    """RoCEv2 packets of the guest's link, whole."""

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen(
            ["tcpdump", "-i", "tap1", "-s0", "-U", "--immediate-mode", "-Z", "root", "-w", path,
             "udp port 4791"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(path.exists, START_LIMIT_S, "tcpdump captures")

    def end(self):
        time.sleep(0.3)  # tcpdump has them by then
        self.process.terminate()
        self.process.wait()


def malformed(path):
    """What tshark cannot make sense of in packets that we sent, one line each."""
    ours = "(ip.src == 10.77.0.1 or (ipv6 and eth.src != 52:54:00:77:00:02))"
    found = subprocess.run(
        ["tshark", "-r", path, "--disable-protocol", "rpcordma",  # guesses at the payload of SENDs
         "-Y", f"{ours} and (_ws.malformed or _ws.expert.severity >= 0x800000)"],
        capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


def count(path):
    out = subprocess.run(["tshark", "-r", path, "-Y", "infiniband.bth", "-T", "fields", "-e",
                          "frame.number"], capture_output=True, text=True, check=True).stdout
    return out.count("\n")


def wait_for_ipv6():
    """Until our link-local address has been found to be nobody else's."""
    def settled():
        return subprocess.run(["ip", "-6", "address", "show", "dev", "br0", "tentative"],
                              capture_output=True, check=True).stdout == b""
    wait_until(settled, START_LIMIT_S, "the IPv6 address can be used")


def run_on_link(link_mtu, chosen, folder):
    """Runs the cases of one link MTU; how many passed, whether what we sent is well formed."""
    print(f"== Verbena and Linux's soft-RoCE on a link of MTU {link_mtu}", flush=True)
    set_link_mtu(link_mtu)
    capture = Capture(folder / f"link-mtu-{link_mtu}.pcap")
    bulk = [case for case in chosen if case.run in (perftest, perftest_cm)]  # too much to decode
    passed = sum([run_case(case) for case in chosen if case not in bulk])
    capture.end()
    passed += sum([run_case(case) for case in bulk])
    bad, packets = malformed(capture.path), count(capture.path)
    print(f"tshark: {packets} RoCEv2 packets, {len(bad)} of ours malformed")
    for line in bad[:20]:
        print("    " + line)
    return passed, not bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--captures", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("-k", dest="pattern", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    chosen = [case for case in cases(arguments.build or ".", arguments.all)
              if arguments.pattern in case.name]
    if arguments.list:
        print("\n".join(f"{case.name} (link MTU {case.link_mtu})" for case in chosen))
        return 0
    if not chosen:
        print(f"interop: no case has '{arguments.pattern}' in its name")
        return 2
    wait_for_ipv6()
    passed, well_formed = 0, True
    for link_mtu in MTUS:
        of_link = [case for case in chosen if case.link_mtu == link_mtu]
        if of_link:
            count_passed, good = run_on_link(link_mtu, of_link, arguments.captures)
            passed, well_formed = passed + count_passed, well_formed and good
    failed = len(chosen) - passed + (not well_formed)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
