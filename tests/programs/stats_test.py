#!/usr/bin/env python3
"""`verbena stats` and `verbena top` on running programs.

usage: stats_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import harness

SYSFS_NAMES = {
    "counters": ("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets",
                 "port_rcv_errors", "port_xmit_discards", "symbol_error", "link_downed"),
    "hw_counters": ("duplicate_request", "out_of_sequence", "packet_seq_err", "rnr_nak_retry_err",
                    "local_ack_timeout_err", "np_cnp_sent", "rp_cnp_handled", "out_of_buffer",
                    "rx_write_requests", "rx_read_requests", "rx_atomic_requests"),
}
SAMPLE = re.compile(r'(verbena_[a-z0-9A-Z_]+)(\{[a-z]+="(?:[^"\\]|\\["\\n])*"'
                    r'(?:,[a-z]+="(?:[^"\\]|\\["\\n])*")*\})? (\d+)')
COMMENT = re.compile(r"# (HELP|TYPE) verbena_[a-z0-9A-Z_]+ .+")


BUILD = harness.build_from_command_line()
LIMIT_S = 60  # what looks on sleeps most of the time; on a busy machine it waits for its turn


class StatsTest(unittest.TestCase):
    def setUp(self):
        self.programs = []
        self.addCleanup(lambda: harness.stop(*self.programs))

    def start_traffic(self, *arguments):
        """A pair that writes for longer than the test takes."""
        pair = BUILD.start_pair("ib_write_bw", "-D", "600", *arguments)
        self.programs += pair
        BUILD.wait_for_traffic(*pair)
        return pair

    def device_of(self, program):
        """Once it answers."""
        [device] = harness.wait_until(lambda: BUILD.devices_of(program), LIMIT_S, "it answers")
        return device

    def start_verbena(self, *arguments):
        program = harness.Program([BUILD.verbena, *arguments], {})
        self.programs.append(program)
        return program

    def shown_of(self, program, *command):
        """What a command says of one process, once that answers: before, it has no device."""
        shown = harness.wait_until(
            lambda: next((done for done in [BUILD.run_verbena(*command, "--pid", program.pid)]
                          if done.process.returncode != 2), None), LIMIT_S, "it answers")
        self.assertEqual(shown.process.returncode, 0, shown)
        return shown.output()

    def test_numbers_grow_under_their_names(self):
        server, client = self.start_traffic()
        first = self.device_of(client)
        for folder, names in SYSFS_NAMES.items():
            for name in names:
                self.assertIn(name, first[folder])
        self.assertEqual(first["comm"], "ib_write_bw")
        self.assertEqual(first["addresses"], [BUILD.address])
        [qp] = first["qps"]
        self.assertEqual((qp["type"], qp["state"], qp["peer"]), ("RC", "RTS", BUILD.address))
        [peer] = first["peers"]
        self.assertEqual(peer["peer"], BUILD.address)

        def has_grown():
            now = self.device_of(client)
            return (now["counters"]["port_xmit_data"] > first["counters"]["port_xmit_data"]
                    and now["qps"][0]["sent_bytes"] > qp["sent_bytes"]
                    and now["qps"][0]["received_packets"] > qp["received_packets"])
        harness.wait_until(has_grown, LIMIT_S, "the numbers grow")
        of_server = self.device_of(server)
        self.assertGreater(of_server["hw_counters"]["rx_write_requests"], 0)

    def test_text_and_pid(self):
        server, client = self.start_traffic("-q", "2")
        text = self.shown_of(client, "stats")
        self.assertIn(f"process {client.pid} (ib_write_bw)", text)
        self.assertNotIn(f"process {server.pid} ", text)
        self.assertEqual(len(re.findall(r"^  0x[0-9a-f]{6}  RC +RTS ", text, re.M)), 2, text)
        nobody = BUILD.run_verbena("stats", "--pid", os.getpid())
        self.assertEqual(nobody.process.returncode, 2, nobody)

    def test_a_killed_process_disappears(self):
        _, client = self.start_traffic()
        self.device_of(client)
        client.process.kill()
        client.process.wait()
        self.assertEqual(len(BUILD.devices_of(client)), 0)

    def test_another_user_sees_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("needs two users, so root")
        server, client = self.start_traffic()
        output = subprocess.run([BUILD.verbena, "stats", "--json"], user=12345, group=12345,
                                extra_groups=[], capture_output=True, timeout=LIMIT_S, check=True)
        self.assertEqual(json.loads(output.stdout), [])

        def root_sees_both():
            output = subprocess.run([BUILD.verbena, "stats", "--json"], capture_output=True,
                                    timeout=LIMIT_S, check=True)
            return {server.pid, client.pid} <= {d["pid"] for d in json.loads(output.stdout)}
        harness.wait_until(root_sees_both, LIMIT_S, "root sees both")

    def test_watch_ends_by_signal_with_0(self):
        _, client = self.start_traffic()
        for end in (signal.SIGINT, signal.SIGTERM):
            watch = self.start_verbena("stats", "--watch", "0.2", "--pid", client.pid)
            harness.wait_until(lambda: re.search(r"port_xmit_packets +\d+ +[1-9][\d.]*/s",
                                                 watch.output()), LIMIT_S, "a rate is shown")
            watch.process.send_signal(end)
            self.assertEqual(watch.wait(LIMIT_S), 0, watch)

    def test_watch_as_json_is_a_line_each_time(self):
        watch = self.start_verbena("stats", "--watch", "0.1", "--json")
        harness.wait_until(lambda: watch.output().count("\n") >= 2, LIMIT_S, "two lines")
        watch.process.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(LIMIT_S), 0, watch)
        for line in watch.output().splitlines():
            if line.startswith("verbena: warning"):
                continue
            self.assertIsInstance(json.loads(line), list)

    def fetch(self, url):
        with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
            self.assertEqual(answer.headers["Content-Type"],
                             "text/plain; version=0.0.4; charset=utf-8")
            return answer.read().decode()

    def numbers_of(self, program, text):
        """By their names; of those with several labels, the last."""
        self.assertTrue(text.endswith("\n"))
        found = {}
        for line in text.splitlines():
            if COMMENT.fullmatch(line):
                continue
            match = SAMPLE.fullmatch(line)
            self.assertTrue(match, line)
            self.assertIn(f"# TYPE {match[1]} ", text)
            if f'pid="{program.pid}"' in (match[2] or ""):
                found[match[1]] = int(match[3])
        return found

    def test_prometheus(self):
        _, client = self.start_traffic()
        server = self.start_verbena("stats", "--prometheus", "0")
        url = harness.wait_until(lambda: re.match(r"(http://127\.0\.0\.1:\d+)/metrics\n",
                                                  server.output()), LIMIT_S, "it listens")[1]

        def numbers():
            return self.numbers_of(client, self.fetch(url + "/metrics"))
        found = harness.wait_until(numbers, LIMIT_S, "the client answers")
        self.assertGreater(found["verbena_port_xmit_packets_total"], 0)
        self.assertGreater(found["verbena_qp_sent_bytes_total"], 0)
        self.assertGreater(found["verbena_peer_sent_packets_total"], 0)
        for path, data, status in (("/", None, 404), ("/metrics", b"x", 405)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url + path, data=data, timeout=LIMIT_S)
            self.assertEqual(refused.exception.code, status)
            refused.exception.close()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(LIMIT_S), 0, server)

    def test_prometheus_port_that_is_taken(self):
        port = harness.free_tcp_port()
        first = self.start_verbena("stats", "--prometheus", f"127.0.0.1:{port}")
        harness.wait_until(lambda: "metrics" in first.output(), LIMIT_S, "it listens")
        second = BUILD.run_verbena("stats", "--prometheus", f"127.0.0.1:{port}")
        self.assertEqual(second.process.returncode, 2, second)
        self.assertIn(f"TCP port {port}", second.output())

    def test_top_prints_once_where_there_is_no_terminal(self):
        _, client = self.start_traffic()

        def busy_line():
            """None: within the interval the client had no core to write on."""
            shown = self.shown_of(client, "top", "--interval", "0.3")
            self.assertNotIn("\x1b", shown)
            [line] = [x for x in shown.splitlines() if x.split()[:1] == [str(client.pid)]]
            return line if line.split()[6] != "0" else None
        line = harness.wait_until(busy_line, LIMIT_S, "the client writes")
        self.assertIn("ib_write_bw", line)
        self.assertIn(" RTS ", line)

    def test_top_of_a_process_without_a_device(self):
        nobody = BUILD.run_verbena("top", "--interval", "0.1", "--pid", os.getpid())
        self.assertEqual(nobody.process.returncode, 2, nobody)
        self.assertIn("has no device", nobody.output())

    def test_top_on_a_terminal_ends_by_q(self):
        pid, terminal = os.forkpty()
        if pid == 0:
            os.execve(BUILD.verbena, ["verbena", "top", "--interval", "0.1"],
                      {"TERM": "xterm"})
        shown = b""
        deadline = time.monotonic() + LIMIT_S
        while b"verbena top:" not in shown and time.monotonic() < deadline:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"q")
        try:
            while chunk := os.read(terminal, 4096):
                shown += chunk
        except OSError:  # Linux's word for the end of a terminal
            pass
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertIn(b"\x1b[?1049l", shown)


if __name__ == "__main__":
    harness.main()
