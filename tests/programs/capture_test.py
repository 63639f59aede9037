#!/usr/bin/env python3
"""Captures of `verbena run --capture`, as tshark reads them.

usage: capture_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import subprocess
import tempfile
import time
import unittest

import harness

BUILD = harness.build_from_command_line()
ITERATIONS = 50


class CaptureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o777)

    def client_capture(self, *options, program="ibv_rc_pingpong"):
        """Runs a pair, the client with --capture and the options; its file."""
        file = self.folder / "trace.pcapng"
        port = harness.free_tcp_port()
        command = [program, "-g", 3, "-n", ITERATIONS, "-p", port]
        server = BUILD.start(*command)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended(),
                           harness.START_LIMIT_S, "the server listens")
        client = harness.Program([BUILD.verbena, "run", "--capture", file, *options, "--", *command,
                                  BUILD.address], {"VERBENA_ADDRESS": BUILD.address})
        self.addCleanup(client.kill)
        self.assertEqual(client.wait(60), 0, f"{server}\n{client}")
        return file

    def packets(self, file, display_filter, *fields):
        out = subprocess.run(["tshark", "-r", file, "--disable-protocol", "rpcordma", "-Y",
                              display_filter, "-T", "fields",
                              *[word for field in fields for word in ("-e", field)]],
                             capture_output=True, text=True, check=True).stdout
        return [line.split("\t") for line in out.splitlines()]

    def test_all_frames_both_ways(self):
        file = self.client_capture()
        for direction in ("0x00000001", "0x00000002"):
            sends = self.packets(file, f"frame.packet_flags == {direction} and "
                                 "infiniband.bth.opcode <= 4", "infiniband.bth.opcode")
            ends = [opcode for opcode, in sends if opcode in ("2", "4")]
            self.assertGreaterEqual(len(ends), ITERATIONS, direction)
        self.assertEqual(self.packets(file, "_ws.malformed or _ws.expert.severity >= 0x800000",
                                      "frame.number"), [])

    def test_times_are_those_of_the_clock_on_the_wall(self):
        before = time.time()
        file = self.client_capture()
        times = [float(seconds) for seconds, in self.packets(file, "infiniband", "frame.time_epoch")]
        self.assertLess(before - 1, times[0])
        self.assertLess(times[-1], time.time() + 1)

    def test_every_transport_decodes(self):
        for program in ("ibv_uc_pingpong", "ibv_ud_pingpong"):
            file = self.client_capture(program=program)
            self.assertEqual(self.packets(file, "_ws.malformed", "frame.number"), [])
            self.assertGreaterEqual(len(self.packets(file, "infiniband.bth", "frame.number")),
                                    2 * ITERATIONS)

    def test_drops_name_their_cause(self):
        file = self.client_capture("--fault", "loss nth=10 dir=tx; loss opcode=ack nth=2 dir=rx")
        comments = sorted(comment for comment, in
                          self.packets(file, "frame.comment", "frame.comment"))
        self.assertEqual(comments, ["dropped by the fault: loss nth=10 dir=tx",
                                    "dropped by the fault: loss opcode=ack nth=2 dir=rx"])

    def test_the_limit_bounds_the_files(self):
        file = self.client_capture("--capture-limit", "100k")
        sizes = [path.stat().st_size for path in self.folder.iterdir()]
        self.assertEqual(len(sizes), 2, "the file and the older half")
        self.assertLess(sum(sizes), 170_000)
        self.assertTrue(file.exists())

    def test_a_place_that_cannot_be_written(self):
        done = BUILD.run_verbena("run", "--capture", "/nonexistent/x.pcapng", "--", "ibv_devinfo")
        self.assertNotEqual(done.process.returncode, 0)
        self.assertIn("cannot write the capture /nonexistent/x.pcapng", done.output())


if __name__ == "__main__":
    harness.main()
