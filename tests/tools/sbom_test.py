#!/usr/bin/env python3
"""The bill of materials: SPDX 2.3, each product with its hash, each reference to something that is
there, and the same bytes each time.

usage: sbom_test.py [BUILD_DIR]
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "programs"))
import testing  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/test").resolve()


def written():
    return subprocess.run([sys.executable, ROOT / "packaging/sbom.py", BUILD], capture_output=True, text=True,
                          check=True, timeout=300, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}).stdout


@unittest.skipUnless(shutil.which("dpkg-query"), "not a Debian system")
class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "lib/libibverbs.so.1").exists():
            raise unittest.SkipTest("the libraries are not built")
        cls.text = written()
        cls.document = json.loads(cls.text)

    def test_the_same_files_give_the_same_bytes(self):
        self.assertEqual(written(), self.text)
        self.assertEqual(self.document["creationInfo"]["created"], "2023-11-14T22:13:20Z")

    def test_each_product_has_its_hash(self):
        hashes = {each["fileName"]: each["checksums"][0]["checksumValue"] for each in self.document["files"]}
        for name in ("bin/verbena", "lib/libibverbs.so.1", "lib/librdmacm.so.1",
                     "python/verbena_transfer/__init__.py"):
            content = (BUILD / name).read_bytes()
            self.assertEqual(hashes[f"./{name}"], hashlib.sha256(content).hexdigest())

    def test_references_name_elements(self):
        elements = {each["SPDXID"] for kind in ("packages", "files") for each in self.document[kind]}
        self.assertEqual(len(elements), len(self.document["packages"]) + len(self.document["files"]))
        elements.add("SPDXRef-DOCUMENT")
        for each in self.document["relationships"]:
            self.assertLessEqual({each["spdxElementId"], each["relatedSpdxElement"]}, elements)

    def test_libraries_have_versions(self):
        versions = {each["name"]: each["versionInfo"] for each in self.document["packages"]}
        self.assertTrue(any(name.startswith("libisal") for name in versions), versions)
        self.assertIn("libc6", versions)
        self.assertTrue(all(versions.values()))

    def test_what_is_compiled_in_is_listed(self):
        """nlohmann's headers, and the C++ library, which libibverbs.so.1 does not load."""
        linked = {each["relatedSpdxElement"] for each in self.document["relationships"]
                  if each["relationshipType"] == "STATIC_LINK"}
        self.assertIn("SPDXRef-Package-nlohmann-json3-dev", linked)
        self.assertTrue([each for each in linked if "Package-libstdc" in each], linked)


if __name__ == "__main__":
    testing.main(argv=sys.argv[:1])
