#!/usr/bin/env python3
"""Proves that check_barrier.py finds functions that an exception could leave."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_barrier

HANDLER = "} catch (...) {\n  return refuse(errno_of_exception());\n}\n"


class Barrier(unittest.TestCase):
    def abi(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        abi = pathlib.Path(folder.name)
        for name in check_barrier.FOLDERS:
            (abi / name).mkdir()
        (abi / "libibverbs.map").write_text("IBVERBS_1.0 {\n  global:\n    ibv_do_it;\n};\n")
        for name in check_barrier.MAPS[1:]:
            (abi / name).write_text("")
        (abi / "ibverbs" / "it.cc").write_text(text)
        return abi

    def exports(self, text):
        return list(check_barrier.unguarded_exports(self.abi(text)))

    def test_a_plain_function_is_found(self):
        self.assertEqual(self.exports("int ibv_do_it(int what) {\n  return g(what);\n}\n"),
                         ["it.cc: ibv_do_it: an exception could leave it"])

    def test_a_function_try_block_or_noexcept_is_right(self):
        for text in ("int ibv_do_it(int what) try {\n  return g(what);\n" + HANDLER,
                     "void* ibv_do_it(int a,\n                int b) try {\n  return g();\n" + HANDLER,
                     "int ibv_do_it() noexcept { return 0; }\n"):
            self.assertEqual(self.exports(text), [], text)

    def test_an_export_without_a_definition_is_found(self):
        self.assertEqual(self.exports(""), ["ibv_do_it: no definition found"])

    def test_table_entries(self):
        for entry, mistakes in (("ops.f = guarded<f>;", 0), ("ops.f = f;", 1),
                                ("qp.wr_f = f;", 1), ("cq.read_f = f;", 1),
                                ("cq.start_poll = f;", 1), ("cq.wr_id = cq.current.wr_id;", 0)):
            abi = self.abi(f"int f() {{ return 0; }}\nvoid fill() {{\n  {entry}\n}}\n")
            self.assertEqual(len(list(check_barrier.unguarded_table_entries(abi))), mistakes, entry)


if __name__ == "__main__":
    unittest.main()
