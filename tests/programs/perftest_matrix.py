"""Debian's perftest programs on Verbena: number of QPs, sizes, MTUs, directions, events, inline,
post lists, transports. Each value of each is tried with each program that has it, alone or paired.
perftest_*_test.py run it, a part each.
"""

import unittest

import harness
import testing

MTUS = [f"-m {mtu}" for mtu in (256, 512, 1024, 2048, 4096)]
MANY_QPS = ["-q 1", "-q 2", "-q 16"]
ALL_SIZES = "-a"  # 2 B to 8 MiB
FEW = 10          # iterations for each of these sizes: all together are 16 MiB each time

BANDWIDTH = [*MANY_QPS, *MTUS, "-b", "-a", "-a -b", "-a -q 2", "-q 16 -b", "-l 16", "-l 4 -q 2 -b",
             "-q 16 -m 256 -s 4096", "-t 1 -s 1", "-Q 1"]
LATENCY = [*MTUS, "-a", "-s 1"]
INLINE = ["-I 0 -s 64", "-I 64 -s 64", "-I 256 -s 256"]
EVENTS = ["-e", "-e -s 65536"]
EVENTS_BANDWIDTH = ["-e -q 16", "-e -b", "-e -a"]
OUTSTANDING = ["-o 1", "-o 16"]  # READs and atomics in flight
UC = ["-c UC -s 4096 -m 1024", "-c UC -s 1024"]
# Nothing holds a UC or UD sender back, and ib_send_* waits for every message: so little is sent that
# the receiver's socket buffer can hold it all.
UD = ["-c UD -s 1024 -m 1024", "-c UD -s 1024 -e", "-c UD -s 64 -I 64"]

MATRIX = {
    "ib_write_bw": [*BANDWIDTH, *INLINE, "-I 64 -s 64 -q 16 -l 8", "-c UC -q 2", "-c UC", *UC],
    "ib_write_lat": [*LATENCY, *INLINE, *UC],
    "ib_read_bw": [*BANDWIDTH, *EVENTS, *EVENTS_BANDWIDTH, *OUTSTANDING],
    "ib_read_lat": [*LATENCY, *EVENTS, *OUTSTANDING],
    "ib_send_bw": [*BANDWIDTH, *EVENTS, *EVENTS_BANDWIDTH, *INLINE, "-r 1 -s 64", "-l 8 -r 64",
                   "--recv_post_list=8", "--use-srq -q 16", *UC, *UD],
    "ib_send_lat": [*LATENCY, *EVENTS, *INLINE, "--use-srq", *UC, *UD],
    "ib_atomic_bw": [f"-A {kind} {rest}" for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD")
                     for rest in (*MANY_QPS, "-b", "-e", "-l 4", *OUTSTANDING)] + MTUS,
    "ib_atomic_lat": [f"-A {kind} {rest}" for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD")
                      for rest in ("", "-e", *OUTSTANDING)] + MTUS,
}


def iterations_of(program, options):
    if "-a" in options.split():
        return FEW
    if program.endswith("_bw") and ("-c UC" in options or "-c UD" in options):
        return 200
    # A multiple of every post list, or perftest refuses; and of its CQ moderation (100), or it counts
    # more completions than there were, and waits for ever for a QP that was slower than the others.
    return 800 if program.endswith("_bw") else 256


def expected_sizes(program, options):
    words = options.split()
    if "-a" in words:
        return [2 ** power for power in range(1, 24)]
    if "-s" in words:
        return [int(words[words.index("-s") + 1])]
    if "atomic" in program:
        return [8]
    return [65536] if program.endswith("_bw") else [2]


class PerftestCase(unittest.TestCase):
    """Base of what test_case() makes; no test of its own."""
    build = None

    def check(self, program, options):
        count = iterations_of(program, options)
        pair = self.build.run_pair(program, *options.split(), "-n", count)
        rows = harness.perftest_rows(pair.client.output())
        self.assertEqual([row.size for row in rows], expected_sizes(program, options), pair.client)
        for row in rows:
            speed = row.typical_us if isinstance(row, harness.Latency) else row.mib_per_s
            # A few bytes in little time round to 0.00 MiB/s.
            self.assertTrue(speed > 0 or row.size < 4096, pair.client)
            self.assertGreaterEqual(row.iterations, count, pair.client)


def test_name(program, options):
    words = "".join(c if c.isalnum() else "_" for c in options).strip("_")
    return f"test_{program}__{words or 'plain'}"


def chosen_options(program):
    """All sets of options of the program in a thorough run. Otherwise those whose turn it is: each
    set is tried with one of the programs that have it."""
    every = dict.fromkeys(MATRIX[program])
    if testing.THOROUGH:
        return list(every)
    sets = list(dict.fromkeys(options for of_program in MATRIX.values() for options in of_program))
    def whose_turn(options):
        having = [name for name in MATRIX if options in MATRIX[name]]
        return having[sets.index(options) % len(having)]
    return [options for options in every if whose_turn(options) == program]


def test_case(build, programs):
    """A unittest class with one test for each set of options of each program."""
    tests = {"build": build}
    for program in programs:
        for options in chosen_options(program):
            def test(self, program=program, options=options):
                self.check(program, options)
            test.__doc__ = f"{program} {options}"
            name = test_name(program, options)
            assert name not in tests, name
            tests[name] = test
    return type("PerftestTest", (PerftestCase,), tests)
