#!/usr/bin/env python3
"""How long OpenSM takes to bring up a large InfiniBand subnet: on `verbena fabric`, and on ibsim with the
same topology.

  subnet_sweep.py [BUILD_DIR] [--hosts 648|1024|5488]

648: 54 switches of 36 ports, two levels. 1024 and 5488: fat-trees of three levels, of 320 switches with 16
ports and 980 with 28.
Seconds: from OpenSM's start to its "SUBNET UP". MB: the most memory that the server of the fabric had.
Without ibsim (package ibsim-utils) that column is left out.
"""

import argparse
import pathlib
import subprocess
import tempfile
import time

TOPOLOGIES = {
    648: "{kind: leaf_spine, leaves: 36, hosts_per_leaf: 18, spines: 18}",
    1024: "{kind: fat_tree, k: 16}",
    5488: "{kind: fat_tree, k: 28}",
}
SIMULATED_UMAD = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"
LIMIT_S = 300


def memory_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


def sweep(folder, name, command, environment, server):
    """Seconds until OpenSM says that the subnet is up, and the server's memory then."""
    log, configuration = folder / f"{name}.log", folder / "opensm.conf"
    # Otherwise OpenSM keeps "SUBNET UP" in a buffer where traps have made it sweep twice.
    configuration.write_text("force_log_flush TRUE\n")
    begin = time.monotonic()
    manager = subprocess.Popen([*command, "opensm", "-f", log, "-F", configuration], cwd=folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=environment | {"OSM_TMP_DIR": str(folder),
                                                  "OSM_CACHE_DIR": str(folder)})
    try:
        while not (log.exists() and "SUBNET UP" in log.read_text(errors="replace")):
            if manager.poll() is not None or time.monotonic() - begin > LIMIT_S:
                raise SystemExit(f"{name}: OpenSM brings no subnet up; see {log}")
            time.sleep(0.01)
        return time.monotonic() - begin, memory_mb(server.pid)
    finally:
        manager.kill()
        manager.wait()


def on_verbena(build, folder, hosts):
    scenario = folder / "subnet.yaml"
    scenario.write_text("technology: infiniband\n" f"topology: {TOPOLOGIES[hosts]}\n"
                        "links: {rate: EDR, delay: 150ns}\ninfiniband: {vls: 1}\n"
                        "hosts: {congestion_control: off}\n")
    verbena = str(build / "bin/verbena")
    begin = time.monotonic()
    server = subprocess.Popen([verbena, "fabric", scenario], stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        started = time.monotonic() - begin
        run = [verbena, "run", "--fabric", str(scenario), "--as"]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        seconds, memory = sweep(folder, "verbena", [*run, "0", "--"], environment, server)
        net = subprocess.run([*run, "1", "--", "ibnetdiscover"], env=environment, text=True,
                             capture_output=True, timeout=LIMIT_S, check=True).stdout
        return started, seconds, memory, net
    finally:
        server.terminate()
        server.wait()


def on_ibsim(folder, net):
    file = folder / "net"
    file.write_text(net)
    server = subprocess.Popen(["ibsim", "-s", "-N", "8192", "-S", "2048", "-P", "65536", file],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        return sweep(folder, "ibsim", ["env", f"LD_PRELOAD={SIMULATED_UMAD}"],
                     {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, server)
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", type=pathlib.Path, default="build/release")
    parser.add_argument("--hosts", type=int, choices=TOPOLOGIES, default=648)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="verbena-sweep-") as name:
        folder = pathlib.Path(name)
        started, seconds, memory, net = on_verbena(arguments.build.resolve(), folder,
                                                   arguments.hosts)
        print(f"verbena: {seconds:.2f} s to SUBNET UP, {memory:.0f} MB ({started:.2f} s to start)")
        if pathlib.Path(SIMULATED_UMAD).exists():
            seconds, memory = on_ibsim(folder, net)
            print(f"ibsim:   {seconds:.2f} s to SUBNET UP, {memory:.0f} MB")


if __name__ == "__main__":
    main()
