#!/usr/bin/env python3
"""Verbena's iWARP device against Linux's own software iWARP (siw), which runs in a small guest
(tests/lab): programs of rdmacm-utils and perftest, one side here and one there, both ways, with
the settings of CRC, MPA revision and peer-to-peer set-up on either side.

usage: siw.py [BUILD_DIR] [--quick] [-k PATTERN]

  --quick   rping with the defaults only (unless VERBENA_THOROUGH=1)

The exit status is 77 where a guest cannot run (run.py says what it needs).
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import run

HERE = pathlib.Path(__file__).resolve().parent
PARAMETERS = "/sys/module/siw/parameters"
OURS, SIW = "10.77.0.1", "10.77.0.2"
TIME_LIMIT_S = 900
PROGRAM_LIMIT_S = 60
START_LIMIT_S = 30

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
for _operation in ("write", "read", "send"):
    for _kind, _options in (("lat", "-s 64 -n 100"), ("bw", "-s 65536 -n 100")):
        _command = f"ib_{_operation}_{_kind} -R -F -p {{p}} {_options}"
        PROGRAMS[_command.split()[0]] = (_command, _command + " {a}")


class Side:
    def __init__(self, name, address, prefix, environment=None):
        self.name, self.address = name, address
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


def ours(build, setting):
    return Side("verbena", OURS, [f"{build}/bin/verbena", "run", "--", "bash", "-c"],
                {"VERBENA_ADDRESS": "br0", "VERBENA_LINK": "iwarp", "VERBENA_IWARP": setting})


def guest(command):
    return subprocess.run(["guest-exec", command], capture_output=True, text=True, check=True).stdout


def set_siw(parameters):
    for name, value in (DEFAULTS | parameters).items():
        guest(f"echo {value} > {PARAMETERS}/{name}")


def run_pair(server_side, client_side, commands, port):
    """An empty string, or what went wrong."""
    server_command, client_command = (c.format(a=server_side.address, p=port) for c in commands)
    server = server_side.start(server_command)
    deadline = time.monotonic() + START_LIMIT_S
    while not server_side.listens(port) and server.poll() is None:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    client = client_side.start(client_command)
    outputs = [(side.name, command, process.communicate()[0], process.returncode)
               for side, command, process in ((client_side, client_command, client),
                                              (server_side, server_command, server))]
    # A server of rping may post to a connection that its client has just ended.
    if outputs[0][3] == 0 and (outputs[1][3] == 0 or server_command.startswith("rping")):
        return ""
    return "\n".join(f"{name}$ {command}\n{text.rstrip()}\n[exit status {status}]"
                     for name, command, text, status in outputs)


def cases():
    for setting in SETTINGS:
        yield setting, "rping"
    for program in PROGRAMS:
        if program != "rping":
            yield "default", program


def run_suite(build, pattern):
    siw = Side("linux", SIW, ["guest-exec"])
    port, failed, count = 20000, 0, 0
    for setting, program in cases():
        parameters, words = SETTINGS[setting]
        set_siw(parameters)
        own = ours(build, words)
        for passive, active in ((siw, own), (own, siw)):
            name = f"{program}/{setting}/{active.name}-to-{passive.name}"
            if pattern and pattern not in name:
                continue
            port += 1
            wrong = run_pair(passive, active, PROGRAMS[program], port)
            count += 1
            failed += bool(wrong)
            print(f"{'FAILED' if wrong else 'ok':6} {name}", *([wrong] if wrong else []), sep="\n"
                  if wrong else " ", flush=True)
    print(f"{count - failed} of {count} passed")
    return 1 if failed or not count else 0


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
    command = [run.LAB / "guest-run", "--raw", "--rdma", "siw", "--time-limit", TIME_LIMIT_S, "--host",
               shlex.join(map(str, inner))]
    return subprocess.run([str(part) for part in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
