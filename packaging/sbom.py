#!/usr/bin/env python3
"""Writes a software bill of materials, SPDX 2.3 as JSON: Verbena's programs and libraries with their
hashes, the shared libraries that they load, and the sources of others that are compiled into them,
each with the version of its Debian package. The same files give the same bytes.

usage: sbom.py BUILD_DIR [-o FILE]
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Packages whose headers or texts become part of our files; pybind11's only of verbena_torch.
HEADERS = ("libcli11-dev", "libexpected-dev", "nlohmann-json3-dev", "libjs-chart.js",
           "libspdlog-dev")
TORCH_HEADERS = ("pybind11-dev",)
LOADED_LATER = ("libssl3",)  # by dlopen(3), when a device encrypts


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})


def version_of_verbena():
    return re.search(r"project\(verbena VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def products(build):
    """The files that are installed: bin/verbena and the files of lib/ and python/, without links."""
    modules = sorted(path for pattern in ("*.py", "*.so")
                     for path in (build / "python").rglob(pattern))
    found = [build / "bin/verbena", *sorted((build / "lib").iterdir()), *modules]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def compiled_in(build):
    """The packages of others' sources that our files are made of, with the C++ library's archive,
    which the libraries for any program are linked with."""
    settings = (build / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)", settings, re.M).group(1)
    archive = os.path.realpath(run(compiler, "-print-file-name=libstdc++.a").stdout.strip())
    has_torch = (build / "python/verbena_torch/_backend.so").exists()
    return {*HEADERS, *(TORCH_HEADERS if has_torch else ()), *owners([archive]).values()}


def needed(path):
    """The paths of the libraries that a file loads, without our own."""
    listing = run("ldd", path).stdout
    return sorted(set(re.findall(r"=> (/\S+)", listing)))


def owners(libraries):
    """{library: Debian package}. A library may be known by its path with or without /usr, or by the file
    that its link leads to."""
    names = {name: library for library in libraries
             for name in (os.path.realpath(library), library.removeprefix("/usr"), library)}
    found = {}
    for line in run("dpkg-query", "-S", *sorted(names)).stdout.splitlines():
        package, _, path = line.partition(": ")
        if path in names:
            found[names[path]] = package.split(":")[0].split(",")[0]
    return found


def installed(packages):
    """{package: (package, source package, version)} of those that are installed."""
    lines = run("dpkg-query", "-W", "-f", "${Package} ${source:Package} ${Version}\n", *packages).stdout
    return {line.split()[0]: tuple(line.split()) for line in lines.splitlines() if len(line.split()) == 3}


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def identifier(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def created():
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", str(ROOT), "log", "-1", "--format=%ct").stdout
    moment = datetime.datetime.fromtimestamp(int(seconds.strip() or 0), datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def package(name, version, **more):
    return {"SPDXID": identifier(f"Package-{name}"), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"} | more


def debian_package(name, source, version):
    url = f"pkg:deb/debian/{name}@{version}"
    return package(name, version, supplier="Organization: Debian", sourceInfo=f"source package {source}",
                   externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": url}])


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(build):
    files = products(build)
    ours = {path.name for path in (build / "lib").iterdir()}
    hashes = {path: hash_of(path) for path in files}
    version, root = version_of_verbena(), identifier("Package-verbena")
    loaded = {path: [library for library in needed(path) if pathlib.Path(library).name not in ours]
              for path in files}
    owner = owners({library for each in loaded.values() for library in each})
    sources = compiled_in(build)
    packages = installed({*owner.values(), *sources, *LOADED_LATER})
    entries, relations = [], [relation("SPDXRef-DOCUMENT", "DESCRIBES", root)]
    for path in files:
        name = str(path.relative_to(build))
        entries.append({"SPDXID": identifier(f"File-{name}"), "fileName": f"./{name}",
                        "checksums": [{"algorithm": "SHA256", "checksumValue": hashes[path]}],
                        "licenseConcluded": "Apache-2.0", "copyrightText": "NOASSERTION"})
        relations.append(relation(root, "CONTAINS", entries[-1]["SPDXID"]))
        for library in loaded[path]:
            if owner.get(library) not in packages:
                print(f"sbom: no package has {library}", file=sys.stderr)
                continue
            relations.append(relation(entries[-1]["SPDXID"], "DYNAMIC_LINK",
                                      identifier(f"Package-{owner[library]}")))
    for name in sorted(packages.keys() & sources):
        relations.append(relation(root, "STATIC_LINK", identifier(f"Package-{name}")))
    for name in sorted(packages.keys() & {*LOADED_LATER}):
        relations.append(relation(identifier(f"Package-{name}"), "OPTIONAL_DEPENDENCY_OF", root))
    all_hashes = hashlib.sha256("".join(sorted(hashes.values())).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"verbena-{version}", "documentNamespace": f"https://verbena.invalid/sbom/{all_hashes}",
        "creationInfo": {"created": created(), "creators": ["Tool: verbena-sbom"]},
        "packages": [package("verbena", version, licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0"),
                     *(debian_package(*packages[name]) for name in sorted(packages))],
        "files": entries,
        "relationships": [json.loads(each) for each in dict.fromkeys(json.dumps(each) for each in relations)],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()
    if not (arguments.build / "bin/verbena").exists():
        sys.exit(f"sbom: there is no {arguments.build}/bin/verbena: ./dev build")
    text = json.dumps(document(arguments.build), indent=2) + "\n"
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
