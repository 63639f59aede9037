#!/usr/bin/env python3
"""verbena sim of jobs, and verbena plan.

usage: jobs_test.py [BUILD_DIR] [-k PATTERN]
"""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import children
import testing

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                     else "build/release").resolve()
VERBENA = BUILD / "bin" / "verbena"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LIMIT_S = 120
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def verbena(*arguments):
    return subprocess.run([VERBENA, *map(str, arguments)], capture_output=True, text=True,
                          timeout=LIMIT_S)


def smaller(job):
    """Options by which a job takes seconds, unless the run is thorough."""
    return () if testing.THOROUGH else ("--set", "size=2MiB")


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
                _, rows = self.run_job(path, *smaller(path))
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
        # The computing and the idle time of each GPU add up to the step; no task is outside of it.
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

    def test_a_step_of_a_hundred_thousand_gpus(self):
        text, results = self.run_step(EXAMPLES / "training_100k_gpus.yaml", "--set", "model.layers=20",
                                      "--set", "batch=12500")
        self.assertIn("100000 GPUs", text)
        # A GPU of each stage stands for all of its stage.
        self.assertEqual(results.execute("SELECT DISTINCT stands_for FROM accounts").fetchall(),
                         [(10000,)])
        self.assertEqual(results.execute("SELECT count(DISTINCT gpu) FROM tasks").fetchone()[0], 10)

    def test_both_methods_tell_their_difference(self):
        text, results = self.run_step(EXAMPLES / "training_step.yaml", "--set", "method=both",
                                      "--set", "model.layers=1")
        self.assertRegex(text, r"flow-level +\S+ ms, [-+]0\.\d % of the step by packets")
        packets, flows = (results.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()[0]
                          for key in ("step_ps", "flow_level_ps"))
        self.assertAlmostEqual(flows / packets, 1, delta=0.02)

    def test_mistakes_are_told_with_their_place(self):
        job = self.folder / "job.yaml"
        job.write_text("preset: spectrum_x\ncollective:\n  algorithm: bruck\n")
        done = verbena("sim", job)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("job.yaml:3: collective.algorithm: 'bruck' is none of all, ring", done.stderr)


