#!/usr/bin/env python3
"""Verbena's NVMe over Fabrics against Linux's own, which runs in a small guest (tests/lab), over
soft-RoCE and over soft-iWARP:

  host    Linux's nvme-rdma on our target: nvme-cli's commands, ext4 with files, fio with checksums,
          a link that is down for a while, a target that is killed and comes back
  nbd     Linux's nbd.ko on nbdkit with our plugin: a mounted file system
  target  our host on Linux's nvmet-rdma: discover, connect, write, read, bench

usage: nvme.py [BUILD_DIR] [--link rxe|siw] [-k PATTERN] [--quick] [--list]

The exit status is 77 where a guest cannot run (run.py says what it needs).
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import run

HERE = pathlib.Path(__file__).resolve().parent
OURS, LINUX = "10.77.0.1", "10.77.0.2"
NQN = "nqn.2026-01.io.verbena:interop"
LINUX_NQN = "lab"
TIME_LIMIT_S = 1100
DISK_BYTES = 96 << 20


class Failure(Exception):
    """A case did not do what it should."""


def guest(command, limit_s=120):
    """Runs it in the guest; its output, or Failure."""
    try:
        done = subprocess.run(["guest-exec", command], capture_output=True, text=True, check=False,
                              errors="replace",
                              stdin=subprocess.DEVNULL, timeout=limit_s)
    except subprocess.TimeoutExpired as hung:
        raise Failure(f"linux$ {command}\n{hung.stdout}\n[not over after {limit_s} s]") from None
    if done.returncode != 0:
        raise Failure(f"linux$ {command}\n{done.stdout}{done.stderr}[exit status {done.returncode}]")
    return done.stdout


def wait_for(condition, limit_s, what):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not after {limit_s} s")
        time.sleep(0.3)


class Ours:
    """The command here, with the device on the bridge to the guest."""

    def __init__(self, build, link):
        self.command = [f"{build}/bin/verbena", "nvmf"]
        self.plugin = f"{build}/lib/nbdkit-verbena-plugin.so"
        self.device = ["--link", "iwarp"] if link == "siw" else []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-nvme-"))
        self.disk = self.folder / "disk"
        self.log = self.folder / "target.log"
        self.process = None

    def start_target(self, address=OURS):
        if not self.disk.exists():
            with self.disk.open("wb") as disk:
                disk.truncate(DISK_BYTES)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "target", *self.device, "--nqn", NQN, "--namespace", str(self.disk),
                 "--namespace", "memory:16M,block=4096", "--listen", address],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        wait_for(lambda: b"listening" in self.log.read_bytes().rsplit(b"connections", 1)[-1], 20,
                 "the target listens")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.write_bytes(b"")

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        if self.process.wait(20) != 0:
            raise Failure(f"the target ended with {self.process.returncode}\n{self.log.read_text()}")
        self.log.write_bytes(b"")

    def run(self, *arguments, limit_s=60, **options):
        name, rest = arguments[0], arguments[1:]
        command = [*self.command, name, *rest, *self.device]
        done = subprocess.run(command, capture_output=True, check=False, timeout=limit_s, **options)
        if done.returncode != 0:
            raise Failure(f"verbena$ {shlex.join(map(str, command))}\n{done.stdout[-2000:]}"
                          f"{done.stderr.decode()}[exit status {done.returncode}]")
        return done.stdout


def connect_linux(ours, options=""):
    """The names of the block devices, by namespace."""
    guest(f"nvme connect -t rdma -a {OURS} -s 4420 -n {NQN} -q nqn.2026-01.io.verbena:guest "
          f"{options}")
    wait_for(lambda: "nvme0n2" in guest("ls /dev"), 20, "Linux has the namespaces")


def disconnect_linux():
    guest(f"nvme disconnect -n {NQN}")


# --- Linux is the host


def commands(ours):
    """What nvme-cli asks."""
    ours.start_target()
    log = guest(f"nvme discover -t rdma -a {OURS} -s 4420")
    if NQN not in log:
        raise Failure(f"not in the discovery log:\n{log}")
    connect_linux(ours)
    if "/dev/nvme0n1" not in guest("nvme list"):
        raise Failure(guest("nvme list"))
    controller = json.loads(guest("nvme id-ctrl /dev/nvme0 -o json"))
    if controller["subnqn"] != NQN or controller["ioccsz"] < 4:
        raise Failure(str(controller))
    space = json.loads(guest("nvme id-ns /dev/nvme0n2 -o json"))
    if space["nsze"] != 4096 or space["lbafs"][0]["ds"] != 12:
        raise Failure(str(space))
    for command in ("smart-log /dev/nvme0", "error-log /dev/nvme0", "ns-descs /dev/nvme0n1",
                    "list-ns /dev/nvme0", "fw-log /dev/nvme0", "effects-log /dev/nvme0",
                    "get-feature /dev/nvme0 -f 7", "get-feature /dev/nvme0 -f 0x0f",
                    "flush /dev/nvme0n1", "get-property /dev/nvme0 -o 0", "get-property /dev/nvme0 -o 28"):
        guest(f"nvme {command}")
    guest("head -c 8192 /dev/urandom > /tmp/a && nvme write /dev/nvme0n1 -s 8 -c 15 -z 8192 -d /tmp/a"
          " && nvme read /dev/nvme0n1 -s 8 -c 15 -z 8192 -d /tmp/b && cmp /tmp/a /tmp/b")
    guest("nvme compare /dev/nvme0n1 -s 8 -c 15 -z 8192 -d /tmp/a")
    guest("echo x > /tmp/b; head -c 8190 /dev/zero >> /tmp/b;"
          " ! nvme compare /dev/nvme0n1 -s 8 -c 15 -z 8192 -d /tmp/b")
    guest("nvme write-zeroes /dev/nvme0n1 -s 8 -c 7"
          " && nvme read /dev/nvme0n1 -s 8 -c 7 -z 4096 -d /tmp/b"
          " && cmp -n 4096 /tmp/b /dev/zero")
    guest("nvme dsm /dev/nvme0n1 -s 16 -b 8 -d"
          " && nvme read /dev/nvme0n1 -s 16 -c 7 -z 4096 -d /tmp/b && cmp -n 4096 /tmp/b /dev/zero")
    guest("! nvme read /dev/nvme0n1 -s 99999999 -c 0 -z 512 -d /tmp/b")
    guest("nvme reset /dev/nvme0", limit_s=60)
    guest("dd if=/dev/nvme0n1 of=/dev/null bs=64k count=16 iflag=direct 2>&1")
    disconnect_linux()
    ours.stop()


def files(ours):
    """ext4 with a tree of files on our file, checked after each mount."""
    ours.start_target()
    connect_linux(ours)
    guest("mkfs.ext4 -q /dev/nvme0n1 && mkdir -p /tmp/m && mount /dev/nvme0n1 /tmp/m"
          " && cp -r /usr/sbin /tmp/m/tree && sync && umount /tmp/m", limit_s=300)
    guest("fsck.ext4 -fn /dev/nvme0n1", limit_s=120)
    guest("mount /dev/nvme0n1 /tmp/m && echo 3 > /proc/sys/vm/drop_caches"
          " && diff -r /usr/sbin /tmp/m/tree && fstrim /tmp/m && umount /tmp/m", limit_s=300)
    disconnect_linux()
    ours.stop()
    if subprocess.run(["fsck.ext4", "-fn", str(ours.disk)], capture_output=True,
                      check=False).returncode != 0:
        raise Failure("the file's file system has errors")


def verify(ours):
    """fio's checksums with random block sizes, on file and memory."""
    ours.start_target()
    connect_linux(ours, "--nr-io-queues 2")
    for device, least in (("nvme0n1", "512"), ("nvme0n2", "4k")):
        guest(f"fio --name v --filename=/dev/{device} --rw=randwrite --bsrange={least}-128k"
              f" --blockalign={least} --size=12m --verify=crc32c --do_verify=1 --direct=1"
              " --ioengine=libaio --iodepth=16 --randseed=7 --minimal", limit_s=300)
    disconnect_linux()
    ours.stop()


