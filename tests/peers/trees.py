"""The trees of other projects that ./dev peers runs, as one table.

A tree is recognized by files that only it has. Commands are lists of words; {source} is a copy of the
tree, {build} an empty folder at first, {jobs} how many compilers may run, {python} Debian's Python,
{here} this folder.
"""

import dataclasses
import typing

import outputs

PYTHON = "/usr/bin/python3"


@dataclasses.dataclass(frozen=True)
class Tree:
    name: str
    what: str
    marks: tuple          # files of the tree that tell which one it is
    needs: tuple          # what the build needs: commands, headers (patterns), module:PYTHON_MODULE
    build: tuple          # commands, in order
    tests: tuple          # commands, each under `verbena run`
    read: typing.Callable  # output of the tests -> outputs.Score
    made: str             # a file that a finished build has
    environment: dict = dataclasses.field(default_factory=dict)
    limit_s: int = 1800   # of each command of `tests`
    alone: bool = False   # the tests run in namespaces of their own, on an interface that is no loopback
    known: dict = dataclasses.field(default_factory=dict)  # regular expression of names: the reason
    # Regular expression of the log of a build that failed: what the machine or the tree lacks.
    lacks: dict = dataclasses.field(default_factory=dict)


AUTOTOOLS = ("autoconf", "automake", "libtoolize", "make", "g++")
CMAKE = ("cmake", "ninja", "g++")


def cmake(*options, folder="{source}", build="{build}"):
    return ("cmake", "-G", "Ninja", "-S", folder, "-B", build, *options)


def ninja(*targets, build="{build}"):
    return ("ninja", "-C", build, "-j", "{jobs}", *targets)


def make(*targets, folder="{build}"):
    """Replaces the flags of the Makefile, where a configure script adds -O3 to the given ones."""
    return ("make", "-C", folder, "-j", "{jobs}", "CFLAGS=-O1 -std=gnu11", "CXXFLAGS=-O1", *targets)


def in_folder(folder, command):
    return ("sh", "-c", f'cd "{folder}" && {command}')


