#!/usr/bin/env python3
"""Proves that check_layers.py finds what it is there to find, and leaves alone what is right."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def violations(self, files):
        src = self.root / "src"
        shutil.rmtree(src, ignore_errors=True)
        for name, text in files.items():
            (src / name).parent.mkdir(parents=True, exist_ok=True)
            (src / name).write_text(text)
        return check_layers.check_includes(src)[0]

    def accepts(self, file, include):
        self.assertEqual(self.violations({file: f"#include {include}\n"}), [], f"{file} {include}")

    def refuses(self, file, include):
        found = self.violations({file: f"// one\n#include {include}\n"})
        self.assertEqual(len(found), 1, f"{file} {include}: {found}")
        self.assertTrue(found[0].startswith(f"src/{file}:2: "), found[0])

    def test_includes_point_up_the_table(self):
        order = ["base", "wire", "memory", "congestion", "transport", "connect", "device", "host",
                 "abi", "cli"]
        for i, lower in enumerate(order):
            for higher in order[i + 1:]:
                self.accepts(f"{higher}/x.cc", f'"{lower}/y.h"')
                self.refuses(f"{lower}/x.h", f'"{higher}/y.h"')
            self.accepts(f"{lower}/x.cc", f'"{lower}/y.h"')

    def test_units_never_include_themselves_by_way_of_others(self):
        def cycles(files):
            self.violations(files)
            return check_layers.check_cycles(self.root / "src")

        chain = {"wire/a.h": '#include "wire/b.h"\n', "wire/b.h": "", "wire/c.cc": "",
                 "wire/b.cc": '#include "wire/b.h"\n#include "wire/c.h"\n', "wire/c.h": ""}
        self.assertEqual(cycles(chain), [])
        found = cycles(chain | {"wire/c.cc": '#include "wire/a.h"\n'})
        self.assertEqual(len(found), 1, found)
        for unit in ("wire/a", "wire/b", "wire/c"):
            self.assertIn(unit, found[0])
        self.assertEqual(cycles(chain | {"wire/c_test.cc": '#include "wire/a.h"\n'}), [])

    def test_angle_brackets_and_spaces_do_not_hide_an_include(self):
        self.refuses("wire/x.h", "<device/y.h>")
        found = self.violations({"wire/x.h": '  #  include   "host/y.h"  // why\n'})
        self.assertEqual(len(found), 1)

    def test_peers_never_include_each_other(self):
        peers = ["host", "fabric", "collectives", "nvmf", "management", "transfer"]
        for one in peers:
            for other in peers:
                (self.accepts if one == other else self.refuses)(f"{one}/x.cc", f'"{other}/y.h"')

    def test_transports_never_include_each_other(self):
        transports = ["rc", "uc", "ud", "iwarp", "local"]
        for one in transports:
            self.accepts(f"transport/{one}/x.cc", '"transport/cqe.h"')
            self.accepts("transport/engine.h", f'"transport/{one}/y.h"')
            self.accepts("device/x.cc", f'"transport/{one}/y.h"')
            for other in transports:
                (self.accepts if one == other else self.refuses)(
                    f"transport/{one}/x.cc", f'"transport/{other}/y.h"')

    def test_system_headers_of_sans_io_layers(self):
        for header in ["<thread>", "<mutex>", "<chrono>", "<ctime>", "<time.h>", "<sys/socket.h>",
                       "<pthread.h>", "<unistd.h>", "<iostream>", "<fstream>", "<random>",
                       "<condition_variable>", "<netinet/in.h>", "<linux/if_packet.h>", "<poll.h>",
                       "<infiniband/verbs.h>"]:
            for layer in check_layers.SANS_IO:
                self.refuses(f"{layer}/x.cc", header)
            self.accepts("base/x_test.cc", header)
            self.accepts("host/x.cc", header)
            self.accepts("abi/x.cc", header)
        for header in ["<atomic>", "<span>", "<cstring>", "<isa-l.h>", "<tl/expected.hpp>",
                       "<memory>", "<arpa/inet.h>"]:
            self.accepts("device/x.cc", header)

    def test_paths_start_at_src(self):
        self.refuses("wire/ib/x.cc", '"bth.h"')
        self.refuses("wire/ib/x.cc", '"../../device/y.h"')
        self.refuses("wire/ib/x.cc", '"wire/../device/y.h"')

    def test_only_tests_include_tests(self):
        self.accepts("wire/ib/x_test.cc", '"tests/support/capture.h"')
        self.accepts("wire/x_for_test.h", '"tests/support/capture.h"')
        self.accepts("device/testing.h", '"tests/support/capture.h"')
        self.refuses("wire/ib/x.cc", '"tests/support/capture.h"')

    def test_a_folder_outside_of_the_table(self):
        self.assertEqual(len(self.violations({"utils/x.h": "", "base/x.h": ""})), 1)


class Symbols(unittest.TestCase):
    def test_forbidden(self):
        for symbol in ["clock_gettime", "clock_gettime@GLIBC_2.17", "time", "nanosleep", "usleep",
                       "pthread_mutex_lock", "pthread_create@GLIBC_2.34", "sem_wait", "syscall",
                       "socket", "bind", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmmsg",
                       "poll", "ppoll", "epoll_wait", "eventfd", "open", "open64", "__open_2",
                       "__open64_2", "read", "__read_chk", "pread64", "write", "writev", "close",
                       "mmap64", "process_vm_writev", "dlsym", "getenv", "rand", "getrandom",
                       "__cxa_guard_acquire", "fopen64", "__clock_gettime64",
                       "std::chrono::_V2::steady_clock::now()", "std::thread::_M_start_thread(x)",
                       "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
                       "std::random_device::_M_getval()", "std::cout",
                       "std::ios_base::Init::Init()",
                       "typeinfo for std::thread::_State", "vtable for std::thread::_State",
                       "std::__detail::__atomic_futex_unsigned_base::x()"]:
            self.assertTrue(check_layers.is_forbidden_symbol(symbol), symbol)

    def test_allowed(self):
        for symbol in ["abort", "fprintf", "__fprintf_chk", "stderr", "memcpy", "__memcpy_chk",
                       "memmove", "malloc", "free", "realloc", "bsearch", "strtol", "timegm_like",
                       "crc32_gzip_refl", "crc32_iscsi", "__stack_chk_fail", "__cxa_begin_catch",
                       "operator new(unsigned long)", "std::terminate()",
                       "std::__throw_length_error(char const*)",
                       "std::__detail::_Prime_rehash_policy::_M_next_bkt(unsigned long) const",
                       "verbena::Link::send(int)", "verbena::check_failed(char const*)",
                       "verbena::f(std::thread const&)", "vtable for __cxxabiv1::__class_type_info",
                       "readable", "opener", "connect_rc", "_GLOBAL_OFFSET_TABLE_"]:
            self.assertFalse(check_layers.is_forbidden_symbol(symbol), symbol)



class Archives(unittest.TestCase):
    def archives(self, sources):
        """One archive for each source, by its name."""
        compiler = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++")
        if not compiler:
            self.skipTest("no C++ compiler")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for stem, text in sources.items():
            (root / f"{stem}.cc").write_text(text)
            subprocess.run([compiler, "-std=c++20", "-O2", "-c", f"{stem}.cc"], cwd=root, check=True)
            subprocess.run(["ar", "rc", f"{stem}.a", f"{stem}.o"], cwd=root, check=True)
        return [root / f"{stem}.a" for stem in sources]

    def test_what_a_sans_io_archive_needs(self):
        bad, good = self.archives({
            "bad": "#include <chrono>\n#include <mutex>\n#include <unistd.h>\n"
                   "std::mutex m;\n"
                   "int f() { m.lock(); return static_cast<int>(read(0, &m, 1)); }\n"
                   "auto now() { return std::chrono::steady_clock::now(); }\n",
            "good": "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\n"
                    'void fail(int n) { std::fprintf(stderr, "%d", n); std::abort(); }\n'
                    "std::vector<int> grow(std::vector<int> v) "
                    "{ v.resize(v.size() * 2); return v; }\n"})
        found = check_layers.check_archives([bad])
        for name in ["pthread_mutex_lock", "read", "steady_clock::now"]:
            self.assertTrue(any(name in line for line in found), f"{name} in {found}")
        self.assertEqual(check_layers.check_archives([good]), [])

    def test_drivers_run_the_core_and_no_copy_of_it(self):
        core, driver, other, copy = self.archives({
            "core": "namespace n { int step(int i) { return i + 1; } }\n",
            "driver": "namespace n { int step(int); }\nint run() { return n::step(1); }\n",
            "other": "int run() { return 2; }\n",
            "copy": "namespace n { int step(int i) { return i + 2; } int f(int);\n"
                    "int g() { return f(1); } }\n"})
        self.assertEqual(check_layers.check_drivers(core, [driver]), [])
        self.assertEqual(check_layers.check_drivers(core, [driver, other]),
                         ["other.a: asks core.a for nothing"])
        self.assertEqual(check_layers.check_drivers(core, [copy]),
                         ["copy.a: has its own n::step(int), which core.a has",
                          "copy.a: asks core.a for nothing"])


class CommandLine(unittest.TestCase):
    def test_exit_statuses(self):
        script = check_layers.__file__
        with tempfile.TemporaryDirectory() as folder:
            run = lambda *args: subprocess.run([sys.executable, script, *args], capture_output=True)
            (pathlib.Path(folder) / "base").mkdir()
            header = pathlib.Path(folder) / "base" / "x.h"
            header.write_text("#include <span>\n")
            self.assertEqual(run("includes", folder).returncode, 0)
            header.write_text('#include "device/device.h"\n')
            self.assertEqual(run("includes", folder).returncode, 1)
            self.assertEqual(run("includes", folder + "/nowhere").returncode, 2)
            self.assertEqual(run().returncode, 2)


if __name__ == "__main__":
    unittest.main()
