#!/usr/bin/env python3
"""The files of the devices, as programs of every kind find them: /dev/infiniband and
/sys/class/infiniband under `verbena run`, and that nothing of them remains.

usage: device_files_test.py [BUILD_DIR] [-k PATTERN]
"""

import errno
import json
import os
import pathlib
import signal
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
DEVICE = "/sys/class/infiniband/verbena0"

PYTHON_TOUR = """
import glob, json, os, pathlib, stat
device = "/sys/class/infiniband/verbena0"
node = os.stat("/dev/infiniband/uverbs0")
folder = os.open("/sys/class", os.O_RDONLY)
print(json.dumps({
    "devices": os.listdir("/sys/class/infiniband"),
    "scan": [entry.name for entry in os.scandir("/sys/class/infiniband_verbs")],
    "gids": sorted(glob.glob(device + "/ports/*/gids/*")),
    "gid": pathlib.Path(device + "/ports/1/gids/3").read_text(),
    "type": open(device + "/ports/1/gid_attrs/types/3").read(),
    "card": os.path.realpath(device + "/device"),
    "link": os.readlink(device),
    "character": stat.S_ISCHR(node.st_mode),
    "usable": os.access("/dev/infiniband/uverbs0", os.R_OK | os.W_OK),
    "relative": os.stat("infiniband/verbena0/node_guid", dir_fd=folder).st_size,
    "absent": os.path.exists("/sys/class/infiniband/mlx5_0"),
}))
"""


