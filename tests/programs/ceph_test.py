#!/usr/bin/env python3
"""Ceph's messenger over verbs (ms_type = async+rdma) on Verbena, unmodified: a monitor, an OSD and
their clients, with addresses exchanged by TCP and by rdma_cm; on iWARP devices by rdma_cm. Objects
are written and read back.

usage: ceph_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import shutil
import tempfile
import unittest

import ceph_cluster
import harness
import testing

BUILD = harness.build_from_command_line()
OBJECT_SIZES = (0, 1, 4096, 1 << 20, 5_000_001)


def missing():
    for program, package in (("ceph-mon", "ceph-mon"), ("ceph-osd", "ceph-osd"),
                             ("rados", "ceph-common")):
        if not shutil.which(program):
            return f"{package} is not installed"
    return None


class CephCase(unittest.TestCase):
    environment = {}

    def start(self, *command):
        return BUILD.start(*command, environment=self.environment)

    def cluster(self, **options):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-ceph-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o777)
        cluster = ceph_cluster.Cluster(self.start, folder, BUILD.address, self.monitor_port(),
                                       "async+rdma", **options)
        self.addCleanup(cluster.close)
        cluster.bring_up()
        return cluster

    @staticmethod
    def monitor_port():
        """Outside 6800 to 7300, which OSDs take."""
        while 6800 <= (port := harness.free_tcp_port()) <= 7300:
            pass
        return port

    def check_objects(self, cluster):
        for size in OBJECT_SIZES:
            with self.subTest(size=size):
                source, copy = cluster.folder / "source", cluster.folder / f"copy{size}"
                source.write_bytes(os.urandom(size))
                source.chmod(0o644)
                cluster.run("rados", "-p", ceph_cluster.POOL, "put", f"object{size}", source)
                cluster.run("rados", "-p", ceph_cluster.POOL, "get", f"object{size}", copy)
                self.assertTrue(source.read_bytes() == copy.read_bytes(), "as written")

    def check_bench(self, cluster):
        """`rados bench` compares what it reads with what it wrote. No object of it is left, as the
        OSD's memory would fill up."""
        for mode in ("write", "seq", "rand"):
            with self.subTest(mode=mode):
                self.assertGreater(cluster.measure(mode, 1 << 20, 8, 3), 1)
                objects = cluster.run("rados", "-p", ceph_cluster.POOL, "ls")
                self.assertNotIn("benchmark_data", objects)

    def check(self, **options):
        cluster = self.cluster(**options)
        self.check_objects(cluster)
        self.check_bench(cluster)


@testing.thorough
@unittest.skipIf(missing(), missing())
class CephTest(CephCase):
    def test_addresses_by_tcp(self):
        self.check()

    def test_addresses_by_rdma_cm(self):
        self.check(cm=True)


@testing.thorough
@unittest.skipIf(missing(), missing())
class CephOnIWARPTest(CephCase):
    environment = {"VERBENA_LINK": "iwarp"}

    def test_addresses_by_rdma_cm(self):
        self.check(cm=True)


if __name__ == "__main__":
    harness.main()
