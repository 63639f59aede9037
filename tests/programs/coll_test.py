#!/usr/bin/env python3
"""`verbena coll`: its table, under its own launcher and mpirun, and what it refuses.

usage: coll_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import children
import harness

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1][0] != "-" else "build/test")
harness.build_from_command_line()
VERBENA = str(BUILD / "bin" / "verbena")
ROW = re.compile(r"^ +(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+) +([\d.]+) +([\d.]+) +([\d.]+) +(\S+)"
                 r" +([\d.]+) +([\d.]+) +([\d.]+) +(\S+)( +[\d.]+)?$", re.MULTILINE)


def run(*command, **variables):
    return subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, stdin=subprocess.DEVNULL, timeout=harness.PAIR_LIMIT_S,
                          env={**os.environ, "VERBENA_ADDRESS": harness.ADDRESS, **variables})


def coll(*arguments, **variables):
    return run(VERBENA, "coll", *arguments, **variables)


class CollTest(unittest.TestCase):
    def rows(self, done, count):
        self.assertEqual(done.returncode, 0, done.stdout)
        rows = ROW.findall(done.stdout)
        self.assertEqual(len(rows), count, done.stdout)
        for row in rows:
            self.assertEqual((row[8], row[12]), ("0", "0"), done.stdout)
        self.assertIn("# Out of bounds values : 0 OK", done.stdout)
        return rows

    def test_every_operation(self):
        for operation in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                          "alltoall", "gather", "scatter", "sendrecv"):
            with self.subTest(operation):
                rows = self.rows(coll(operation, "-n", 3, "-b", 12, "-e", "300K", "-f", 50,
                                      "--iters", 2, "-w", 1, "--check"), 3)
                self.assertEqual(int(rows[0][0]) % 4, 0)

    def test_types_and_reductions(self):
        for data_type, operator in (("int8", "prod"), ("half", "sum"), ("bfloat16", "avg"),
                                    ("double", "min"), ("int64", "bxor"), ("uint8", "max")):
            with self.subTest(data_type):
                rows = self.rows(coll("-d", data_type, "-o", operator, "-b", "64K", "-e", "64K",
                                      "--iters", 1), 1)
                self.assertEqual(rows[0][2:4], (data_type, operator))

    def test_steps_and_bandwidth(self):
        rows = self.rows(coll("-n", 4, "-b", "1M", "-e", "3M", "-i", "1M", "--iters", 1), 3)
        self.assertEqual([int(row[0]) for row in rows], [1 << 20, 2 << 20, 3 << 20])
        time, algorithm, bus = map(float, rows[2][5:8])
        self.assertAlmostEqual(algorithm, (3 << 20) / time / 1e3, delta=0.02)
        self.assertAlmostEqual(bus, algorithm * 2 * 3 / 4, delta=0.02)

    def test_algorithms_and_faults(self):
        for algorithm in ("ring", "halving-doubling", "one-shot"):
            self.rows(coll("-n", 4, "--algorithm", algorithm, "-b", 64, "-e", "64K", "-f", 1024,
                           "--iters", 1), 2)
        self.rows(coll("--fault", "loss 1%", "-b", "256K", "-e", "256K", "--iters", 2), 1)

    def test_iwarp_devices(self):
        """rdma_cm connects their queue pairs."""
        for local in ("on", "off"):
            for operation in ("all_reduce", "alltoall", "broadcast"):
                with self.subTest(local=local, operation=operation):
                    self.rows(coll(operation, "-n", 3, "-b", 60, "-e", "1M", "-f", 120, "--iters",
                                   2, "--check", VERBENA_LINK="iwarp", VERBENA_LOCAL=local), 3)

    def test_table_decides(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as table:
            table.write("choose AllReduce 2 1000000 ring 4096\n")
            table.flush()
            self.rows(coll("--table", table.name, "-b", "64K", "-e", "64K", "--iters", 1), 1)
            table.write("choose AllReduce nonsense\n")
            table.flush()
            done = coll("--table", table.name, "-b", 8, "-e", 8)
            self.assertEqual(done.returncode, 1)
            self.assertIn("line 2", done.stdout)

    def test_tune_and_predict(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "here.txt"
            done = coll("--tune", file, "-e", "64K")
            self.assertEqual(done.returncode, 0, done.stdout)
            lines = file.read_text().splitlines()
            self.assertTrue(any(line.startswith("choose AllReduce 2 ") for line in lines), lines)
            self.assertTrue(any(line.startswith("cost reduce ") for line in lines), lines)
            for operation in ("all_reduce", "all_gather", "alltoall"):
                rows = self.rows(coll(operation, "--predict", file, "-b", "64K", "-e", "256K", "-f",
                                      4, "--iters", 1), 2)
                self.assertTrue(all(float(row[13]) > 0 for row in rows), rows)
                self.assertGreater(float(rows[1][13]), float(rows[0][13]))
            done = coll("--predict", file / "none")
            self.assertEqual(done.returncode, 2)

    def test_a_file_that_cannot_be_written_is_named_at_once(self):
        begun = time.monotonic()
        done = coll("--tune", "/nowhere/table.txt")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("cannot write /nowhere/table.txt", done.stdout)
        self.assertLess(time.monotonic() - begun, 10)

    def test_many_ranks(self):
        for ranks, operations in ((8, ("all_reduce", "all_gather", "alltoall")),
                                  (16, ("all_reduce", "reduce_scatter", "broadcast", "sendrecv"))):
            for operation in operations:
                with self.subTest(ranks=ranks, operation=operation):
                    self.rows(coll(operation, "-n", ranks, "-b", "1K", "-e", "256K", "-f", 256,
                                   "--iters", 1, "-w", 0, "--check"), 2)

    def test_mpirun(self):
        openmpi = ["--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
        for launcher, options in (("mpirun.openmpi", openmpi), ("mpirun.mpich", [])):
            if shutil.which(launcher) is None:
                continue
            for ranks in (3, 8):
                with self.subTest(launcher=launcher, ranks=ranks):
                    self.rows(run(launcher, *options, "-n", ranks, VERBENA, "coll", "-b", "64K",
                                  "-e", "64K", "--iters", 1), 1)

    def test_library_asks_for_the_verbs_of_rdma_core_only(self):
        """It is linked to the system's libraries, and runs on any: no symbol is Verbena's own."""
        library = BUILD / "lib" / "libverbena-coll.so.1"
        needed = run("readelf", "-d", library).stdout
        asked = run("nm", "-D", "--undefined-only", library).stdout
        for name, prefix, version in (("libibverbs.so.1", "ibv", "IBVERBS"),
                                      ("librdmacm.so.1", "rdma", "RDMACM")):
            self.assertIn(f"[{name}]", needed)
            found = re.findall(rf"\b{prefix}_\w+@(\S+)", asked)
            self.assertEqual({symbol.split("_")[0] for symbol in found}, {version})
        self.assertNotIn("verbena_", asked)

    def test_program_in_c(self):
        """The header is plain C, and a program needs nothing but the two libraries."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "sum.c"
            source.write_text("""
#include <stdio.h>
#include <verbena/collectives.h>
int main(void)
{
	verbena_comm *comm;
	double one = 1, sum = 0;
	if (verbena_coll_init(&comm, "env://", -1, -1, NULL)) {
		puts(verbena_coll_error());
		return 1;
	}
	verbena_coll_all_reduce(&one, &sum, 1, VERBENA_FLOAT64, VERBENA_SUM, comm, NULL);
	printf("sum %g\\n", sum);
	return verbena_coll_destroy(comm);
}
""")
            program = pathlib.Path(folder) / "sum"
            header = pathlib.Path(__file__).resolve().parents[2] / "include"
            library = (BUILD / "lib").resolve()
            done = run("gcc", "-std=c99", "-Wall", "-Werror", "-I", header, "-o", program, source,
                       library / "libverbena-coll.so.1", "-libverbs", "-lrdmacm",
                       f"-Wl,-rpath,{library}")
            self.assertEqual(done.returncode, 0, done.stdout)
            ranks = [children.Child([VERBENA, "run", "--address", harness.ADDRESS, "--", program],
                                    stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
                                         "VERBENA_COLL_RENDEZVOUS": f"file://{folder}/rank0"})
                     for rank in range(2)]
            for rank in ranks:
                self.assertEqual(rank.communicate(timeout=60)[0], "sum 2\n")

    def test_rendezvous_by_address(self):
        """Ranks that no launcher of ours started: RANK and WORLD_SIZE, and an address."""
        port = harness.free_tcp_port()
        ranks = [children.Child([VERBENA, "coll", "--rendezvous", f"tcp://127.0.0.1:{port}", "-b",
                                 "64K", "-e", "64K", "--iters", "1"], stdout=subprocess.PIPE,
                                text=True, env={**os.environ, "VERBENA_ADDRESS": harness.ADDRESS,
                                                "RANK": str(rank), "WORLD_SIZE": "2"})
                 for rank in range(2)]
        outputs = [rank.communicate(timeout=60)[0] for rank in ranks]
        self.assertEqual([len(ROW.findall(output)) for output in outputs], [1, 0], outputs)

    def test_wrong_usage(self):
        for arguments, words in ((["fly"], "no such operation"), (["-d", "float8"], "int8"),
                                 (["-b", "ten"], "number of bytes"), (["-n", "0"], "1 to 1024"),
                                 (["-b", "2M", "-e", "1M"], "--min"), (["-f", "1"], "2 or more"),
                                 (["--algorithm", "fastest"], "no such algorithm"),
                                 (["--timeout", "0"], "above 0"), (["--timeout", "9x"], "above 0"),
                                 (["--iters", "0"], "1 or more"),
                                 (["--fault", "lose"], "lose"), (["--tune", ""], "is empty"),
                                 (["-i", "1", "-e", "1024G"], "more than 100000 sizes")):
            with self.subTest(arguments):
                done = coll(*arguments)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(words, done.stdout)

    def test_what_does_not_fit(self):
        for arguments, words in ((["-b", "1024G", "-e", "1024G"], "more memory"),
                                 (["broadcast", "-r", "5"], "root 5 is no rank"),
                                 (["-d", "float", "-o", "band"], "no band of float")):
            with self.subTest(arguments):
                done = coll("--iters", 1, *arguments)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(words, done.stdout)


if __name__ == "__main__":
    harness.main()
