#!/usr/bin/env python3
"""ib_read_bw and ib_read_lat with every option of perftest_matrix.py.

usage: perftest_read_test.py [BUILD_DIR] [-k PATTERN]
"""

import harness
import perftest_matrix

BUILD = harness.build_from_command_line()
PerftestTest = perftest_matrix.test_case(BUILD, ["ib_read_bw", "ib_read_lat"])

if __name__ == "__main__":
    harness.main()
