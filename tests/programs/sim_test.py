#!/usr/bin/env python3
"""verbena sim: scenarios in YAML, their results, sweeps, and the report in a real browser.

usage: sim_test.py [BUILD_DIR] [-k PATTERN]
"""

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
import xml.etree.ElementTree

import children
import testing

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                     else "build/release").resolve()
VERBENA = BUILD / "bin" / "verbena"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
REFERENCE = pathlib.Path(__file__).resolve().parents[1] / "reference"
LIMIT_S = 120
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def sim(*arguments):
    return subprocess.run([VERBENA, "sim", *map(str, arguments)], capture_output=True, text=True,
                          timeout=LIMIT_S)


def numbers(text):
    """The summary's lines as a dictionary."""
    return dict(re.split(r"\s{2,}", line, maxsplit=2)[:2] for line in text.splitlines()
                if re.match(r"\S.*\S\s{2,}\S", line))


class SimTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-sim-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def succeeds(self, *arguments):
        done = sim(*arguments)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def scenario(self, text):
        path = self.folder / "scenario.yaml"
        path.write_text(text)
        return path

    def rows(self, folder, query):
        with sqlite3.connect(folder / "results.sqlite") as database:
            return database.execute(query).fetchall()


class Examples(SimTest):
    def run_example(self, name, *arguments):
        return numbers(self.succeeds(EXAMPLES / name, *arguments))

    def test_the_built_in_one_says_what_it_shows(self):
        output = self.succeeds()
        self.assertIn("What it shows", output)
        self.assertIn("topology: {kind: star, hosts: 9}", output)
        self.assertEqual(numbers(output)["dropped by switches"], "0")

    def test_all_that_are_there_complete(self):
        for path in sorted(EXAMPLES.glob("*.yaml")):
            if re.search("^(collective|training|inference|chakra):", path.read_text(), re.M):
                continue  # a job: jobs_test.py
            if not re.search("^(workload|flows):", path.read_text(), re.M):
                continue  # for running programs: live_fabric_test.py, infiniband_test.py
            with self.subTest(path.name):
                result = self.run_example(path.name)
                self.assertEqual(result["outcome"], "complete")
                self.assertRegex(result["flows ended"], r"^(\d+) of \1$")

    def test_pfc_keeps_an_incast_without_loss(self):
        with_pfc = self.run_example("incast.yaml")
        without = self.run_example("incast_without_pfc.yaml")
        self.assertEqual(with_pfc["dropped by switches"], "0")
        self.assertGreater(int(with_pfc["pauses"]), 0)
        self.assertEqual(without["pauses"], "0")
        self.assertGreater(int(without["dropped by switches"]), 0)

    def test_infiniband_neither_drops_nor_pauses_and_lanes_keep_victims_apart(self):
        finished = []
        for lanes in ("1", "8"):
            result = self.run_example("infiniband_incast.yaml", "--set", f"vls={lanes}", "-o",
                                      self.folder / lanes)
            self.assertEqual(result["dropped by switches"], "0")
            self.assertEqual(result["pauses"], "0")
            finished += self.rows(self.folder / lanes, "SELECT slowdown FROM flows WHERE bytes < 1e6")
            self.assertEqual(self.rows(self.folder / lanes, "SELECT sum(paused_ps) FROM ports"), [(0,)])
            waits = "SELECT max(waited_for_credits_ps) FROM ports"
            self.assertGreater(self.rows(self.folder / lanes, waits)[0][0], 0)
        self.assertGreater(finished[0][0], 3)
        self.assertLess(finished[1][0], 1.5)

    def test_tcp_and_iwarp_lose_and_repair(self):
        for technology in "tcp", "iwarp":
            result = self.run_example("tcp_vs_rdma.yaml", "--set", f"technology={technology}")
            self.assertEqual(result["pauses"], "0")
            self.assertGreater(int(result["dropped by switches"]), 0)
            self.assertGreaterEqual(int(result["sent again"]), int(result["dropped by switches"]))
        self.assertEqual(self.run_example("tcp_vs_rdma.yaml")["sent again"], "0")

    def test_ecmp_collides(self):
        hashed = self.run_example("ecmp_collisions.yaml", "--set", "congestion_control=off")
        self.assertGreater(float(hashed["slowdown p99"]), 1.9)

    def test_late_marks_make_long_queues(self):
        with_table = self.succeeds(EXAMPLES / "ecn_tuning.yaml", "--sweep", "kmin=20k,400k")
        row = next(line for line in with_table.splitlines() if line.startswith("longest queue"))
        self.assertEqual(len(re.findall(r"[\d.]+ [kM]B", row)), 2)


