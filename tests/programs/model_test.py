#!/usr/bin/env python3
"""verbena model: files, slices and resumed fetches arrive as they were; bad input is one line.

usage: model_test.py [BUILD_DIR] [-k PATTERN]
"""

import fcntl
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import children
import harness

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1][0] != "-" else "build/test")
harness.build_from_command_line()
VERBENA = (BUILD / "bin" / "verbena").resolve()
MIB = 1 << 20


def safetensors(tensors):
    """The bytes of a file with those tensors: name -> (type, shape, bytes)."""
    header, data = {}, b""
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    content = path.read_bytes()
    length, = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    header.pop("__metadata__", None)
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def matrix(rows, columns, seed):
    """A matrix of 16-bit elements as it is in a file."""
    return "F16", [rows, columns], random.Random(seed).randbytes(2 * rows * columns)


def columns_of(content, rows, columns, begin, end):
    return b"".join(content[2 * (row * columns + begin):2 * (row * columns + end)]
                    for row in range(rows))


class ModelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model"
        self.model.mkdir()
        self.tensors = {"model.embed_tokens.weight": matrix(512, 64, 1),
                        "layers.0.self_attn.q_proj.weight": matrix(128, 64, 2),
                        "layers.0.self_attn.o_proj.weight": matrix(64, 128, 3),
                        "layers.0.norm.weight": ("F16", [64], bytes(128))}
        (self.model / "a.safetensors").write_bytes(safetensors(self.tensors))
        (self.model / "config.json").write_text("{}")
        (self.model / "empty.txt").write_text("")

    def verbena(self, *arguments, limit=60):
        return subprocess.run([VERBENA, "model", *map(str, arguments), "--address",
                               harness.ADDRESS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=limit)

    def start(self, *arguments):
        process = children.Child([VERBENA, "model", *map(str, arguments), "--address",
                                  harness.ADDRESS], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def serve(self, path=None, *options):
        """The process, and its address."""
        process = self.start("serve", path or self.model, *options)
        line = process.stdout.readline()
        found = re.search(r"model fetch (\S+) TARGET", line)
        self.assertTrue(found, line)
        return process, found[1]

    def fetch(self, *arguments, status=0):
        done = self.verbena("fetch", *arguments)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def fails(self, needle, *arguments, status=1):
        output = self.fetch(*arguments, status=status)
        lines = output.splitlines()
        self.assertEqual(len(lines), 1, output)
        self.assertTrue(lines[0].startswith("verbena: "), output)
        self.assertIn(needle, lines[0])

    def assert_same(self, target, source=None):
        source = source or self.model
        files = sorted(path.relative_to(source) for path in source.rglob("*")
                       if path.is_file() and path.name != ".verbena-hashes")
        self.assertEqual(sorted(path.relative_to(target) for path in target.rglob("*")
                                if path.is_file()), files)
        for file in files:
            self.assertEqual((target / file).read_bytes(), (source / file).read_bytes(), file)


class FetchTest(ModelTest):
    def test_a_folder_arrives(self):
        (self.model / "more").mkdir()
        (self.model / "more" / "b.bin").write_bytes(random.Random(4).randbytes(9 * MIB + 17))
        _, address = self.serve(None, "--chunk", "1M")
        self.assertIn("fetched 9.", self.fetch(address, self.folder / "copy"))
        self.assert_same(self.folder / "copy")

    def test_iwarp_devices(self):
        _, address = self.serve(None, "--link", "iwarp")
        self.assertIn("fetched", self.fetch(address, self.folder / "copy", "--link", "iwarp"))
        self.assert_same(self.folder / "copy")

    def test_one_file_gets_the_targets_name(self):
        _, address = self.serve(self.model / "a.safetensors")
        self.fetch(address, self.folder / "b.safetensors")
        self.assertEqual((self.folder / "b.safetensors").read_bytes(),
                         (self.model / "a.safetensors").read_bytes())

    def test_tensors_by_name(self):
        _, address = self.serve()
        target = self.folder / "some.safetensors"
        self.fetch(address, target, "--tensor", "*norm*", "--tensor", "model.embed*")
        got = read_safetensors(target)
        self.assertEqual(set(got), {"layers.0.norm.weight", "model.embed_tokens.weight"})
        for name, (shape, content) in got.items():
            self.assertEqual(shape, self.tensors[name][1])
            self.assertEqual(content, self.tensors[name][2])

    def test_tensor_parallel_slices(self):
        _, address = self.serve(None, "--chunk", "4K")
        for rank in range(4):
            target = self.folder / f"rank{rank}.safetensors"
            self.fetch(address, target, "--tp", f"{rank}/4")
            got = read_safetensors(target)
            q = self.tensors["layers.0.self_attn.q_proj.weight"][2]
            size = len(q) // 4
            self.assertEqual(got["layers.0.self_attn.q_proj.weight"],
                             ([32, 64], q[rank * size:(rank + 1) * size]))
            o = self.tensors["layers.0.self_attn.o_proj.weight"][2]
            self.assertEqual(got["layers.0.self_attn.o_proj.weight"],
                             ([64, 32], columns_of(o, 64, 128, rank * 32, rank * 32 + 32)))
            self.assertEqual(got["layers.0.norm.weight"], ([64], bytes(128)))

    def test_given_axes(self):
        _, address = self.serve()
        target = self.folder / "x.safetensors"
        self.fetch(address, target, "--tp", "1/2", "--tensor", "*embed*", "--columns", "*embed*")
        content = self.tensors["model.embed_tokens.weight"][2]
        self.assertEqual(read_safetensors(target)["model.embed_tokens.weight"],
                         ([512, 32], columns_of(content, 512, 64, 32, 64)))

    def test_several_sources(self):
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(32 * MIB))
        addresses = [self.serve(None, "--chunk", "256K")[1] for _ in range(2)]
        done = json.loads(self.fetch(",".join(addresses), self.folder / "copy", "--json"))
        self.assertEqual(set(done["sources"]), set(addresses))
        self.assert_same(self.folder / "copy")

    def test_fetchers_feed_each_other(self):
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(48 * MIB))
        _, address = self.serve(None, "--chunk", "256K")
        first = self.start("fetch", address, self.folder / "first", "--stay", "--json")
        self.assertIn('"bytes"', first.stdout.readline())
        done = json.loads(self.fetch(address, self.folder / "second", "--json"))
        self.assertEqual(len(done["sources"]), 2, done)
        self.assert_same(self.folder / "second")

    def test_sources_that_leave_while_others_fetch(self):
        """Fetchers serve each other, and end at different times."""
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(128 * MIB))
        _, address = self.serve(None, "--chunk", "256K")
        fetchers = [self.start("fetch", address, self.folder / str(number)) for number in range(6)]
        for number, fetcher in enumerate(fetchers):
            output = fetcher.communicate(timeout=60)[0]
            self.assertEqual(fetcher.returncode, 0, output)
            self.assert_same(self.folder / str(number))

    def test_a_fetch_goes_on(self):
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(16 * MIB))
        _, address = self.serve(None, "--chunk", "1M")
        target = self.folder / "copy"
        target.mkdir()
        content = bytearray((self.model / "b.bin").read_bytes())
        content[5 * MIB + 3] ^= 1  # one chunk that is damaged, and the end is missing
        (target / "b.bin.part").write_bytes(content[:10 * MIB])
        done = json.loads(self.fetch(address, target, "--json"))
        self.assertEqual(done["kept_bytes"], 9 * MIB)
        self.assert_same(target)

    def test_killed_source_and_restart(self):
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(64 * MIB))
        server, address = self.serve(None, "--chunk", "64K")
        target = self.folder / "copy"
        fetch = self.start("fetch", address, target, "--in-flight", "1", "--fault",
                           "rate limit=400Mbit")
        harness.wait_until(lambda: (target / "b.bin.part").exists(), 20, "the fetch begins")
        server.kill()
        output = fetch.communicate(timeout=60)[0]
        if fetch.returncode == 0:
            self.skipTest("the fetch was faster")
        self.assertEqual(fetch.returncode, 1, output)
        self.assertEqual(len(output.splitlines()), 1, output)
        self.assertFalse((target / "b.bin").exists())
        _, address = self.serve(None, "--chunk", "64K")
        self.fetch(address, target)
        self.assert_same(target)

    def test_second_source_takes_over(self):
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(64 * MIB))
        first, one = self.serve(None, "--chunk", "64K")
        _, other = self.serve(None, "--chunk", "64K")
        target = self.folder / "copy"
        fetch = self.start("fetch", f"{one},{other}", target, "--in-flight", "2")
        harness.wait_until(lambda: (target / "b.bin.part").exists(), 20, "the fetch begins")
        first.kill()
        output = fetch.communicate(timeout=60)[0]
        self.assertEqual(fetch.returncode, 0, output)
        self.assert_same(target)

    def test_loss(self):
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(8 * MIB))
        _, address = self.serve()
        self.fetch(address, self.folder / "copy", "--fault", "loss 1%; corrupt 0.5%")
        self.assert_same(self.folder / "copy")

    def test_memory(self):
        _, address = self.serve()
        self.assertIn("fetched", self.fetch(address, "--memory"))

    def test_signal_ends_the_server(self):
        server, _ = self.serve()
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 0)