class Report(unittest.TestCase):
    """report.html is made of rows of results.sqlite, and says of which."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-report-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def report_of(self, job, *options):
        done = verbena("sim", job, "-o", self.folder, *options)
        self.assertEqual(done.returncode, 0, done)
        return self.data(), sqlite3.connect(self.folder / "results.sqlite")

    def data(self):
        text = (self.folder / "report.html").read_text()
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>',
                                    text, re.S).group(1))

    def test_every_number_of_a_collective_is_in_the_database(self):
        data, results = self.report_of(
            EXAMPLES / "allreduce_rails.yaml", "--set", "nodes=4", "--set",
            "collective.algorithm=ring,hierarchical", "--set", "size=2MiB")
        queries = dict(data["queries"])
        rows = lambda name, *arguments: [list(row) for row in results.execute(queries[name], arguments)]
        self.assertEqual(data["summary"], rows("numbers"))
        self.assertEqual(data["collectives"], rows("collectives"))
        self.assertEqual(list(data["runs"]), ["ring", "hierarchical"])
        for name, run in data["runs"].items():
            self.assertEqual(run["path"], rows("where the time went", name))
            self.assertEqual(sum(run["utilization"]), sum(n for _, n in rows("utilization", name)))
            for row in run["timeline"]:
                spans = [[eighth, end] for lane, eighth, end in rows("timeline", name, row["gpu"])
                         if lane == row["lane"]]
                self.assertEqual([[eighth, end] for _, end, eighth, _ in row["spans"]], spans)
            self.assertLessEqual(max(end for row in run["timeline"] for _, end, _, _ in row["spans"]),
                                 run["end_us"] * 1.000001)
            self.assertLessEqual({tuple(message) for message in run["flows"]},
                                 {tuple(message) for message in rows("messages", name)})
            for queue, row in zip(run["queues"], rows("longest queues", name)):
                self.assertEqual((queue["name"], max(queue["values"])), (row[2], row[3]))
            for load, row in zip(run["loads"], rows("busiest links", name)):
                self.assertEqual(load["name"], row[2])
                self.assertLessEqual(max(load["values"]), 400e9 * 1.01)
            for direction, _, queue, marks, _, _ in rows("use of links", name):
                self.assertEqual(run["totals"]["queue"][direction], queue)
                self.assertEqual(run["totals"]["marks"][direction], marks)
            shown = {tuple(row[:6]) for row in run["transfers"]["rows"]}
            self.assertEqual(shown, {tuple(row[:6]) for row in rows("slowest messages", name)})
        # The numbers in the tables add up to those of the whole run.
        messages, marks = results.execute("SELECT messages, marks FROM collectives "
                                          "WHERE algorithm = 'ring'").fetchone()
        self.assertEqual(messages, results.execute(
            "SELECT sum(stands_for) FROM messages WHERE algorithm = 'ring'").fetchone()[0])
        self.assertEqual(marks, results.execute(
            "SELECT sum(marks) FROM ports WHERE algorithm = 'ring'").fetchone()[0])

    def test_every_number_of_a_step_is_in_the_database(self):
        data, results = self.report_of(EXAMPLES / "training_step.yaml", "--set", "model.layers=1")
        queries = dict(data["queries"])
        self.assertEqual(data["operations"],
                         [list(row) for row in results.execute(queries["operations"])])
        step = data["run"]["step_ps"] * 1e-6
        for account in data["accounts"]:
            self.assertAlmostEqual(sum(a + b for _, a, b in account["rows"]) / step, 1, delta=1e-6)
        lanes = {(row["gpu"], row["lane"]): row["spans"] for row in data["timeline"]}
        self.assertEqual({lane for _, lane in lanes}, {"computing", "tensor", "data"})
        tasks = results.execute(queries["timeline of a GPU"], (0,)).fetchall()
        ends = {end for _, _, _, _, end in tasks}
        for lane in ("computing", "tensor", "data"):
            for begin, end, purpose, _ in lanes[0, lane]:
                self.assertIn(end, ends)

    def test_the_same_bytes_with_and_without_threads(self):
        files = []
        for threads in "1", "2":
            self.report_of(EXAMPLES / "allreduce_rails.yaml", "--set", "nodes=4", "--set", "size=1MiB",
                           "--set", "collective.algorithm=hierarchical", "--threads", threads)
            files.append([(self.folder / name).read_bytes() for name in ("results.sqlite", "report.html")])
        self.assertEqual(*files)

    def test_rates_need_no_network(self):
        data, _ = self.report_of(EXAMPLES / "allreduce_rails.yaml", "--set", "method=flows")
        self.assertEqual(data["runs"], {})
        self.assertGreater(data["collectives"][0][4], 0)

    def waits_for_signals(self, pid):
        blocked = re.search(r"SigBlk:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
        return int(blocked.group(1), 16) >> (signal.SIGINT - 1) & 1

    def interrupted(self, job, *options):
        process = children.Child([VERBENA, "sim", job, "-o", self.folder, *options],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not self.waits_for_signals(process.pid):
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130)
        data = self.data()
        self.assertEqual(data["run"]["status"], "interrupted")
        return data, sqlite3.connect(self.folder / "results.sqlite")

    def test_an_interrupted_collective_leaves_what_there_was(self):
        data, results = self.interrupted(EXAMPLES / "allreduce_rails.yaml", "--set", "size=8GiB",
                                         "--set", "collective.algorithm=rail ring")
        self.assertEqual(results.execute("SELECT mistake FROM collectives").fetchall(),
                         [("interrupted",)])
        self.assertGreater(results.execute("SELECT sum(sent_bytes) FROM ports").fetchone()[0], 0)
        self.assertEqual(list(data["runs"]), ["rail ring"])

    def test_an_interrupted_step_leaves_what_there_was(self):
        data, results = self.interrupted(EXAMPLES / "training_step.yaml", "--set", "model.layers=80")
        self.assertGreater(results.execute("SELECT count(end_ps) FROM tasks").fetchone()[0], 0)
        self.assertTrue(data["timeline"])

    @unittest.skipUnless(BROWSER, "chromium is not installed")
    def test_a_browser_draws_it_without_a_network(self):
        for job, options, charts in (
                ("allreduce_rails.yaml", ["--set", "nodes=4", "--set", "size=2MiB"],
                 ("busbw", "path", "slowdown", "queues", "loads", "utilization")),
                ("training_step.yaml", ["--set", "model.layers=1"],
                 ("path", "accounts", "slowdown", "queues", "loads", "utilization"))):
            with self.subTest(job):
                self.report_of(EXAMPLES / job, *options)
                page = self.folder / "report.html"
                self.assertNotRegex(page.read_text(), r'(src|href)="')
                done = subprocess.run(
                    [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     f"--user-data-dir={self.folder / 'profile'}", "--virtual-time-budget=5000",
                     "--host-resolver-rules=MAP * 0.0.0.0", "--dump-dom", "--enable-logging=stderr",
                     "--v=0", page.as_uri()], capture_output=True, text=True, timeout=LIMIT_S,
                    env={**os.environ, "HOME": str(self.folder)})
                self.assertNotRegex(done.stderr, r"Uncaught|SyntaxError|TypeError")
                self.assertRegex(done.stdout, r'class="badge good">complete<')
                # Chart.js gives a canvas its size when it has drawn it.
                for chart in charts:
                    self.assertRegex(done.stdout, rf'<canvas id="{chart}"[^>]*width="\d+"', chart)
                self.assertGreater(done.stdout.count('class="span"'), 20)
                self.assertGreater(len(re.findall(r'class="link[" ]', done.stdout)), 20)


class Plan(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-plan-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def job(self, text):
        path = self.folder / "job.yaml"
        path.write_text(text)
        return path

    def test_a_job_of_each_kind_is_planned(self):
        for name in testing.sample(("chakra_step", "inference_step", "storage_reads"), every=2):
            with self.subTest(name):
                done = verbena("plan", EXAMPLES / f"{name}.yaml", "--technologies",
                               "rocev2,infiniband")
                self.assertEqual(done.returncode, 0, done)
                self.assertRegex(done.stdout, r"Recommended: (rocev2|infiniband)\n")

    def test_causes_and_remedies(self):
        path = self.job("topology: {kind: fat_tree, k: 4}\nlinks: {rate: 100Gbps, delay: 200ns}\n"
                        "collective: {size: 1MiB, algorithm: ring, placement: random}\n")
        done = verbena("plan", path, "--technologies", "rocev2,infiniband", "-o", self.folder / "plan")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"rocev2: .*\n    lost to routing collisions \d+\.\d %, "
                                      r"congestion control ")
        self.assertIn("    at best    ", done.stdout)
        self.assertIn("as shipped: DCQCN of NVIDIA's NICs", done.stdout)
        page = (self.folder / "plan" / "plan.html").read_text()
        self.assertIn(f"<title>Plan of {path}</title>", page)
        self.assertIn('class="bar"', page)

    def test_an_interrupted_plan_says_so(self):
        path = self.job("topology: {kind: fat_tree, k: 8}\nlinks: {rate: 100Gbps, delay: 200ns}\n"
                        "collective: {size: 256MiB, algorithm: ring}\n")
        plan = children.Child([VERBENA, "plan", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        plan.stderr.readline()  # it runs
        plan.send_signal(signal.SIGINT)
        output = plan.communicate(timeout=60)[0]
        self.assertEqual(plan.returncode, 130, output)
        self.assertIn("Interrupted: what follows has the runs that had ended.", output)

    def test_two_thousand_gpus_at_flow_level(self):
        path = self.job("topology: {kind: star, hosts: 2048}\nlinks: {rate: 400Gbps, delay: 500ns}\n"
                        "collective: {size: 64MiB, method: flows}\n")
        done = verbena("plan", path, "--json")
        self.assertEqual(done.returncode, 0, done)
        runs = {run["run"]: run["metrics"] for run in json.loads(done.stdout)["runs"]}
        self.assertEqual(sorted(runs), ["infiniband", "iwarp", "rocev2", "tcp"])
        # Through the kernel TCP is slower, although flow-level knows no host paths.
        self.assertGreater(runs["tcp"]["time"], 1.5 * runs["rocev2"]["time"])

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
        self.assertIn('echo 4000 > "$ecn/roce_rp/rpg_ai_rate"', script)
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
    testing.main()
