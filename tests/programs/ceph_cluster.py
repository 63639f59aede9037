"""A Ceph cluster of one monitor and one OSD, whose objects are in memory, with the messenger that
the caller names: for the tests and benchmarks of Ceph. All its files are in one folder."""

import json
import subprocess
import uuid

import harness

START_LIMIT_S = 120
OPERATION_LIMIT_S = 30  # of a client at an OSD, which blocks clients when its memory is full
POOL = "objects"
STORE_BYTES = 4 << 30
BENCH_BYTES = STORE_BYTES // 2  # of all objects of a bench

CONFIGURATION = """\
[global]
fsid = {fsid}
mon_host = v2:{address}:{port}
mon_initial_members = a
public_addr = {address}
ms_bind_msgr1 = false
ms_type = {messenger}
{rdma}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_objectstore = memstore
memstore_device_bytes = {store_bytes}
rados_osd_op_timeout = {operation_limit_s}
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
run_dir = {folder}
admin_socket = {folder}/$name.$pid.asok
log_file = {folder}/$name.log
mon_data = {folder}/mon
osd_data = {folder}/osd
keyring = {folder}/keyring
"""

RDMA_OPTIONS = """\
ms_async_rdma_device_name = verbena0
ms_async_rdma_local_gid = {gid}
ms_async_rdma_roce_ver = 2
{connections}
"""

# Ceph has connections by rdma_cm under the name of the devices that need them.
RDMA_CM = "ms_async_rdma_cm = true\nms_async_rdma_type = iwarp"


def gid_of(ipv4):
    """The address as Ceph writes GIDs."""
    a, b, c, d = map(int, ipv4.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"


class Cluster:
    """`start(*command)` starts a program on the device, and returns a harness.Program. `messenger`:
    async+posix or async+rdma."""

    def __init__(self, start, folder, address, port, messenger, cm=False):
        self._start, self.folder = start, folder
        self._programs = []
        fsid = uuid.uuid4()
        rdma = ""
        if messenger == "async+rdma":
            rdma = RDMA_OPTIONS.format(gid=gid_of(address), connections=RDMA_CM if cm else "")
        self.configuration = folder / "ceph.conf"
        self.configuration.write_text(CONFIGURATION.format(
            fsid=fsid, address=address, port=port, messenger=messenger, rdma=rdma, folder=folder,
            store_bytes=STORE_BYTES, operation_limit_s=OPERATION_LIMIT_S))
        for name in ("mon", "osd"):
            (folder / name).mkdir(mode=0o777)
            (folder / name).chmod(0o777)
        self._make_monitor_files(fsid, address, port)

    def _make_monitor_files(self, fsid, address, port):
        keyring, self._map = self.folder / "keyring", self.folder / "monmap"
        for command in (
                ["ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap",
                 "mon", "allow *"],
                ["ceph-authtool", keyring, "--gen-key", "-n", "client.admin", "--cap", "mon",
                 "allow *", "--cap", "osd", "allow *"],
                ["monmaptool", "--create", "--addv", "a", f"v2:{address}:{port}", "--fsid",
                 str(fsid), self._map]):
            subprocess.run(command, check=True, capture_output=True)
        keyring.chmod(0o644)
        self._map.chmod(0o644)

    def _daemon(self, *command):
        program = self._start(*command)
        self._programs.append(program)
        return program

    def run(self, name, *arguments, limit_s=START_LIMIT_S):
        """A program of Ceph with the cluster's configuration, to its end; its output."""
        program = self._start(name, "-c", self.configuration, *arguments)
        status = program.wait(limit_s)
        if status != 0:
            program.kill()
            end = f"no end within {limit_s} s" if status is None else f"exit status {status}"
            raise harness.Failure(f"{name}: {end}\n{program}\n" +
                                  "\n".join(map(str, self._programs)))
        return program.output()

    def bring_up(self):
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", self._map, "--keyring",
                 self.folder / "keyring")
        self._daemon("ceph-mon", "-c", self.configuration, "-i", "a", "-f")
        self.run("ceph", "osd", "create")
        self.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", str(uuid.uuid4()), "--monmap",
                 self._map)
        self._daemon("ceph-osd", "-c", self.configuration, "-i", "0", "-f")
        harness.wait_until(lambda: self.status()["osdmap"]["num_up_osds"] == 1, START_LIMIT_S,
                           "the OSD is up")
        self.run("ceph", "osd", "crush", "add", "osd.0", "1", "root=default", "host=h")
        self.run("ceph", "osd", "pool", "create", POOL, "8", "8")
        self.run("ceph", "osd", "pool", "set", POOL, "pg_autoscale_mode", "off")

    def status(self):
        text = self.run("ceph", "status", "--format", "json")
        return json.JSONDecoder().raw_decode(text, text.index("{"))[0]  # others' output is around it

    def measure(self, mode, size, depth, seconds):
        """MB/s of `rados bench` with objects of `size` bytes; it leaves none of them. `mode`:
        write, seq or rand."""
        write = ("write", "-b", size, "--max-objects", BENCH_BYTES // size)
        if mode == "write":
            return self.bench(seconds, *write, "-t", depth)
        self.bench(2, *write, "-t", depth, "--no-cleanup")
        result = self.bench(seconds, mode, "-t", depth)
        self.run("rados", "-p", POOL, "cleanup")
        return result

    def bench(self, *arguments, limit_s=START_LIMIT_S):
        """MB/s of `rados bench`."""
        output = self.run("rados", "-p", POOL, "bench", *arguments, limit_s=limit_s)
        for line in output.splitlines():
            if line.startswith("Bandwidth (MB/sec):"):
                return float(line.split()[-1])
        raise harness.Failure(output)

    def close(self):
        for program in reversed(self._programs):
            program.kill()