class HashCacheTest(ModelTest):
    """Hashes that `serve` keeps between its runs."""

    def setUp(self):
        super().setUp()
        self.big = self.model / "b.bin"
        self.big.write_bytes(random.Random(4).randbytes(4 * MIB))
        self.cache = self.model / ".verbena-hashes"

    def kept_chunks(self, *options):
        """How many chunks the next run need not hash."""
        process = self.start("serve", self.model, *options)
        line = process.stdout.readline()
        process.kill()
        self.assertIn("model fetch", line)
        found = re.search(r"\((\d+) were hashed before\)", line)
        return int(found[1]) if found else 0

    def settle(self):
        time.sleep(2.1)  # a file that was written just before is not kept

    def test_a_file_that_was_just_written_is_not_kept(self):
        self.assertEqual(self.kept_chunks(), 0)
        self.assertEqual(self.kept_chunks(), 0)

    def test_only_changed_files_are_hashed_again(self):
        self.settle()
        self.assertEqual(self.kept_chunks(), 0)
        self.assertTrue(self.cache.exists())
        self.assertEqual(self.kept_chunks(), 6)
        self.assertEqual(self.kept_chunks("--chunk", "64K"), 0)  # chunks of another size
        self.settle()
        self.assertEqual(self.kept_chunks("--hashes", "off"), 0)
        before = self.big.stat()
        with open(self.big, "r+b") as file:
            file.write(b"changed")
        os.utime(self.big, ns=(before.st_atime_ns, before.st_mtime_ns))  # without a trace
        self.settle()
        self.assertEqual(self.kept_chunks("--chunk", "64K"), 3)
        _, address = self.serve(None, "--chunk", "64K")
        self.fetch(address, self.folder / "copy")
        self.assertEqual((self.folder / "copy" / "b.bin").read_bytes(), self.big.read_bytes())
        self.assertFalse((self.folder / "copy" / ".verbena-hashes").exists())

    def test_a_file_that_was_replaced_is_hashed_again(self):
        self.settle()
        self.kept_chunks()
        before = self.big.stat()
        other = self.model / "c.bin"
        other.write_bytes(random.Random(5).randbytes(4 * MIB))
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.rename(self.big)
        self.assertEqual(self.kept_chunks(), 2)

    def test_damaged_caches_count_as_empty(self):
        self.settle()
        self.kept_chunks()
        content = bytearray(self.cache.read_bytes())
        for damaged in (b"", b"x" * 100, content[:-1], content[:40] + b"!" + content[41:]):
            self.cache.write_bytes(damaged)
            self.assertEqual(self.kept_chunks(), 0)
        self.cache.unlink()
        self.cache.mkdir()
        self.assertEqual(self.kept_chunks(), 0)

    def test_another_place(self):
        self.settle()
        place = self.folder / "hashes"
        self.assertEqual(self.kept_chunks("--hashes", place), 0)
        self.assertFalse(self.cache.exists())
        self.assertEqual(self.kept_chunks("--hashes", place), 6)
        done = self.start("serve", self.model, "--hashes", self.folder / "no" / "such")
        self.assertIn("warning: ", done.stdout.readline())

    def test_one_file_and_its_folder_share_the_cache(self):
        self.settle()
        self.serve(self.big)
        self.assertEqual(self.kept_chunks(), 4)