TREES = (
    Tree("rdma-core", "the tests of pyverbs",
         marks=("pyverbs/CMakeLists.txt", "tests/run_tests.py", "librdmacm/rsocket.c"),
         needs=(*CMAKE, "module:Cython", "python3*/Python.h", "libnl3/netlink/netlink.h"),
         build=(cmake("-DNO_MAN_PAGES=1", "-DENABLE_STATIC=0", "-DCMAKE_BUILD_TYPE=Debug",
                      "-DPYTHON_EXECUTABLE={python}"),
                ninja("pyverbs/all")),
         made="python/pyverbs",
         tests=(("{python}", "-B", "{source}/tests/run_tests.py", "-v", "--dev", "verbena0",
                 "--gid", "3"),),
         # The tests of rdma_cm bind to the first address of the device's interface.
         environment={"PYTHONPATH": "{build}/python", "VERBENA_ADDRESS": "127.0.0.1"},
         read=outputs.unittest),
    Tree("ucx", "gtest of the transports over verbs and rdma_cm",
         marks=("src/uct/ib/rc/verbs/rc_verbs_iface.c", "test/gtest/Makefile.am"),
         needs=(*AUTOTOOLS, "infiniband/verbs.h", "rdma/rdma_cma.h", "unshare", "ip"),
         alone=True,  # its tests of rdma_cm listen at the first address of each interface
         build=(in_folder("{source}", "./autogen.sh"),
                in_folder("{build}", '"{source}/configure" --enable-gtest --with-verbs --with-rdmacm'
                          " --without-java --without-go --disable-doxygen-doc"),
                ("make", "-C", "{build}", "-j", "{jobs}"),
                ("make", "-C", "{build}/test/gtest", "-j", "{jobs}", "gtest")),
         made="test/gtest/gtest",
         tests=(("{build}/test/gtest/gtest", "--gtest_filter=rc_v*:rcv*:ud_v*:udv*:rc/*:ud/*"
                ":rc_ud/*:rc_no_ud/*:ib/*:*rdmacm*:all/*sockaddr*"),),
         environment={"UCX_NET_DEVICES": "verbena0:1", "GTEST_SHARD_INDEX": "0",
                      "GTEST_TOTAL_SHARDS": "1"},
         known={r"uct_flush_test\.put_.copy_flush_ep_remote": "UCX has remote flushes for mlx5 only",
                r"test_md\.sys_device": "UCX finds a system device by PCI, which a software device lacks"},
         read=outputs.gtest, limit_s=3600),
    Tree("libfabric", "fabtests (quick) over the verbs provider",
         marks=("prov/verbs/src/verbs_ep.c", "fabtests/scripts/runfabtests.sh"),
         needs=(*AUTOTOOLS, "infiniband/verbs.h", "rdma/rdma_cma.h", "python", "unshare", "ip"),
         build=(in_folder("{source}", "./autogen.sh"),
                in_folder("{build}", '"{source}/configure" --prefix="{build}/prefix" --enable-verbs'),
                ("make", "-C", "{build}", "-j", "{jobs}", "install"),
                in_folder("{source}/fabtests", "./autogen.sh"),
                in_folder("{source}/fabtests", './configure --prefix="{build}/prefix"'
                          ' --with-libfabric="{build}/prefix"'),
                ("make", "-C", "{source}/fabtests", "-j", "{jobs}", "install")),
         made="prefix/bin/runfabtests.sh",
         # The provider takes no loopback interface. The script ends, after each test, every process
         # whose name begins with fi_; it starts ssh where the addresses are not options.
         alone=True,
         tests=(("{build}/prefix/bin/runfabtests.sh", "-t", "quick", "-T", "60", "-p",
                 "{build}/prefix/bin", "-s", "{address}", "-c", "{address}", "verbs"),),
         environment={"LD_LIBRARY_PATH": "{build}/prefix/lib"},
         read=outputs.fabtests, limit_s=3600),
    Tree("brpc", "the unit tests of its RDMA endpoint",
         marks=("src/brpc/rdma/rdma_endpoint.cpp", "test/brpc_rdma_unittest.cpp"),
         needs=(*CMAKE, "protoc", "google/protobuf/compiler/plugin.h", "gflags/gflags.h",
                "leveldb/db.h", "openssl/ssl.h", "/usr/src/googletest/CMakeLists.txt",
                "infiniband/verbs.h"),
         build=(cmake("-DWITH_RDMA=ON", "-DBUILD_UNIT_TESTS=ON", "-DDOWNLOAD_GTEST=OFF",
                      "-DBRPC_SYSTEM_GTEST_SOURCE_DIR=/usr/src/googletest",
                      "-DBUILD_BRPC_TOOLS=OFF", "-DCMAKE_BUILD_TYPE=Release",
                      "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -g0"),
                ninja("brpc-static"),
                # An example, for ./dev bench: first, as the unit tests of some trees do not compile.
                cmake("-DBRPC_INCLUDE_PATH={build}/output/include",
                      "-DBRPC_LIB={build}/output/lib/libbrpc.a", "-DCMAKE_CXX_FLAGS=-I{build}",
                      folder="{source}/example/rdma_performance", build="{build}/rdma_performance"),
                ninja(build="{build}/rdma_performance"),
                ninja("brpc_rdma_unittest")),
         lacks={r"ServerOptions.* has no member named .use_rdma":
                    "its RDMA unit test names members that brpc 1.17.0 has renamed, and later trees"
                    " do not"},
         made="test/brpc_rdma_unittest",
         tests=(("{build}/test/brpc_rdma_unittest", "--rdma_test_enable"),),
         read=outputs.gtest),
    Tree("gloo", "its collectives",
         marks=("gloo/transport/ibverbs/pair.cc", "gloo/test/CMakeLists.txt"),
         needs=(*CMAKE, "infiniband/verbs.h", "gtest/gtest.h"),
         # Its tests do not set the index of the GID.
         build=(cmake("-DUSE_IBVERBS=ON", "-DBUILD_TEST=ON",
                      "-DCMAKE_CXX_FLAGS=-ftrivial-auto-var-init=zero"), ninja("gloo_test")),
         made="gloo/test/gloo_test",
         tests=(("{build}/gloo/test/gloo_test",),),
         read=outputs.gtest),
    Tree("ucc", "gtest over UCX's transports of verbs",
         marks=("src/components/tl/ucp/tl_ucp.c", "test/gtest/Makefile.am"),
         needs=(*AUTOTOOLS, "ucp/api/ucp.h"),
         build=(in_folder("{source}", "./autogen.sh"),
                in_folder("{build}", '"{source}/configure" --enable-gtest --with-ucx=/usr'
                          " --with-tls=ucp"),
                make(), make("gtest", folder="{build}/test/gtest")),
         made="test/gtest/gtest",
         tests=(("{build}/test/gtest/gtest",),),
         environment={"UCX_TLS": "rc,self", "UCX_NET_DEVICES": "verbena0:1", "UCC_TLS": "ucp"},
         read=outputs.gtest, limit_s=3600),
    Tree("mooncake", "the transfer engine's RDMA tests",
         marks=("mooncake-transfer-engine/tests/rdma_loopback_test.cpp",
                "mooncake-transfer-engine/tests/CMakeLists.txt"),
         needs=(*CMAKE, "glog/logging.h", "gflags/gflags.h", "jsoncpp/json/json.h",
                "/usr/include/numa.h", "gtest/gtest.h", "infiniband/verbs.h", "asio/version.hpp"),
         # Its metrics need yalantinglibs, and its TCP transport Asio alone, for ./dev bench.
         build=(cmake("-DBUILD_UNIT_TESTS=ON", "-DBUILD_EXAMPLES=ON", "-DUSE_HTTP=OFF",
                      "-DUSE_TCP=ON", "-DCMAKE_CXX_FLAGS=-I{here}/mooncake", "-DWITH_METRICS=OFF",
                      "-DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest",
                      folder="{source}/mooncake-transfer-engine"),
                ninja("rdma_loopback_test", "rdma_transport_test2", "transfer_engine_bench")),
         lacks={r"yalantinglibs": "it needs yalantinglibs, which Debian 12 does not have; cfbb87660"
                                  " (May 2025) is the last commit that builds without it"},
         made="tests/rdma_loopback_test",
         tests=(("{build}/tests/rdma_loopback_test", "--metadata_server=P2PHANDSHAKE"),
                ("{build}/tests/rdma_transport_test2", "--metadata_server=P2PHANDSHAKE",
                 "--local_server_name={address}:17811", "--segment_id={address}:17811",
                 "--device_name=verbena0")),
         environment={"MC_GID_INDEX": "3"},
         read=outputs.gtest),
)


def recognize(folder):
    """Returns the entry of the table that the folder is a tree of, or None."""
    return next((tree for tree in TREES if all((folder / mark).exists() for mark in tree.marks)), None)


def by_name(name):
    return next((tree for tree in TREES if tree.name == name.lower()), None)
