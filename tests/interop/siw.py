#!/usr/bin/env python3
"""Verbena's iWARP device against Linux's own software iWARP (siw), which runs in a small guest
(tests/lab): programs of rdmacm-utils and perftest, one side here and one there, both ways, with
the settings of CRC, MPA revision and peer-to-peer set-up on either side; and requests that the
passive side refuses, with the TERMINATE that each side sees.

usage: siw.py [BUILD_DIR] [--quick] [-k PATTERN]

  --quick   rping with the defaults only (unless VERBENA_THOROUGH=1)

The exit status is 77 where a guest cannot run (run.py says what it needs).
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import run
import terminates

HERE = pathlib.Path(__file__).resolve().parent
CONVERSATIONS = HERE.parent / "lab/guest"  # /host in the guest
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's own
PARAMETERS = "/sys/module/siw/parameters"
OURS, SIW = "10.77.0.1", "10.77.0.2"
TIME_LIMIT_S = 1800
PROGRAM_LIMIT_S = 120
START_LIMIT_S = 60

# siw's parameters, and VERBENA_IWARP.
SETTINGS = {
    "default": ({}, ""),
    "crc-off": ({}, "crc=off"),
    "crc-required": ({"mpa_crc_required": 1}, "crc=on"),
    "crc-required-there": ({"mpa_crc_required": 1}, "crc=off"),
    "mpa-1": ({}, "mpa=1"),
    "mpa-1-there": ({"mpa_version": 1}, ""),
    "p2p-off": ({}, "p2p=off"),
    "p2p-there": ({"peer_to_peer": 1}, ""),
}
DEFAULTS = {"mpa_crc_required": 0, "mpa_version": 2, "peer_to_peer": 0}

# Server, client; {a} is the server's address, {p} a port.
PROGRAMS = {
    "rping": ("rping -s -a {a} -p {p} -C 5 -v", "rping -c -a {a} -p {p} -C 5 -V -v"),
    "rdma_client": ("rdma_server -p {p}", "rdma_client -s {a} -p {p}"),
    "ucmatose": ("ucmatose -b {a} -p {p} -c 4 -C 10 -S 20000",
                 "ucmatose -s {a} -p {p} -c 4 -C 10 -S 20000"),
}
for _program in ("rstream", "riostream"):
    PROGRAMS[_program] = (f"{_program} -b {{a}} -p {{p}} -S 5000 -C 20",
                          f"{_program} -s {{a}} -p {{p}} -S 5000 -C 20")
for _operation in ("write", "read", "send"):
    for _kind, _options in (("lat", "-s 64 -n 100"), ("bw", "-s 65536 -n 100")):
        _command = f"ib_{_operation}_{_kind} -R -F -p {{p}} {_options}"
        PROGRAMS[_command.split()[0]] = (_command, _command + " {a}")


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A conversation of tests/lab/guest/verbs_peer.py by rdma_cm, and the layer, type and code of
    the TERMINATE by which we refuse it, and siw; None: it does not. `rules`: ours, for faults on
    the way."""
    conversation: str
    ours: tuple
    siw: tuple
    rules: str = ""


# siw has no code for rights (RFC 5041 lacks one for a WRITE), and does not check that of a READ.
REFUSALS = {
    "write-key": Refusal("cm_write", (1, 1, 0), (1, 1, 0)),
    "write-bounds": Refusal("cm_bounds", (1, 1, 1), (1, 1, 1)),
    "write-rights": Refusal("cm_write_rights", (0, 1, 2), (1, 1, 0)),
    "read-key": Refusal("cm_read", (0, 1, 0), (0, 1, 0)),
    "read-bounds": Refusal("cm_read_bounds", (0, 1, 1), (0, 1, 1)),
    "read-rights": Refusal("cm_read_rights", (0, 1, 2), None),
    "crc-of-ours": Refusal("cm", None, (2, 0, 2), "corrupt nth=3 dir=tx"),
    "crc-of-theirs": Refusal("cm", (2, 0, 2), None, "corrupt nth=2 dir=rx"),
}
REFUSALS_PORT = 7471
EXPLAINED = "Likely cause:"  # by `verbena run`
REMOTE_ACCESS_ERROR = 10  # IBV_WC_REM_ACCESS_ERR