class BadInputTest(ModelTest):
    def refused(self, content, needle):
        path = self.folder / "bad.safetensors"
        path.write_bytes(content)
        done = self.verbena("serve", path)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        self.assertIn(needle, done.stdout)

    def test_headers_that_lie(self):
        good = (self.model / "a.safetensors").read_bytes()
        self.refused(good[:5], "shorter than")
        self.refused(good[:-1], "cut short")
        self.refused(good + b"x", "belong to no tensor")
        self.refused(good[:100], "bytes, the file has")
        self.refused(struct.pack("<Q", 1 << 62) + good[8:], "bytes")
        self.refused(good[:8] + b"[" + good[9:], "does not begin")
        self.refused(safetensors({"x": ("F32", [3], bytes(16))}), "does not fit")
        self.refused(safetensors({"x": ("Q4", [4], bytes(4))}), "unknown dtype")

    def test_an_index_that_lies(self):
        index = self.model / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": dict.fromkeys(self.tensors, "a.safetensors")}))
        self.serve()  # without a warning
        for place in "b.safetensors", "config.json":
            index.write_text(json.dumps({"weight_map": {"layers.0.norm.weight": place}}))
            server = self.start("serve", self.model)
            self.assertEqual(server.stdout.readline(),
                             f"verbena: warning: {index.name}: it names {place}, which is no "
                             "safetensors file here\n")
            self.assertIn("serving 4 files", server.stdout.readline())

    def test_a_file_that_changes(self):
        path = self.model / "b.bin"
        path.write_bytes(random.Random(4).randbytes(4 * MIB))
        _, address = self.serve()
        with open(path, "r+b") as file:
            file.seek(MIB)
            file.write(b"changed")
        self.fails("b.bin has changed", address, self.folder / "copy")
        self.assertFalse((self.folder / "copy" / "b.bin").exists())

    def test_a_file_that_changes_without_a_trace(self):
        """Its size and times are as before: the hashes tell."""
        path = self.model / "b.bin"
        path.write_bytes(random.Random(4).randbytes(4 * MIB))
        before = path.stat()
        _, address = self.serve()
        with open(path, "r+b") as file:
            file.write(b"changed")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.fails("hash does not match", address, self.folder / "copy")
        self.assertFalse((self.folder / "copy" / "b.bin").exists())

    def test_links_to_nothing_and_loops(self):
        (self.model / "gone.bin").symlink_to("nowhere")
        done = self.verbena("serve", self.model)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("gone.bin: a link to a file that is not there", done.stdout)
        (self.model / "gone.bin").unlink()
        (self.model / "loop.bin").symlink_to("loop.bin")
        done = self.verbena("serve", self.model)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("loop.bin: Too many levels", done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)

    def test_a_file_that_is_cut(self):
        path = self.model / "b.bin"
        path.write_bytes(random.Random(4).randbytes(4 * MIB))
        server, address = self.serve()
        os.truncate(path, MIB)
        self.fails("b.bin has changed", address, self.folder / "copy")
        self.assertIsNone(server.poll())

    def test_tensors_and_slices_that_are_not_there(self):
        _, address = self.serve()
        target = self.folder / "x.safetensors"
        self.fails("no tensor is called nothing", address, target, "--tensor", "nothing")
        self.fails("do not divide by 3", address, target, "--tp", "0/3")
        self.fails("RANK/SIZE", address, target, "--tp", "3/3", status=2)
        self.fails("has no columns", address, target, "--tp", "0/2", "--columns", "*norm*")
        self.assertFalse(target.exists())

    def test_no_room(self):
        big = self.model / "big.bin"
        big.touch()
        os.truncate(big, 1 << 24)
        _, address = self.serve()
        if os.geteuid() != 0:
            self.skipTest("a small file system needs root")
        small = self.folder / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", small])
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted")
        try:
            self.fails("no room for 16.1 MiB", address, small / "copy")
            os.truncate(big, 5 << 20)
            (self.model / "more.bin").write_bytes(bytes(5 << 20))
            _, address = self.serve()  # each file fits, both do not
            self.fails("no room for 10.1 MiB", address, small / "copy")
            self.assertEqual(list((small / "copy").iterdir()), [])
        finally:
            subprocess.run(["umount", small], check=True)

    def test_targets_that_cannot_be_written(self):
        _, address = self.serve()
        (self.folder / "copy" / "a.safetensors").mkdir(parents=True)
        self.fails("is no regular file", address, self.folder / "copy")
        (self.folder / "file").touch()
        self.fails("file/below: Not a directory", address, self.folder / "file" / "below")

    def test_few_descriptors_and_short_files(self):
        for number in range(80):
            (self.model / f"{number}.bin").write_bytes(bytes([number]) * 100)
        _, address = self.serve()
        limited = ["prlimit", "--nofile=64:512"]
        done = subprocess.run([*limited, VERBENA, "model", "fetch", address, self.folder / "copy",
                               "--address", harness.ADDRESS], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assert_same(self.folder / "copy")
        done = subprocess.run(["prlimit", "--fsize=50", VERBENA, "model", "fetch", address,
                               self.folder / "other", "--address", harness.ADDRESS],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("File too large", done.stdout)

    def test_a_source_that_is_stopped(self):
        (self.model / "b.bin").write_bytes(random.Random(4).randbytes(64 * MIB))
        server, address = self.serve(None, "--chunk", "64K")
        target = self.folder / "copy"
        fetch = self.start("fetch", address, target, "--in-flight", "1", "--timeout", "2",
                           "--fault", "rate limit=400Mbit")
        harness.wait_until(lambda: (target / "b.bin.part").exists(), 20, "the fetch begins")
        server.send_signal(signal.SIGSTOP)
        try:
            output = fetch.communicate(timeout=40)[0]
        finally:
            server.send_signal(signal.SIGCONT)
        self.assertEqual(fetch.returncode, 1, output)
        self.assertTrue(output.splitlines()[-1].startswith("verbena: "), output)
        self.assertFalse((target / "b.bin").exists())

    def test_other_models_and_no_models(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "x").write_text("x")
        _, one = self.serve()
        _, two = self.serve(other)
        self.fails("another model", f"{one},{two}", self.folder / "copy")
        self.fails("127.0.0.1:1", "127.0.0.1:1", self.folder / "copy")
        self.fails("not HOST:PORT", "nowhere", self.folder / "copy")

    def test_two_fetchers_of_one_target(self):
        _, address = self.serve()
        target = self.folder / "copy"
        stays = self.start("fetch", address, target, "--stay")
        stays.stdout.readline()
        held = target / "b.safetensors.part"
        with open(held, "w") as file:

            fcntl.flock(file, fcntl.LOCK_EX)
            _, single = self.serve(self.model / "a.safetensors")
            self.fails("another process", single, target / "b.safetensors")

    def test_addresses_to_listen_at(self):
        _, address = self.serve(None, "--listen", "[::1]:0")
        self.assertTrue(address.startswith("[::1]:"), address)
        self.assertIn("fetched", self.fetch(address, self.folder / "copy"))
        for wrong in "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:7000x", "127.0.0.1":
            done = self.verbena("serve", self.model, "--listen", wrong)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(f"'{wrong}' is not HOST:PORT", done.stdout)

    def test_iwarp_and_roce_do_not_mix(self):
        _, address = self.serve(None, "--link", "iwarp")
        self.fails("iWARP", address, self.folder / "copy")

    def test_wrong_usage(self):
        for needle, arguments in {"needs one folder": ["serve"],
                                  "needs a source": ["fetch", "x"],
                                  "unexpected argument": ["serve", "x", "--fly"],
                                  "--chunk": ["serve", "x", "--chunk", "3"],
                                  "nothing to serve": ["fetch", "x", "y", "--stay", "--no-serve"],
                                  "which is missing": ["fetch", "x", "y", "--rows", "*"],
                                  "a command is needed": ["fly"]}.items():
            with self.subTest(arguments):
                done = self.verbena(*arguments)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(needle, done.stdout)
        self.assertIn("SYNOPSIS", self.verbena("--help").stdout)
        done = self.verbena("serve", self.folder / "nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No such file", done.stdout)


if __name__ == "__main__":
    harness.main()
