#!/usr/bin/env python3
"""QEMU's RDMA migration on Verbena, unmodified: of a guest that runs and changes its memory, with
and without rdma-pin-all; cancelled; with a destination that is killed; all of it on iWARP devices
too. Both memories are compared.

usage: qemu_migration_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import shutil
import tempfile
import unittest

import harness
import rdmacm_pairs
from qemu_guest import Guest

BUILD = harness.build_from_command_line()
LIMIT_S = 180  # three passes of two emulated machines on a busy core
MEMORY_MIB = 128
SLOW = 4 << 20  # bytes a second, so that a migration takes long enough to be ended


@unittest.skipUnless(shutil.which("qemu-system-x86_64"), "qemu-system-x86 is not installed")
class QEMUMigrationTest(unittest.TestCase):
    environment = {}

    def start(self, *command, **options):
        return BUILD.start(*command, environment=self.environment, **options)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-qemu-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)
        (self.folder / "source.memory").write_bytes(os.urandom(MEMORY_MIB << 20))
        self.source = self.guest("source")
        self.source.wait_until_running()

    def guest(self, name, incoming=None):
        guest = Guest(self.start, self.folder, name, MEMORY_MIB, incoming)
        self.addCleanup(guest.close)
        return guest

    def destination(self, name="destination"):
        """A guest that waits for a migration, and the URI to send it to."""
        uri = f"rdma:{BUILD.address}:{rdmacm_pairs.free_port()}"
        return self.guest(name, uri), uri

    def check_migrated(self, destination, result):
        self.assertEqual(result["status"], "completed", f"{result}\n{self.source.program}")
        # The source may report its end before the destination has loaded the last state.
        harness.wait_until(lambda: destination.ask("query-status")["status"] == "paused", LIMIT_S,
                           f"the destination has the guest\n{destination.program}")
        self.check_equal(self.source.memory.read_bytes(), destination.memory.read_bytes())
        destination.ask("cont")
        destination.wait_until_running()

    def check_equal(self, source, destination):
        pages = [at for at in range(0, len(source), 4096)
                 if source[at:at + 4096] != destination[at:at + 4096]]
        status = self.source.ask("query-status")
        words = [(hex(at), source[at:at + 8].hex(), destination[at:at + 8].hex()) for at in pages[:4]]
        self.assertFalse(pages, f"{len(pages)} pages differ: {words}, {status}")

    def test_a_running_guest(self):
        destination, uri = self.destination()
        self.check_migrated(destination, self.source.migrate(uri, LIMIT_S))

    def test_with_all_memory_pinned(self):
        destination, uri = self.destination()
        for guest in (self.source, destination):
            guest.set_capability("rdma-pin-all")
        self.check_migrated(destination, self.source.migrate(uri, LIMIT_S))

    def test_several_live_passes(self):
        """The guest changes its memory while QEMU sends it several times, by WRITEs or copies."""
        destination, uri = self.destination()
        for guest in (self.source, destination):
            guest.set_capability("rdma-pin-all")
        self.source.limit_bandwidth(100 << 20)
        self.source.limit_downtime(1)  # so that QEMU does not stop the guest yet
        self.source.ask("migrate", uri=uri)
        harness.wait_until(lambda: self.source.passes() > 2 or self.source.has_migrated(), LIMIT_S,
                           f"three passes\n{self.source.program}")
        self.source.limit_bandwidth(1 << 30)
        self.source.limit_downtime(LIMIT_S * 1000)
        harness.wait_until(self.source.has_migrated, LIMIT_S, f"it ends\n{self.source.program}")
        self.assertGreater(self.source.passes(), 2)
        self.check_migrated(destination, self.source.migration())

    def start_slow_migration(self, destination_uri):
        self.source.limit_bandwidth(SLOW)
        self.source.ask("migrate", uri=destination_uri)
        harness.wait_until(
            lambda: self.source.migration().get("ram", {}).get("transferred", 0) > SLOW // 2,
            LIMIT_S, f"the migration is under way\n{self.source.program}")

    def check_that_the_source_goes_on(self):
        self.assertEqual(self.source.ask("query-status")["status"], "running")
        self.source.wait_until_running()

    def test_cancelled(self):
        """The guest goes on at the source, and can be migrated after all."""
        _, uri = self.destination("first")
        self.start_slow_migration(uri)
        self.source.ask("migrate_cancel")
        harness.wait_until(self.source.has_migrated, LIMIT_S, f"it ends\n{self.source.program}")
        self.assertEqual(self.source.migration()["status"], "cancelled")
        self.check_that_the_source_goes_on()
        self.source.limit_bandwidth(1 << 30)
        destination, uri = self.destination("second")
        self.check_migrated(destination, self.source.migrate(uri, LIMIT_S))

    def test_the_destination_is_killed(self):
        destination, uri = self.destination()
        self.start_slow_migration(uri)
        destination.program.kill()
        harness.wait_until(self.source.has_migrated, LIMIT_S, f"it ends\n{self.source.program}")
        self.assertEqual(self.source.migration()["status"], "failed")
        self.check_that_the_source_goes_on()


class QEMUMigrationOnIWARPTest(QEMUMigrationTest):
    environment = {"VERBENA_LINK": "iwarp"}


if __name__ == "__main__":
    harness.main()