class DeviceFilesTest(unittest.TestCase):
    def output_of(self, *command, **options):
        program = BUILD.run(*command, **options)
        self.assertEqual(program.process.returncode, 0, program)
        return program.output()

    def shell(self, line):
        return self.output_of("sh", "-c", line)

    def test_python(self):
        found = json.loads(self.output_of("python3", "-c", PYTHON_TOUR))
        address = ":".join(f"{int(a):02x}{int(b):02x}" for a, b in
                           [BUILD.address.split(".")[:2], BUILD.address.split(".")[2:]])
        self.assertEqual(found, {
            "devices": ["verbena0"],
            "scan": found["scan"],
            "gids": [f"{DEVICE}/ports/1/gids/{i}" for i in range(4)],
            "gid": f"0000:0000:0000:0000:0000:ffff:{address}\n",
            "type": "RoCE v2\n",
            "card": "/sys/devices/virtual/infiniband/verbena0",
            "link": "../../devices/virtual/infiniband/verbena0/infiniband/verbena0",
            "character": True,
            "usable": True,
            "relative": len("0000:0000:0000:0000\n"),
            "absent": False,
        })
        self.assertEqual(sorted(found["scan"]), ["abi_version", "uverbs0"])

    def test_pairs_of_libibumad(self):
        """A RoCE device has general services and no subnet management."""
        script = pathlib.Path(__file__).with_name("umad_pairs.py")
        pair, no_device = ":0 verbena0:1", -errno.ENODEV
        self.assertEqual(json.loads(self.output_of("python3", script)), {
            "pairs": [pair], "none fits": 0, "first": pair, "named": pair, "with smi": no_device,
            "no such port": no_device, "no such device": no_device})

    def test_shell(self):
        """Programs that are started by another one, and use the C library's other calls."""
        self.assertEqual(self.shell("ls /sys/class/infiniband"), "verbena0\n")
        self.assertEqual(self.shell(f"cat {DEVICE}/ports/1/state"), "4: ACTIVE\n")
        self.assertEqual(self.shell("echo /sys/class/infiniband/*/ports/*"), f"{DEVICE}/ports/1\n")
        self.assertEqual(self.shell("cd /sys/class/infiniband && pwd -P && cat verbena0/fw_ver"),
                         "/sys/class/infiniband\n0.2.0\n")
        self.assertEqual(self.shell("find -L /sys/class/infiniband -maxdepth 1 -name 'verbena*'"),
                         f"{DEVICE}\n")
        self.shell("test -c /dev/infiniband/uverbs0 -a -r /dev/infiniband/rdma_cm")
        self.assertIn("node_guid", self.shell(f"ls -l {DEVICE}/"))

    def test_they_say_what_verbs_say(self):
        devinfo = self.output_of("ibv_devinfo", "-v")
        for file, text in (("node_guid", "node_guid:"), ("fw_ver", "fw_ver:"),
                           ("sys_image_guid", "sys_image_guid:")):
            [line] = [line for line in devinfo.splitlines() if line.strip().startswith(text)]
            self.assertEqual(self.shell(f"cat {DEVICE}/{file}").strip(), line.split()[-1])

    def test_counters_without_programs_are_0(self):
        found = self.output_of("sh", "-c", f"cd {DEVICE}/ports/1 && cat {DEVICE}/ports/1/counters/* "
                               f"{DEVICE}/ports/1/hw_counters/* && ls counters hw_counters")
        numbers = [line for line in found.splitlines() if line.isdigit()]
        names = [line for line in found.splitlines() if line[:1].isalpha() and ":" not in line]
        self.assertEqual(set(numbers), {"0"})
        self.assertEqual(len(numbers), len(names))
        for name in ("port_xmit_data", "port_rcv_data", "symbol_error", "out_of_buffer", "lifespan"):
            self.assertIn(name, names)

    def test_counters_of_running_programs(self):
        """What they sent and received together, again and again by one descriptor."""
        pair = BUILD.start_pair("ib_write_bw", "-D", 600)
        self.addCleanup(harness.stop, *pair)
        BUILD.wait_for_traffic(*pair)
        reader = self.output_of("python3", "-c", f"""
import os, time
file = os.open("{DEVICE}/ports/1/counters/port_xmit_data", os.O_RDONLY)
first = int(os.read(file, 100))
assert os.read(file, 100) == b""
deadline = time.monotonic() + 60
while int(os.pread(file, 100, 0)) <= first and time.monotonic() < deadline:
    time.sleep(0.1)
os.lseek(file, 0, os.SEEK_SET)
print(first, int(os.read(file, 100)), open("{DEVICE}/ports/1/counters/port_rcv_data").read())
""")
        first, later, received = map(int, reader.split())
        self.assertGreater(first, 0)
        self.assertGreater(later, first)
        self.assertGreater(received, 0)

    def test_two_devices(self):
        second = BUILD.address.removesuffix("1") + "2"
        found = self.output_of("ls", "/sys/class/infiniband", "/dev/infiniband",
                               environment={"VERBENA_ADDRESS": f"{BUILD.address},{second}"})
        for name in ("verbena0", "verbena1", "uverbs0", "uverbs1"):
            self.assertIn(name, found)

    def test_other_files_are_as_they_were(self):
        self.assertEqual(self.shell("readlink -f /proc/self/exe"),
                         os.path.realpath("/usr/bin/readlink") + "\n")
        self.shell("test -d /sys/class/net/lo && ! test -e /sys/class/no-such-class && "
                   "cat /proc/self/status >/dev/null && ls / >/dev/null")

    def test_an_older_preloaded_library_keeps_its_place(self):
        output = self.output_of("sh", "-c", "echo $LD_PRELOAD",
                                environment={"LD_PRELOAD": "libm.so.6"})
        self.assertTrue(output.startswith("libm.so.6:"), output)

    # --- nothing remains

    def start_in(self, folder, *command):
        program = BUILD.start(*command, environment={"TMPDIR": folder})
        self.addCleanup(program.kill)
        harness.wait_until(program.output, harness.START_LIMIT_S, f"it runs: {program}")
        self.assertTrue(os.listdir(folder), program)
        return program

    def temporary_folder(self):
        folder = tempfile.mkdtemp(prefix="verbena-files-test-")
        os.chmod(folder, 0o777)
        self.addCleanup(lambda: os.rmdir(folder))
        return folder

    def test_nothing_remains(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(end=end):
                folder = self.temporary_folder()
                program = self.start_in(folder, "sh", "-c", "echo runs; exec sleep 600")
                program.process.send_signal(end)
                harness.wait_until(lambda: not os.listdir(folder), harness.START_LIMIT_S, "the files are gone")

    def test_they_stay_for_who_outlives_the_program(self):
        folder = self.temporary_folder()
        program = self.start_in(folder, "sh", "-c", "sleep 600 & echo $!")
        self.assertEqual(program.wait(harness.START_LIMIT_S), 0, program)
        self.assertTrue(os.listdir(folder))
        os.kill(int(program.output()), signal.SIGKILL)
        harness.wait_until(lambda: not os.listdir(folder), harness.START_LIMIT_S, "the files are gone")

    def test_nobody_waits_for_the_keeper(self):
        """A pipe that was the program's output ends with the program."""
        self.assertEqual(self.shell(f"{BUILD.verbena} run -- echo x | cat"), "x\n")

    def test_without_a_place_for_them_the_program_runs(self):
        program = BUILD.run("ibv_devices", environment={"TMPDIR": "/proc"})
        self.assertEqual(program.process.returncode, 0, program)
        self.assertIn("verbena0", program.output())
        self.assertIn("warning", program.output())


if __name__ == "__main__":
    harness.main()