class Side:
    def __init__(self, name, address, prefix, conversations, environment=None):
        self.name, self.address, self.conversations = name, address, conversations
        self._prefix, self._environment = prefix, environment or {}

    def start(self, command):
        return subprocess.Popen([*self._prefix, f"timeout {PROGRAM_LIMIT_S} {command}"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True,
                                env=os.environ | self._environment)

    def listens(self, port):
        done = subprocess.run([*self._prefix, f"cat /proc/net/tcp; rdma resource show cm_id"],
                              capture_output=True, text=True, check=False)
        return f":{port:04X} 00000000:0000 0A" in done.stdout or re.search(
            rf":{port}\b.*\bLISTEN\b|\bLISTEN\b.*:{port}\b", done.stdout)


def ours(build, setting, rules=""):
    return Side("verbena", OURS, [f"{build}/bin/verbena", "run", "--", "bash", "-c"],
                CONVERSATIONS / "verbs_peer.py",
                {"VERBENA_ADDRESS": "br0", "VERBENA_LINK": "iwarp", "VERBENA_IWARP": setting,
                 "VERBENA_FAULT": rules})


def guest(command):
    return subprocess.run(["guest-exec", command], capture_output=True, text=True, check=True).stdout


def set_siw(parameters):
    for name, value in (DEFAULTS | parameters).items():
        guest(f"echo {value} > {PARAMETERS}/{name}")


def start_server(side, command, port):
    server = side.start(command)
    deadline = time.monotonic() + START_LIMIT_S
    while not side.listens(port) and server.poll() is None:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return server


def shown(outputs):
    return "\n".join(f"{name}$ {command}\n{text.rstrip()}\n[exit status {status}]"
                     for name, command, text, status in outputs)


def run_pair(server_side, client_side, commands, port):
    """An empty string, or what went wrong."""
    server_command, client_command = (c.format(a=server_side.address, p=port) for c in commands)
    server = start_server(server_side, server_command, port)
    client = client_side.start(client_command)
    outputs = [(side.name, command, process.communicate()[0], process.returncode)
               for side, command, process in ((client_side, client_command, client),
                                              (server_side, server_command, server))]
    # A server of rping may post to a connection that its client has just ended.
    if outputs[0][3] == 0 and (outputs[1][3] == 0 or server_command.startswith("rping")):
        return ""
    return shown(outputs)


class Capture:
    """The packets of the guest's link, of one TCP port."""

    def __init__(self, path, port):
        self._process = subprocess.Popen(
            ["tcpdump", "-i", "tap1", "-s0", "-U", "--immediate-mode", "-Z", "root", "-w", path,
             f"tcp port {port}"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_LIMIT_S
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def end(self):
        time.sleep(0.3)  # tcpdump has them by then
        self._process.terminate()
        self._process.wait()


def run_refusal(passive, active, refusal, path):
    """An empty string, or what went wrong."""
    expected = {terminates.Terminate(address, *reason)
                for address, reason in ((OURS, refusal.ours), (SIW, refusal.siw)) if reason
                and (refusal.rules or address == passive.address)}
    capture = Capture(path, REFUSALS_PORT)
    server_command = (f"env VP_IP={passive.address} {PYTHON} {passive.conversations} passive "
                      f"{refusal.conversation}")
    client_command = (f"{PYTHON} {active.conversations} active {refusal.conversation} "
                      f"{passive.address}")
    server = start_server(passive, server_command, REFUSALS_PORT)
    client = active.start(client_command)
    texts = [(side, command, process.communicate()[0], process.returncode)
             for side, command, process in ((active, client_command, client),
                                            (passive, server_command, server))]
    capture.end()
    own = next(text for side, _, text, _ in texts if side.name == "verbena")
    wrong = []
    if set(found := terminates.terminates(path, reversed_by=SIW)) != expected:
        wrong.append(f"on the wire: {found}; expected: {expected}")
    if (EXPLAINED in own) != bool(expected):
        wrong.append("our side says why" if not expected else "our side does not say why")
    reads = refusal.conversation.startswith("cm_read") and active.name == "verbena" and expected
    if reads and f"status {REMOTE_ACCESS_ERROR}" not in own:
        wrong.append("the READ has another status")
    outputs = [(side.name, command, text, status) for side, command, text, status in texts]
    return "\n".join([*wrong, shown(outputs)]) if wrong else ""


def cases():
    for setting in SETTINGS:
        yield setting, "rping"
    for program in PROGRAMS:
        if program != "rping":
            yield "default", program


def refusals():
    """The name, the refusal, and whether our side is the active one."""
    for name, refusal in REFUSALS.items():
        for we_are_active in (True, False):
            # One side alone has our rules, and one side's bytes are corrupted.
            if not refusal.rules or we_are_active:
                yield name, refusal, we_are_active


def report(name, wrong):
    print(f"{'FAILED' if wrong else 'ok':6} {name}", *([wrong] if wrong else []),
          sep="\n" if wrong else " ", flush=True)
    return not wrong


def run_programs(build, siw, pattern):
    port = 20000
    for setting, program in cases():
        parameters, words = SETTINGS[setting]
        set_siw(parameters)
        own = ours(build, words)
        for passive, active in ((siw, own), (own, siw)):
            name = f"{program}/{setting}/{active.name}-to-{passive.name}"
            if pattern in name:
                port += 1
                yield report(name, run_pair(passive, active, PROGRAMS[program], port))


def run_refusals(build, siw, pattern):
    set_siw({})
    with tempfile.TemporaryDirectory() as folder:
        for number, (refused, refusal, we_are_active) in enumerate(refusals()):
            own = ours(build, "", refusal.rules)
            passive, active = (siw, own) if we_are_active else (own, siw)
            name = f"refused/{refused}/{active.name}-to-{passive.name}"
            if pattern in name:
                path = pathlib.Path(folder, f"{number}.pcap")
                yield report(name, run_refusal(passive, active, refusal, path))


def run_suite(build, pattern):
    siw = Side("linux", SIW, ["guest-exec"], "/host/verbs_peer.py")
    passed = [*run_programs(build, siw, pattern), *run_refusals(build, siw, pattern)]
    print(f"{sum(passed)} of {len(passed)} passed")
    return 0 if passed and all(passed) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-k", dest="pattern", default="")
    arguments = parser.parse_args()
    if arguments.quick and not arguments.pattern and not run.testing.THOROUGH:
        arguments.pattern = "rping/default"
    build = pathlib.Path(arguments.build).resolve()
    if "LAB_SOCK" in os.environ:
        return run_suite(build, arguments.pattern)
    if reason := run.why_not():
        print(f"skipped: {reason}")
        return run.SKIPPED
    inner = [sys.executable, HERE / "siw.py", build, "-k", arguments.pattern]
    command = [run.LAB / "guest-run", "--raw", "--rdma", "siw", "--time-limit", TIME_LIMIT_S,
               "--share", CONVERSATIONS, "--host", shlex.join(map(str, inner))]
    return subprocess.run([str(part) for part in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
