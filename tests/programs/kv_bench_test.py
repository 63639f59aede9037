#!/usr/bin/env python3
"""verbena bench kv: its table and JSON, and what it refuses.

usage: kv_bench_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import pathlib
import subprocess
import sys
import unittest

import harness

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1][0] != "-" else "build/test")
harness.build_from_command_line()
VERBENA = (BUILD / "bin" / "verbena").resolve()


def bench(*arguments, link="udp"):
    """Of both technologies where `link` is None."""
    links = ["--link", link] if link else []
    return subprocess.run([VERBENA, "bench", "kv", *map(str, arguments), *links, "--address",
                           harness.ADDRESS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=harness.PAIR_LIMIT_S)


class KVBenchTest(unittest.TestCase):
    def test_sizes_of_a_model(self):
        done = bench("--model", "llama3-8b", "--tokens", 64, "--iterations", 2, "--json")
        self.assertEqual(done.returncode, 0, done.stdout)
        told = json.loads(done.stdout)
        self.assertEqual(told["blocks"], 32 * 4 * 2)
        self.assertEqual(told["bytes"], 32 * 64 * 2 * 128 * 2)  # one of eight heads
        for name in ("us", "ttft_added_us", "gbps", "blocks_per_s", "contiguous_gbps", "tcp_gbps"):
            self.assertGreater(told[name], 0, name)
        self.assertEqual(told["technology"], "rocev2")

    def test_given_blocks_and_requests(self):
        done = bench("--blocks", 64, "--block", "4K", "--requests", 3, "--iterations", 2)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("64 blocks of 4.0 KiB in each, 3 at a time", done.stdout)
        rows = [line.split()[0] for line in done.stdout.splitlines()[2:]]
        self.assertEqual(rows, ["rocev2", "rocev2,", "tcp"])

    def test_both_technologies(self):
        done = bench("--blocks", 64, "--block", "4K", "--iterations", 2, "--json", link=None)
        self.assertEqual(done.returncode, 0, done.stdout)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([one["technology"] for one in told], ["rocev2", "iwarp"])
        for one in told:
            for name in ("us", "gbps", "contiguous_gbps", "tcp_gbps"):
                self.assertGreater(one[name], 0, name)

    def test_compute_hides_the_transfer(self):
        done = bench("--tokens", 64, "--compute", 2000, "--iterations", 2, "--baseline", "none",
                     "--json")
        told = json.loads(done.stdout)
        self.assertGreater(told["us"], 79 * 2000)
        self.assertLess(told["ttft_added_us"], told["us"] / 4)

    def test_latent_caches(self):
        done = bench("--model", "deepseek-v3", "--tokens", 64, "--iterations", 1, "--baseline",
                     "none", "--json")
        self.assertEqual(json.loads(done.stdout)["bytes"], 61 * 64 * 576 * 2)

    def test_faults(self):
        done = bench("--tokens", 64, "--iterations", 1, "--baseline", "none", "--fault", "loss 1%")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_wrong_usage(self):
        for needle, arguments in {"there is llama3-8b": ["--model", "gpt"],
                                  "--tokens": ["--tokens", 0], "--blocks": ["--blocks", 3],
                                  "8.0 GiB at most": ["--tokens", 1 << 24],
                                  "8 KV heads": ["--tp", 3],
                                  "unexpected": ["fly"], "--baseline": ["--baseline", "x"]}.items():
            with self.subTest(arguments):
                done = bench(*arguments)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
                self.assertIn(needle, done.stdout)


if __name__ == "__main__":
    harness.main()
