#!/usr/bin/env python3
"""verbena sim of jobs, and verbena plan.

usage: jobs_test.py [BUILD_DIR] [-k PATTERN]
"""

import csv
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                     else "build/release").resolve()
VERBENA = BUILD / "bin" / "verbena"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LIMIT_S = 120


def verbena(*arguments):
    return subprocess.run([VERBENA, *map(str, arguments)], capture_output=True, text=True,
                          timeout=LIMIT_S)


class Jobs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-jobs-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_job(self, job, *options):
        done = verbena("sim", job, "-o", self.folder, *options)
        self.assertEqual(done.returncode, 0, done)
        with open(self.folder / "collectives.csv", newline="") as file:
            rows = {row["algorithm"]: row for row in csv.DictReader(file)}
        self.assertEqual((self.folder / "summary.txt").read_text(), done.stdout)
        return done.stdout, rows

    def test_rails_take_collisions_away(self):
        text, rows = self.run_job(EXAMPLES / "allreduce_rails.yaml", "--set",
                                  "collective.algorithm=ring,rail ring,hierarchical", "--set", "size=4MiB")
        self.assertIn("all reduce of 4.194 MB, 128 GPUs in nodes of 8", text)
        self.assertGreater(float(rows["ring"]["seconds"]), 2 * float(rows["rail ring"]["seconds"]))
        for row in rows.values():
            self.assertEqual(row["drops"], "0")
            parts = sum(float(row[f"{part}_seconds"]) for part in
                        ("nvlink", "sending", "distance", "waiting", "overhead", "host"))
            self.assertAlmostEqual(parts, float(row["seconds"]), delta=1e-9)

    def test_threads_change_nothing(self):
        job = EXAMPLES / "allreduce_rails.yaml"
        setting = ["--set", "collective.algorithm=rail ring,double tree", "--set", "size=1MiB"]
        self.assertEqual(self.run_job(job, *setting), self.run_job(job, *setting, "--threads", "2"))

    def test_all_examples_end(self):
        jobs = [path for path in sorted(EXAMPLES.glob("*.yaml"))
                if "\ncollective:" in path.read_text()]
        self.assertGreaterEqual(len(jobs), 2)
        for path in jobs:
            with self.subTest(path.name):
                _, rows = self.run_job(path)
                for row in rows.values():
                    self.assertGreater(float(row["busbw"]), 1e9)

    def run_step(self, job, *options):
        done = verbena("sim", job, "-o", self.folder, *options)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout, sqlite3.connect(self.folder / "results.sqlite")

    def test_a_training_step(self):
        text, results = self.run_step(EXAMPLES / "training_step.yaml")
        self.assertIn("16 GPUs (h100): tensor 8, pipeline 1, data 2", text)
        step, drops = (results.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()[0]
                       for key in ("step_ps", "drops"))
        self.assertEqual(drops, 0)
        # What each GPU computes and is idle for is the step; no task lies outside of it.
        for (account,) in results.execute(
                "SELECT sum(computing_ps + idle_ps) FROM accounts GROUP BY gpu"):
            self.assertAlmostEqual(account / step, 1, delta=1e-6)
        self.assertEqual(results.execute("SELECT min(begin_ps) >= 0, max(end_ps) FROM tasks")
                         .fetchone(), (1, step))
        trace = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        self.assertEqual(sum(event["ph"] == "X" for event in trace), results.execute(
            "SELECT count(*) FROM tasks WHERE end_ps > begin_ps").fetchone()[0])

    def test_an_inference_step(self):
        text, results = self.run_step(EXAMPLES / "inference_step.yaml")
        self.assertIn("first token", text)
        moved = results.execute("SELECT count(*) FROM tasks WHERE purpose = 'KV cache' AND gpu < 4"
                                ).fetchone()[0]
        self.assertEqual(moved, 4 * 8)  # by each GPU that prefills, of each layer

    def test_jobs_are_compared(self):
        done = verbena("sim", EXAMPLES / "training_step.yaml", "--sweep", "tensor=4,8",
                       "--set", "model.layers=1", "-o", self.folder)
        self.assertEqual(done.returncode, 0, done)
        with open(self.folder / "table.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["run"] for row in rows], ["tensor=4", "tensor=8"])
        self.assertNotEqual(rows[0]["step time"], rows[1]["step time"])

    def test_a_hundred_thousand_gpus(self):
        _, rows = self.run_job(EXAMPLES / "allreduce_100k_gpus.yaml", "--set",
                               "collective.algorithm=hierarchical tree")
        self.assertEqual(rows["hierarchical tree"]["ranks"], "100000")

    def test_mistakes_are_told_with_their_place(self):
        job = self.folder / "job.yaml"
        job.write_text("preset: spectrum_x\ncollective:\n  algorithm: bruck\n")
        done = verbena("sim", job)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("job.yaml:3: collective.algorithm: 'bruck' is none of all, ring", done.stderr)


class Plan(unittest.TestCase):
    def test_settings(self):
        done = verbena("plan", "--rate", "100G", "--cable", "100m")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("RoCEv2 on 100 Gb/s links, cables of 100 m", done.stdout)
        self.assertIn("Kmin 400 kB, Kmax 1.6 MB", done.stdout)

    def test_sonic_reads_it(self):
        tables = json.loads(verbena("plan", "--sonic", "--rate", "400G", "--cable", "30m").stdout)
        profile = tables["BUFFER_PROFILE"]["pg_lossless_400000_30m_profile"]
        self.assertGreater(int(profile["xoff"]), 100_000)

    def test_sonic_has_the_ports_named(self):
        tables = json.loads(verbena("plan", "--sonic", "--interfaces", "Ethernet0,Ethernet8").stdout)
        self.assertEqual(set(tables["PORT_QOS_MAP"]), {"global", "Ethernet0", "Ethernet8"})
        for name in ("BUFFER_PG", "QUEUE"):
            self.assertEqual(set(tables[name]), {"Ethernet0|3", "Ethernet8|3"})
        for row in tables["BUFFER_PG"].values():
            self.assertIn(row["profile"], tables["BUFFER_PROFILE"])

    def test_the_same_for_cumulus_and_eos(self):
        nvue = verbena("plan", "--nvue", "--rate", "400G").stdout
        self.assertIn("traffic-class 3 min-threshold 1600000\n", nvue)
        for line in nvue.splitlines():
            self.assertRegex(line, r"^(# |nv set |nv config apply$)")
        eos = verbena("plan", "--eos", "--rate", "400G", "--interfaces", "Ethernet3/1").stdout
        self.assertIn("minimum-threshold 1600000 bytes maximum-threshold 6400000 bytes", eos)
        self.assertIn("interface Ethernet3/1\n   service-profile VERBENA_ROCE\n", eos)

    def test_a_shell_reads_the_script_for_nics(self):
        script = verbena("plan", "--nic", "--rate", "400G").stdout
        self.assertIn('echo 400 > "$ecn/roce_rp/rpg_ai_rate"', script)
        done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True,
                              timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done)
        done = subprocess.run(["sh", "-s", "other", "eth2", "dev0"], input=script,
                              capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (2, "other: none of mlx5, irdma, bnxt_re\n"))

    def test_wrong_options_are_told(self):
        done = verbena("plan", "--rate", "fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--rate fast: write it as 400Gbps", done.stderr)


if __name__ == "__main__":
    unittest.main()
