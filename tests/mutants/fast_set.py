"""How each test of the fast set is built and run: the one table that run.py uses.

A test is what ctest lists under that name, with its shards and variants (NAME, NAME.*).
"""

import dataclasses

CORE = ("base", "wire", "memory", "congestion", "transport", "connect", "device")
SIMULATION = CORE + ("faults", "fabric", "collectives", "jobs")
LIVE = CORE + ("faults", "explain", "host")
PROGRAMS = LIVE + ("check", "abi", "cli")


@dataclasses.dataclass(frozen=True)
class Test:
    preset: str
    name: str
    target: str     # what to build for it
    layers: tuple   # whose mutants it may catch

    @property
    def key(self):
        return f"{self.preset}: {self.name}"


def unit_tests(preset):
    """Those of the layers, lowest first."""
    rows = [(f"{layer}_test", CORE[:CORE.index(layer) + 1]) for layer in CORE]
    rows += [("faults_test", CORE + ("faults",)),
             ("explain_test", CORE + ("faults", "explain")),
             ("check_test", CORE + ("faults", "check")),
             ("collectives_test", ("base", "collectives")),
             ("coll_test", ("base", "collectives", "coll")),
             ("management_test", CORE + ("management",)),
             ("perf_test", ("base", "collectives", "coll", "perf")),
             ("transfer_test", ("base", "transfer")),
             ("models_test", ("base", "transfer", "models")),
             ("fabric_test", CORE + ("faults", "fabric")),
             ("verbs_test", LIVE + ("abi", "application", "fabric", "nvmf", "verbs")),
             ("jobs_test", SIMULATION),
             ("host_test", LIVE),
             ("abi_unit_test", LIVE + ("abi",)),
             ("cli_test", SIMULATION + ("explain", "check", "host", "live", "cli"))]
    return [Test(preset, name, name, layers) for name, layers in rows]


def programs(name, layers):
    return Test("test", f"programs.{name}_test", "product", layers)


# In the order in which they are tried, where a mutant's own layer has none or passes.
FAST_SET = (
    unit_tests("test") +
    [Test("test", "sim_test", "sim_test", LIVE),
     Test("test", "live_coll_test", "live_coll_test", ("collectives", "coll", "communicator")),
     Test("test", "live_transfer_test", "live_transfer_test", ("transfer", "agent")),
     Test("test", "abi_test", "abi_test", LIVE + ("abi",)),
     Test("test", "rdmacm_test", "rdmacm_test", LIVE + ("abi",))] +
    [Test("test", f"fuzz_{name}", f"fuzz_{name}", layers) for name, layers in (
        ("packet", ("base", "wire")), ("cm", ("base", "wire", "connect")),
        ("iwarp", ("base", "wire")), ("device", CORE))] +
    [programs("cli", ("cli",)),
     programs("live_fabric", ("live", "fabric", "host")),
     programs("sim", SIMULATION + ("cli",)),
     programs("jobs", SIMULATION + ("cli",)),
     programs("stats", ("host", "cli")),
     programs("explain", LIVE + ("cli",)),
     programs("check", PROGRAMS),
     programs("pingpong", PROGRAMS),
     programs("rdmacm_programs", LIVE + ("abi",)),
     programs("rsocket_programs", LIVE + ("abi",)),
     programs("nvmf", ("application", "verbs", "nvmf", "nvmf_program")),
     programs("model", ("transfer", "agent", "models"))])

# The sanitizers' turn comes last: they are slow to build.
SANITIZED = unit_tests("dev") + [Test("dev", "sim_test", "sim_test", LIVE)]


def tests_for(mutant, quick):
    """Returns the tests that the mutant meets: those it names, its layer's unit test, the others."""
    own = "abi_unit_test" if mutant.layer == "abi" else f"{mutant.layer}_test"
    first = (*mutant.first, own)
    tests = [test for test in FAST_SET if mutant.layer in test.layers]
    tests.sort(key=lambda test: first.index(test.name) if test.name in first else len(first))
    return tests + ([] if quick else [test for test in SANITIZED if mutant.layer in test.layers])
