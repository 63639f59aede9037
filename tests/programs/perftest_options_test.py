#!/usr/bin/env python3
"""Options of Debian's perftest that change how it measures, what it prints, where its memory is, or
how it finds its peer; and those that no such device can serve, which have to end at once.

usage: perftest_options_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import re
import tempfile
import unittest

import harness
import testing

BUILD = harness.build_from_command_line()
LIMIT_S = 60
COUNT = 200

# Each runs, and reports.
PLAIN = ["ib_write_bw -N", "ib_write_bw -F -Q 50 -t 64", "ib_write_bw -t 1024",
         "ib_send_bw -r 64 -t 64", "ib_write_bw -u 18 -S 3 --tclass=106", "ib_write_bw --ipv6",
         "ib_write_bw -x 3 -d verbena0 -i 1", f"ib_read_bw --source_ip {BUILD.address}",
         "ib_write_bw --mr_per_qp -q 4", "ib_write_bw --odp", "ib_send_lat --odp",
         "ib_read_bw --use_old_post_send", "ib_read_bw --perform_warm_up",
         "ib_send_bw --report-both -b", "ib_send_bw --reversed",
         "ib_write_bw --disable_pcie_relaxed", "ib_send_bw --inline_recv=64 -s 64",
         "ib_send_bw -e -X 0 -q 4", "ib_send_bw -e -Q 1", "ib_read_bw -e -Q 3 -q 2",
         "ib_send_bw --force-link=Ethernet --pkey_index=0",
         "ib_write_bw --rate_limit=100 --rate_limit_type=SW --rate_units=M --burst_size=4",
         "ib_write_bw -q 64 -s 1024", "ib_read_bw -q 64 -s 1024 -o 1",
         "ib_write_bw -w 0.001 -y 0.000001", "ib_write_bw -f 1 -D 3", "ib_send_bw --cpu_util -D 1"]

REFUSED = ["ib_write_bw -c DC", "ib_write_bw -c SRD", "ib_write_bw -O", "ib_write_bw -d nonesuch",
           "ib_write_bw -i 2", "ib_write_bw --rate_limit=1 --rate_limit_type=HW",
           "ib_write_bw -x 99"]


class PerftestOptionsTest(unittest.TestCase):
    def run_pair(self, line):
        words = line.split()
        if "-D" not in words:
            words += ["-n", COUNT]
        return BUILD.run_pair(*words, limit_s=LIMIT_S)

    def test_what_changes_how_it_measures(self):
        for line in testing.sample(PLAIN, every=2):
            with self.subTest(line=line):
                client = self.run_pair(line).client
                self.assertTrue(harness.perftest_rows(client.output()), client)

    def test_units(self):
        client = self.run_pair("ib_write_bw --report_gbits").client
        self.assertIn("BW average[Gb/sec]", client.output(), client)
        bandwidth = harness.perftest_rows(client.output())[0]
        gbits = bandwidth.messages_per_s * bandwidth.size * 8 / 1e9
        self.assertAlmostEqual(bandwidth.mib_per_s / gbits, 1, delta=0.05, msg=client)

    def test_one_number(self):
        for line in ("ib_write_bw --output=bandwidth", "ib_write_bw --output=message_rate",
                     "ib_write_lat --output=latency"):
            with self.subTest(line=line):
                client = self.run_pair(line).client
                self.assertGreater(float(client.output()), 0, client)

    def test_every_latency(self):
        for option in ("-H", "-U"):
            with self.subTest(option=option):
                client = self.run_pair(f"ib_send_lat {option}").client
                lines = [line for line in client.output().splitlines() if line.count(",") == 1]
                self.assertGreater(len(lines), COUNT * 0.9, client)

    def test_counters_of_each_side(self):
        """Each sees its own device's: 200 messages of 16 packets."""
        names = "counters/port_xmit_packets,counters/port_rcv_packets,hw_counters/rx_write_requests"
        pair = self.run_pair(f"ib_write_bw -m 4096 -W {names}")
        sent, received = ({name: int(number) for name, number in
                           re.findall(r"^\t\w+/(\w+)=(\d+)$", side.output(), re.MULTILINE)}
                          for side in (pair.client, pair.server))
        self.assertGreaterEqual(sent["port_xmit_packets"], 16 * COUNT)  # some may go twice
        self.assertGreaterEqual(received["port_rcv_packets"], 16 * COUNT)
        self.assertGreaterEqual(received["rx_write_requests"], COUNT)
        self.assertEqual(sent["rx_write_requests"], 0)

    def test_limits_that_are_not_met_fail(self):
        sides = BUILD.start_pair("ib_write_bw", "-n", COUNT, "-w", 1000000)
        self.addCleanup(harness.stop, *sides)
        self.assertEqual(sides[1].wait(LIMIT_S), 1, sides[1])
        self.assertIn("below bw limit", sides[1].output(), sides[1])

    def test_json(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder).chmod(0o777)
            file = pathlib.Path(folder) / "out.json"
            self.run_pair(f"ib_write_bw --out_json --out_json_file={file}")
            report = file.read_text()  # without the quotes that make it JSON
            self.assertRegex(report, r"MsgSize: 65536,\n")
            self.assertGreater(float(re.search(r"BW_average: ([\d.]+)", report)[1]), 0)

    def test_memory_of_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(1 << 20)
            pathlib.Path(file.name).chmod(0o666)
            client = self.run_pair(f"ib_write_bw --mmap={file.name}").client
            self.assertTrue(harness.perftest_rows(client.output()), client)

    def test_without_end(self):
        """A report each second, until it is killed."""
        sides = BUILD.start_pair("stdbuf", "-oL", "ib_write_bw", "-D", 1, "--run_infinitely")
        self.addCleanup(harness.stop, *sides)
        harness.wait_until(lambda: len(harness.perftest_rows(sides[1].output())) >= 2 or
                           sides[1].ended(), LIMIT_S, f"two reports\n{sides[1]}")
        self.assertFalse(sides[1].ended(), sides[1])

    def test_what_no_device_of_ours_has(self):
        """Ends at once, by itself, on both sides."""
        for line in testing.sample(REFUSED, every=2):
            with self.subTest(line=line):
                server = BUILD.run(*line.split(), BUILD.address, "-p", harness.free_tcp_port(),
                                   limit_s=LIMIT_S)
                self.assertGreater(server.process.returncode, 0, server)


if __name__ == "__main__":
    harness.main()