class Mistakes(SimTest):
    def test_one_line_names_file_line_key_and_fix(self):
        path = self.scenario("topology: star\nswitch:\n  ecn: {kmni: 5}\nworkload: incast\n")
        done = sim(path)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"verbena: {path}:3: switch.ecn.kmni: no such key; did you mean "
                                      "kmin?\n")

    def test_what_is_not_there(self):
        for arguments in (["/nowhere.yaml"], ["--set", "kmin"], ["--sweep", "kmin=,"],
                          ["--set", "kmim=3"], ["--compare", "/nowhere.yaml", "/neither.yaml"]):
            with self.subTest(arguments):
                done = sim(*arguments)
                self.assertEqual(done.returncode, 2, done)
                self.assertEqual(len(done.stderr.splitlines()[-1:]), 1)
                self.assertTrue(done.stderr.splitlines()[-1].startswith("verbena: "), done.stderr)


class Folders(SimTest):
    def test_files_may_be_named_from_where_the_model_is_started(self):
        given = self.folder / "mix"
        shutil.copytree(REFERENCE / "micro/single_small", given)
        before = self.succeeds(given, "-o", self.folder / "a")
        config = given / "config.txt"
        config.write_text(config.read_text().replace(" topology.txt", " mix/topology.txt")
                          .replace(" flow.txt", " mix/flow.txt"))
        self.succeeds(given, "-o", self.folder / "b")
        self.assertEqual((self.folder / "a/fct.txt").read_text(),
                         (self.folder / "b/fct.txt").read_text())
        self.assertIn("STAT", before)