def lost_link(ours):
    """The link is down for 20 s while fio writes; nothing is lost."""
    ours.start_target()
    connect_linux(ours, "--ctrl-loss-tmo 120 --reconnect-delay 2 --keep-alive-tmo 5")
    writing = subprocess.Popen(
        ["guest-exec", "fio --name v --filename=/dev/nvme0n1 --rw=randwrite --bs=4k --size=8m"
         " --verify=crc32c --do_verify=1 --direct=1 --ioengine=libaio --iodepth=8 --rate=400k"
         " --minimal"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(4)
    subprocess.run(["ip", "link", "set", "tap1", "down"], check=True)
    time.sleep(20)
    subprocess.run(["ip", "link", "set", "tap1", "up"], check=True)
    output = writing.communicate(timeout=180)[0]
    if writing.returncode != 0:
        raise Failure(f"fio ended with {writing.returncode}\n{output.decode()[-2000:]}")
    disconnect_linux()
    ours.stop()


def killed_target(ours):
    """kill -9 after a flush, and a new target on the same file: Linux goes on and finds its data."""
    ours.start_target()
    connect_linux(ours, "--ctrl-loss-tmo 120 --reconnect-delay 2 --keep-alive-tmo 5")
    guest("head -c 4M /dev/urandom > /tmp/a && dd if=/tmp/a of=/dev/nvme0n1 bs=64k oflag=direct"
          " conv=fsync 2>&1")
    ours.kill()
    time.sleep(3)
    ours.start_target()
    guest("dd if=/dev/nvme0n1 of=/tmp/b bs=64k count=64 iflag=direct 2>&1 && cmp /tmp/a /tmp/b")
    disconnect_linux()
    ours.stop()


# --- Linux is a client of NBD


def nbd(ours):
    """ext4 on a network block device: nbdkit with our plugin here, nbd.ko and nbd-client there."""
    if not shutil.which("nbdkit"):
        print("skipped: nbdkit is not installed", flush=True)
        return
    ours.start_target()
    plugin = ours.plugin
    nbdkit = subprocess.Popen(
        [ours.command[0], "run", "--address", OURS, *ours.device, "--", "nbdkit", "-f", "-i", OURS,
         "-p", "10809", plugin, f"target={OURS}", f"nqn={NQN}"], stdin=subprocess.DEVNULL)
    try:
        guest("modprobe nbd nbds_max=1 && for i in $(seq 50); do"
              f" nbd-client {OURS} 10809 /dev/nbd0 -N '' && exit 0; sleep 0.3; done; exit 1",
              limit_s=60)
        guest("mkfs.ext4 -q /dev/nbd0 && mkdir -p /tmp/n && mount /dev/nbd0 /tmp/n"
              " && cp -r /usr/sbin /tmp/n/tree && sync && umount /tmp/n", limit_s=300)
        guest("fsck.ext4 -fn /dev/nbd0", limit_s=120)
        guest("mount /dev/nbd0 /tmp/n && echo 3 > /proc/sys/vm/drop_caches"
              " && diff -r /usr/sbin /tmp/n/tree && umount /tmp/n", limit_s=300)
        guest("nbd-client -d /dev/nbd0")
    finally:
        nbdkit.terminate()
        nbdkit.wait()
    ours.stop()
    if subprocess.run(["fsck.ext4", "-fn", str(ours.disk)], capture_output=True,
                      check=False).returncode != 0:
        raise Failure("the file's file system has errors")


# --- Linux is the target


def linux_target(ours):
    """Our host on nvmet-rdma."""
    guest(f"lab-nvmet rdma {LINUX} 4420")
    log = json.loads(ours.run("discover", LINUX, "--json"))
    if not any(record["subnqn"] == LINUX_NQN for record in log["records"]):
        raise Failure(str(log))
    told = json.loads(ours.run("connect", LINUX, "--nqn", LINUX_NQN, "--json"))
    if told["namespaces"][0]["bytes"] != 64 << 20:
        raise Failure(str(told))
    data = os.urandom(3 << 20)
    ours.run("write", LINUX, "--nqn", LINUX_NQN, "--offset", "64K", input=data)
    back = ours.run("read", LINUX, "--nqn", LINUX_NQN, "--offset", "64K", "--length", str(len(data)))
    if back != data:
        raise Failure("other data came back")
    ours.run("bench", LINUX, "--nqn", LINUX_NQN, "--seconds", "2", "--queues", "2")
    ours.run("bench", LINUX, "--nqn", LINUX_NQN, "--seconds", "2", "--rw", "randwrite")


CASES = {
    "host.commands": commands,
    "host.files": files,
    "host.verify": verify,
    "host.lost_link": lost_link,
    "host.killed_target": killed_target,
    "nbd.files": nbd,
    "target.linux": linux_target,
}
QUICK = ("host.commands", "host.verify", "target.linux")


def run_suite(arguments):
    for module in ("nvme-rdma",):
        guest(f"modprobe {module}")
    failed = 0
    names = [name for name in CASES if arguments.pattern in name and
             (arguments.all or name in QUICK)]
    for name in names:
        ours = Ours(arguments.build, arguments.link)
        begin = time.monotonic()
        try:
            CASES[name](ours)
            print(f"ok     {arguments.link} {name} {time.monotonic() - begin:.0f} s", flush=True)
        except (Failure, subprocess.TimeoutExpired) as failure:
            failed += 1
            tail = subprocess.run(["guest-exec", "dmesg | tail -20"], capture_output=True, text=True,
                                  check=False).stdout
            print(f"FAILED {arguments.link} {name}\n{failure}\n{tail}", flush=True)
            subprocess.run(["guest-exec", "nvme disconnect-all"], capture_output=True, check=False,
                           timeout=60)
            if ours.process is not None:
                ours.process.kill()
            print(ours.log.read_text()[-1000:] if ours.log.exists() else "", flush=True)
    print(f"{len(names) - failed} of {len(names)} passed")
    return 1 if failed or not names else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--link", choices=("rxe", "siw"), default="rxe")
    parser.add_argument("-k", dest="pattern", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    arguments.all = run.testing.THOROUGH or not arguments.quick
    arguments.build = pathlib.Path(arguments.build).resolve()
    if arguments.list:
        print("\n".join(CASES))
        return 0
    if "LAB_SOCK" in os.environ:
        return run_suite(arguments)
    if reason := run.why_not():
        print(f"skipped: {reason}")
        return run.SKIPPED
    if subprocess.run([run.LAB / "guest-build"], check=False).returncode != 0:
        print("skipped: the guest could not be built")
        return run.SKIPPED
    inner = shlex.join([sys.executable, str(HERE / "nvme.py"), *sys.argv[1:]])
    command = [run.LAB / "guest-run", "--raw", "--rdma", arguments.link, "--mem", "512", "--share",
               HERE, "--time-limit", TIME_LIMIT_S, "--host", inner]
    return subprocess.run([str(part) for part in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