class Results(SimTest):
    def test_same_seed_same_bytes(self):
        for name in ("a", "b"):
            self.succeeds(EXAMPLES / "ecn_tuning.yaml", "--seed", 3, "-o", self.folder / name)
        for file in ("results.sqlite", "report.html", "summary.txt"):
            self.assertEqual((self.folder / "a" / file).read_bytes(),
                             (self.folder / "b" / file).read_bytes(), file)

    def test_the_database_adds_up(self):
        self.succeeds("--set", "size=500KB", "-o", self.folder)
        self.assertEqual(self.rows(self.folder, "SELECT value FROM run WHERE key = 'status'"),
                         [("complete",)])
        self.assertEqual(self.rows(self.folder, "SELECT count(*), sum(bytes), count(finish_ps) "
                                                "FROM flows"), [(8, 8 * 500_000, 8)])
        # h0's switch port sent all payload, with the headers of each packet.
        (sent,), = self.rows(self.folder, "SELECT sent_bytes FROM ports JOIN nodes USING (node) "
                                          "JOIN links USING (link) WHERE nodes.name = 's0' AND "
                                          "links.name = 'h0-s0'")
        self.assertGreaterEqual(sent, 8 * (500_000 + 123 * 62))
        self.assertLess(sent, 8 * 520_000)
        (marks,), = self.rows(self.folder, "SELECT sum(marks) FROM ports")
        self.assertEqual(self.rows(self.folder, "SELECT value FROM run WHERE key = 'marks'"),
                         [(marks,)])
        self.assertGreater(self.rows(self.folder, "SELECT max(bytes) FROM queues")[0][0], 100_000)
        self.assertGreater(self.rows(self.folder, "SELECT count(*) FROM rates")[0][0], 8)

    def test_interrupted_results_say_so(self):
        path = self.scenario("topology: {kind: star, hosts: 9}\n"
                             "workload: {kind: incast, size: 100GB}\n")
        program = children.Child([VERBENA, "sim", path, "-o", self.folder / "out"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        program.send_signal(signal.SIGINT)
        output, errors = program.communicate(timeout=LIMIT_S)
        self.assertEqual(program.returncode, 130, errors)
        self.assertEqual(numbers(output)["outcome"], "interrupted")
        self.assertEqual(self.rows(self.folder / "out", "SELECT value FROM run WHERE key = 'status'"),
                         [("interrupted",)])
        self.assertIn('"outcome":"interrupted"', (self.folder / "out/report.html").read_text())

    def test_an_interrupted_folder_says_so(self):
        given = self.folder / "given"
        given.mkdir()
        (given / "topology.txt").write_text("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n")
        (given / "flow.txt").write_text("2\n1 0 3 100 1000 2\n1 0 3 100 4000000000 2\n")
        (given / "config.txt").write_text("CC_MODE 0 ENABLE_QCN 0 HAS_WIN 0 L2_BACK_TO_ZERO 1")
        program = children.Child([VERBENA, "sim", given, "-o", self.folder / "out"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        program.send_signal(signal.SIGINT)
        output, errors = program.communicate(timeout=LIMIT_S)
        self.assertEqual(program.returncode, 130, errors)
        self.assertRegex(output, r"\nNOTE config.txt: L2_BACK_TO_ZERO 1 is run as 0")
        self.assertRegex(output, r"\nINTERRUPTED at_ns \d+: the results are partial\n$")
        self.assertEqual((self.folder / "out/stdout.txt").read_text(), output)
        self.assertEqual(len((self.folder / "out/fct.txt").read_text().splitlines()), 1)


class Captures(SimTest):
    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_wireshark_reads_packets_and_pauses(self):
        self.succeeds(EXAMPLES / "incast.yaml", "--set", "size=100KB", "--set", "buffer=1400KB",
                      "--capture", "h1-s0", "-o", self.folder)
        fields = subprocess.run(
            ["tshark", "-r", self.folder / "capture.pcapng", "-T", "fields", "-e", "frame.protocols",
             "-e", "infiniband.bth.opcode", "-e", "macc.opcode"],
            capture_output=True, text=True, timeout=LIMIT_S).stdout.splitlines()
        opcodes = [line.split("\t")[1] for line in fields if "infiniband" in line]
        self.assertEqual(set(opcodes), {"6", "7", "8", "17"})  # first, middle, last, ACK
        self.assertEqual(len([opcode for opcode in opcodes if opcode != "17"]), 25)
        self.assertTrue(any("macc" in line for line in fields), fields[:3])

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_wireshark_reads_infiniband(self):
        self.succeeds(EXAMPLES / "infiniband_incast.yaml", "--set", "vls=8", "--set",
                      "workload.1.flows.0.size=20KB", "--capture", "h8-leaf0", "-o", self.folder)
        fields = subprocess.run(
            ["tshark", "-r", self.folder / "capture.pcapng", "-T", "fields", "-e", "infiniband.lrh.vl",
             "-e", "infiniband.lrh.sl", "-e", "infiniband.lrh.slid", "-e", "infiniband.bth.opcode"],
            capture_output=True, text=True, timeout=LIMIT_S).stdout.splitlines()
        packets = [tuple(int(field, 0) for field in line.split("\t")) for line in fields]
        self.assertEqual([packet for packet in packets if packet[3] != 17],  # from h8, node 8, LID 9
                         [(1, 1, 9, 6), *[(1, 1, 9, 7)] * 3, (1, 1, 9, 8)])
        self.assertIn((1, 1, 18, 17), packets)

    def test_a_link_that_is_not_there(self):
        done = sim("--capture", "h0-h1", "-o", self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("links are named as h0-s0", done.stderr)


class ForPrograms(SimTest):
    """What CI asks of a simulation: expectations, numbers to read, pipes."""

    TWO = ("topology: {kind: star, hosts: 3}\nworkload: {kind: incast, size: 1MB}\n")

    def test_an_expectation_that_is_not_met_has_status_3(self):
        path = self.scenario(self.TWO)
        met = sim(path, "--expect", "drops == 0", "--expect", "fct.p99 < 2ms")
        self.assertEqual((met.returncode, met.stderr), (0, ""))
        unmet = sim(path, "--expect", "drops == 0", "--expect", "fct.p99 < 2us")
        self.assertEqual(unmet.returncode, 3)
        self.assertRegex(unmet.stderr, r"^verbena: not as expected: fct.p99 < 2us: it is 0\.000\d+\n$")
        self.assertIn("FCT p99", unmet.stdout)

    def test_a_file_has_expectations_of_its_own(self):
        path = self.scenario(self.TWO + "assert: [drops == 0, outcome == stalled]\n")
        done = sim(path)
        self.assertEqual(done.returncode, 3)
        self.assertIn("outcome == stalled: it is complete", done.stderr)

    def test_a_wrong_expectation_is_told_before_the_run(self):
        path = self.scenario(self.TWO)
        for expectation, why in (("dorps == 0", "there is no dorps; there are outcome, time,"),
                                 ("drops", "write it as 'drops == 0'"), ("drops == x?", "is no value")):
            done = sim(path, "--expect", expectation)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(why, done.stderr)
        done = sim(self.scenario(self.TWO + "assert: drops\n"))
        self.assertIn("scenario.yaml:3: assert: 'drops'", done.stderr)

    def test_json_has_all_numbers(self):
        path = self.scenario(self.TWO)
        result = json.loads(self.succeeds(path, "--json"))
        self.assertEqual(result["metrics"]["outcome"], "complete")
        self.assertEqual(result["metrics"]["flows.ended"], 2)
        self.assertEqual(result["summary"]["flows ended"], "2 of 2")
        runs = json.loads(self.succeeds(path, "--json", "--sweep", "size=1MB,2MB"))["runs"]
        self.assertEqual([run["run"] for run in runs], ["size=1MB", "size=2MB"])
        self.assertLess(runs[0]["metrics"]["time"], runs[1]["metrics"]["time"])

    def test_json_and_expectations_of_a_job(self):
        path = self.scenario("topology: {kind: star, hosts: 4}\n"
                             "collective: {algorithm: [ring, halving doubling], size: 1MiB}\n")
        done = sim(path, "--json", "--expect", "ring.busbw > 1GB/s", "--expect", "drops == 0",
                   "--expect", "halving_doubling.time < 1us")
        self.assertEqual(done.returncode, 3)
        result = json.loads(done.stdout)
        self.assertGreater(result["metrics"]["ring.busbw"], 1e9)
        self.assertEqual(len(result["unmet"]), 1)

    def test_junit_of_a_sweep(self):
        report = self.folder / "junit.xml"
        done = sim(self.scenario(self.TWO), "--sweep", "size=10KB,1MB", "--expect", "fct.max < 50us",
                   "--junit", report)
        self.assertEqual(done.returncode, 3)
        suite = xml.etree.ElementTree.parse(report).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))
        self.assertEqual([case.find("failure") is None for case in suite], [True, False])

    def test_a_scenario_comes_from_a_pipe(self):
        text = self.TWO
        by_file = self.succeeds(self.scenario(text))
        for arguments in (["-"], ["/dev/stdin"]):
            done = subprocess.run([VERBENA, "sim", *arguments], input=text, capture_output=True,
                                  text=True, timeout=LIMIT_S)
            self.assertEqual((done.returncode, done.stdout), (0, by_file))
        done = subprocess.run([VERBENA, "sim", "-", "--sweep", "size=1MB,2MB"], input=text,
                              capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with children.Child([VERBENA, "sim", pipe], stdout=subprocess.PIPE, text=True) as process:
            pipe.write_text(text)
            self.assertEqual(process.communicate(timeout=LIMIT_S)[0], by_file)

    def test_nothing_runs_before_all_is_checked(self):
        path = self.scenario(self.TWO)
        done = sim(path, "--sweep", "kmin=20k,many")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertNotIn("1 of 2", done.stderr)
        self.assertIn("'many' is no size", done.stderr)
        for output in ("/proc/there", path):
            done = sim(path, "-o", output)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("cannot make", done.stderr)

    def test_what_is_rounded_and_what_nobody_makes_is_said(self):
        done = sim(self.scenario("topology: {kind: leaf_spine, oversubscription: 3}\n"
                                 "workload: {kind: incast, size: 10KB}\n"))
        self.assertIn("oversubscription 3 asked for, 2.67 built: 3 spines of 100 Gb/s", done.stderr)
        done = sim(self.scenario("topology: {kind: star, hosts: 2048}\n"
                                 "workload: {kind: incast, senders: 2, size: 10KB}\n"))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("s0 has 2048 ports; no switch has more than 1024", done.stderr)

    def test_control_characters_reach_no_terminal(self):
        done = sim(self.scenario('topology: "\\x1b[31mred\\a"\n'))
        self.assertEqual(done.returncode, 2)
        self.assertIn("'\\x1b[31mred\\x07' is not known", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_a_mistake_in_tensor_is_laid_to_tensor(self):
        for section in ("training", "inference"):
            done = sim(self.scenario("topology: {kind: star, hosts: 16}\n%s: {tensor: 3}\n" % section))
            self.assertIn(f"scenario.yaml:2: {section}.tensor: 16 GPUs", done.stderr)


class Sweeps(SimTest):
    def test_a_grid_side_by_side_does_not_depend_on_cores(self):
        arguments = ["--set", "size=200KB", "--sweep", "kmin=20k,100k", "--sweep", "seed=1,2"]
        outputs = []
        for cores in ("0", None):
            pinned = ["taskset", "-c", cores] if cores and shutil.which("taskset") else []
            outputs.append(subprocess.run([*pinned, VERBENA, "sim", *arguments],
                                          capture_output=True, text=True, timeout=LIMIT_S).stdout)
        self.assertEqual(outputs[0], outputs[1])
        for title in ("kmin=20k seed=1", "kmin=20k seed=2", "kmin=100k seed=1", "kmin=100k seed=2"):
            self.assertIn(title, outputs[0])

    def test_compare_and_its_files(self):
        table = self.succeeds("--compare", EXAMPLES / "incast.yaml",
                              EXAMPLES / "incast_without_pfc.yaml", "-o", self.folder)
        self.assertIn("incast_without_pfc", table.splitlines()[0])
        self.assertEqual(len((self.folder / "table.csv").read_text().splitlines()), 3)
        self.assertTrue((self.folder / "incast" / "report.html").exists())


class Compat(SimTest):
    def test_a_scenario_of_the_model_ends_as_its_folder_does(self):
        folder = REFERENCE / "micro" / "incast8_dcqcn"
        self.succeeds(folder, "--seed", "1", "-o", self.folder / "ns3")
        theirs = sorted(int(line.split()[6]) for line in
                        (self.folder / "ns3" / "fct.txt").read_text().splitlines())
        for name in ("topology.txt", "flow.txt"):
            shutil.copy(folder / name, self.folder)
        self.succeeds(self.scenario("topology: {kind: import, file: topology.txt}\n"
                                    "workload: {kind: flows, file: flow.txt}\n"
                                    "compat: hpcc-ns3\n"), "-o", self.folder)
        ours = [ps // 1000 for ps, in self.rows(
            self.folder, "SELECT finish_ps - start_ps FROM flows ORDER BY 1")]
        self.assertEqual(ours, theirs)


class SeveralLinks(SimTest):
    DUAL = ("topology: {kind: dual_tor, segments: 2, hosts_per_segment: 2, rails: 2}\n"
            "switch: {convergence: 50us}\nworkload: {kind: all_to_all, size: 200KB}\n")

    def test_both_ports_of_a_NIC_are_used_and_shown(self):
        self.succeeds(self.scenario(self.DUAL), "-o", self.folder,
                      "--capture", "n0.g0-tor0.0.A", "--capture", "n0.g0-tor0.0.B")
        used = self.rows(self.folder, "SELECT port, utilization FROM ports JOIN nodes USING (node) "
                                      "WHERE name = 'n0.g0' ORDER BY port")
        self.assertEqual([port for port, _ in used], [0, 1])
        self.assertGreater(min(part for _, part in used), 0.1)
        self.assertGreater(len(self.rows(self.folder, "SELECT DISTINCT node, port FROM loads JOIN "
                                                      "nodes USING (node) WHERE name = 'n0.g0'")), 1)
        self.assertGreater((self.folder / "capture.pcapng").stat().st_size, 100_000)

    def test_a_failed_link_costs_no_flow(self):
        faults = "faults: {down: n0.g0-tor0.0.B, at: 20us}\n"
        result = numbers(self.succeeds(self.scenario(self.DUAL + faults)))
        self.assertEqual(result["outcome"], "complete")
        self.assertEqual(result["flows given up"], "0")


class Faults(SimTest):
    def test_rules_lose_packets_the_same_with_the_same_seed(self):
        path = self.scenario("topology: {kind: star, hosts: 4}\nworkload: incast\n"
                             "faults: [{at_host: h1, rules: loss 0.5% dir=tx},\n"
                             "         {at_link: s0-h0, rules: 'burst-loss; delay by=3us'}]\n")
        once, again = self.succeeds(path), self.succeeds(path)
        self.assertEqual(once, again)
        self.assertNotEqual(numbers(once)["corrupted on links"], "0")
        self.assertNotEqual(once, self.succeeds(path, "--seed", "2"))

    RING = """topology: {kind: import, file: ring.txt}
switch: {buffer: 1MiB, ecn: off, pfc: {watchdog: {enabled: %s, detection: 5ms, restoration: 5ms}}}
hosts: {congestion_control: off}
workload: {kind: flows, flows: [%s]}
"""

    def ring(self, watchdog):
        (self.folder / "ring.txt").write_text("".join(
            f"h{i} s{i}\ns{i} s{(i + 1) % 5}\n" for i in range(5)))
        flows = ", ".join(f"{{from: h{i}, to: h{(i + 2) % 5}, size: 5MB}}" for i in range(5))
        return self.succeeds(self.scenario(self.RING % (watchdog, flows)), "-o", self.folder)

    def test_a_deadlock_is_a_circle_of_ports_and_a_watchdog_ends_it(self):
        output = self.ring("off")
        self.assertEqual(numbers(output)["outcome"], "deadlock")
        self.assertRegex(output, r"deadlock: s(\d):\d -> (s\d:\d -> ){4}s\1:\d, priority 3; 5 queues")
        self.assertIn("PFC watchdog: off", output)
        report = (self.folder / "report.html").read_text()
        self.assertRegex(report, r'"circle":\[\d+,\d+,\d+,\d+,\d+\]')
        output = self.ring("on")
        self.assertEqual(numbers(output)["outcome"], "complete")
        self.assertRegex(output, r"PFC watchdog: it ended [1-9]\d* pauses, and [1-9]\d* frames")
        self.assertEqual(len(self.rows(self.folder, "SELECT value FROM run WHERE key = 'deadlock'")), 1)


@unittest.skipUnless(shutil.which("mpirun") and (BUILD / "lib/libverbena-mpi.so").exists(),
                     "Open MPI is not installed, or was not when Verbena was built")
class SweepsOverMachines(SimTest):
    SWEEP = ["--sweep", "topology.hosts=3,5,9", "--sweep", "kmin=50k,100k"]

    def command(self, *arguments, ranks=3):
        return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "--mca", "btl",
                "self,vader", str(VERBENA), "sim", *map(str, arguments)]

    def mpirun(self, *arguments, **options):
        return subprocess.run(self.command(*arguments, **options), capture_output=True, text=True,
                              timeout=LIMIT_S, env={**os.environ, "TMPDIR": str(self.folder)})

    def test_the_table_is_that_of_one_machine(self):
        one = self.succeeds(EXAMPLES / "incast.yaml", *self.SWEEP, "-o", self.folder / "one")
        three = self.mpirun(EXAMPLES / "incast.yaml", *self.SWEEP, "-o", self.folder / "three")
        self.assertEqual((three.returncode, three.stdout), (0, one), three.stderr)
        files = sorted(path.relative_to(self.folder / "one") for path in
                       (self.folder / "one").rglob("*") if path.is_file())
        self.assertEqual(len(files), 6 * 3 + 2)  # table.csv, table.html
        for file in files:
            self.assertEqual((self.folder / "one" / file).read_bytes(),
                             (self.folder / "three" / file).read_bytes(), file)

    def test_more_processes_than_runs(self):
        sweep = ["--sweep", "topology.hosts=3,4"]
        self.assertEqual(self.mpirun(EXAMPLES / "incast.yaml", *sweep).stdout,
                         self.succeeds(EXAMPLES / "incast.yaml", *sweep))

    def test_a_mistake_ends_all_and_is_told_once(self):
        done = self.mpirun(EXAMPLES / "incast.yaml", "--sweep", "kmin=50k,few,100k")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("verbena: "), 1, done.stderr)

    def test_one_run_is_not_shared_out(self):
        done = self.mpirun(EXAMPLES / "incast.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("one run is not shared out to the 3 processes"), 1)

    def long_sweep(self, *options):
        return children.Child(
            self.command(EXAMPLES / "incast.yaml", "--set", "size=100GB", "--sweep",
                         "topology.hosts=3,5,9", *options),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "TMPDIR": str(self.folder)})

    def processes_of(self, mpirun):
        """Of `verbena`, once each of them waits for signals."""
        while True:
            children = subprocess.run(["pgrep", "-P", str(mpirun.pid)], capture_output=True, text=True)
            found = [int(pid) for pid in children.stdout.split()]
            status = [pathlib.Path(f"/proc/{pid}/status").read_text() for pid in found]
            blocked = [int(re.search(r"SigBlk:\s*(\w+)", text).group(1), 16) >> (signal.SIGINT - 1) & 1
                       for text in status]
            if len(found) == 3 and all(blocked):
                return found
            self.assertIsNone(mpirun.poll())
            time.sleep(0.05)

    def test_a_signal_to_one_process_ends_all_with_what_there_was(self):
        mpirun = self.long_sweep("-o", self.folder / "out")
        processes = self.processes_of(mpirun)
        time.sleep(1)
        os.kill(processes[1], signal.SIGINT)
        output, errors = mpirun.communicate(timeout=LIMIT_S)
        self.assertEqual(mpirun.returncode, 130, errors)
        self.assertEqual(output.count("interrupted"), 3)
        self.assertEqual(self.rows(self.folder / "out/topology.hosts=9",
                                   "SELECT value FROM run WHERE key = 'status'"), [("interrupted",)])

    def test_a_signal_to_mpirun_leaves_no_process(self):
        mpirun = self.long_sweep()
        processes = self.processes_of(mpirun)
        mpirun.send_signal(signal.SIGINT)
        mpirun.communicate(timeout=LIMIT_S)
        for pid in processes:
            state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
            self.assertRegex(state.stdout, r"^(Z.*)?$")  # gone, or waiting for somebody to hear of it

    def test_mpi_that_cannot_be_loaded_is_one_line(self):
        program = self.folder / "bin/verbena"
        program.parent.mkdir()
        shutil.copy(VERBENA, program)
        done = subprocess.run([program, "sim", EXAMPLES / "incast.yaml", "--sweep", "seed=1,2"],
                              capture_output=True, text=True, timeout=LIMIT_S,
                              env={**os.environ, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"})
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^verbena: this is one of 2 processes of mpirun, and MPI cannot "
                                      r"be loaded \(libverbena-mpi.so: .*\n$")


@unittest.skipUnless(BROWSER, "chromium is not installed")
class Report(SimTest):
    def open_in_browser(self, page, *options):
        command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={self.folder / 'profile'}", "--virtual-time-budget=5000", *options,
                   page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S,
                              env={**os.environ, "HOME": str(self.folder)})

    def test_a_browser_draws_it_without_a_network(self):
        self.succeeds(EXAMPLES / "incast.yaml", "--set", "congestion_control=dcqcn", "-o", self.folder)
        page = self.folder / "report.html"
        text = page.read_text()
        self.assertNotRegex(text, r'(src|href)="')
        done = self.open_in_browser(page, "--host-resolver-rules=MAP * 0.0.0.0", "--dump-dom",
                                    "--enable-logging=stderr", "--v=0")
        self.assertNotRegex(done.stderr, r"Uncaught|SyntaxError|TypeError")
        document = done.stdout
        self.assertRegex(document, r'class="badge good">complete<')
        # Chart.js gives a canvas its size when it has drawn it.
        for chart in ("slowdown", "queues", "rates", "loads", "utilization"):
            self.assertRegex(document, rf'<canvas id="{chart}"[^>]*width="\d+"', chart)
        self.assertEqual(len(re.findall(r'class="link[" ]', document)), 17)
        self.assertIn("dropped by switches", document)


if __name__ == "__main__":
    testing.main()
