#!/usr/bin/env python3
"""Checks that the layers hold.

  check_layers.py includes SRC          what each file under SRC includes
  check_layers.py symbols ARCHIVE...    what each sans-IO archive asks of the world (by nm)
  check_layers.py one CORE DRIVER...    whether all drivers run the code of that archive

A folder includes only folders above it in LAYERS; PEERS never include each other, nor do the
transports. The sans-IO layers have no clock, socket, thread or lock: no header that offers one, no
symbol that is one. No unit, which is a header together with its .cc, includes itself by way of
others. The simulated and the live device are one: each driver asks the archive CORE for its
functions, and has none of them itself. Prints a line for each violation; exits 1 if there is any,
2 on wrong usage.
"""

import graphlib
import os
import pathlib
import re
import subprocess
import sys

# Lowest first: a folder includes itself and what is above it here. A row of several: PEERS.
LAYERS = [
    ["base"],
    ["wire"],
    ["memory"],
    ["congestion"],
    ["transport"],
    ["connect"],
    ["device"],
    ["faults"],
    ["explain"],
    ["check"],
    ["application"],
    ["host", "fabric", "collectives", "nvmf", "management", "transfer"],
    ["coll"],
    ["communicator"],
    ["perf", "torch", "verbs", "agent"],
    ["models"],
    ["jobs", "nvmf_program"],
    ["nbdkit"],
    ["live"],
    ["abi"],
    ["cli"],
]
SANS_IO = {"base", "wire", "memory", "congestion", "transport", "connect", "device", "faults",
           "explain", "check", "application", "management", "transfer"}
TRANSPORTS = {"rc", "uc", "ud", "iwarp", "local", "tcp"}

RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}

TEST_ENDINGS = ("_test.cc", "_for_test.h", "testing.h")  # what is in no product
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Headers that offer a clock, a thread, a lock, a file, a socket or hidden state. <atomic> is none,
# nor is <arpa/inet.h>: inet_ntop() and its like are pure.
FORBIDDEN_HEADER = re.compile(
    r"(barrier|chrono|condition_variable|execution|filesystem|fstream|future|iostream|latch|mutex"
    r"|random|semaphore|shared_mutex|stop_token|syncstream|thread"
    r"|c?(setjmp|signal|time)(\.h)?"
    r"|(dirent|dlfcn|fcntl|ifaddrs|netdb|poll|pthread|sched|semaphore|spawn|syslog|threads"
    r"|unistd)\.h"
    r"|(asm|infiniband|linux|net|netinet|netpacket|rdma|sys|spdlog)/.*)")

# C functions of the same kinds, by nm's name without `__` before and `_chk`, `64`, `_2` after.
FORBIDDEN_FUNCTION = re.compile(
    # clocks and sleeping
    r"clock|clock_.*|time|times|ftime|gettimeofday|timespec_get|(nano|u)?sleep|alarm|[gs]etitimer"
    r"|timer_.*|timerfd_.*"
    # threads, locks, processes
    r"|pthread_.*|thrd_.*|mtx_.*|cnd_.*|call_once|sem_.*|futex.*|syscall|v?fork|clone3?|exec[lv].*"
    r"|posix_spawn.*|wait|waitpid|kill|raise|sigaction|signal|sched_.*|cxa_guard_.*"
    # sockets and descriptors
    r"|socket|socketpair|bind|listen|connect|accept4?|shutdown|[gs]etsockopt|getsockname"
    r"|getpeername"
    r"|(send|recv)(to|from|m?msg)?|p?poll|p?select|epoll_.*|eventfd.*|signalfd|inotify_.*"
    r"|io_uring_.*"
    r"|open(at)?|creat|close|p?(read|write)v?2?|lseek|ioctl|fcntl|dup[23]?|pipe2?|p?splice|sendfile"
    r"|getaddrinfo|getifaddrs|if_nametoindex"
    # files and the rest of the system
    r"|fopen|fdopen|freopen|popen|system|f?stat(at|x)?|opendir|readdir|unlink|mkdir|rename"
    r"|mmap|munmap|mremap|mprotect|madvise|mlock|shm_.*|memfd_create|process_vm_.*|dlopen|dlv?sym"
    r"|(secure_)?getenv|setenv|s?rand(om)?(_r)?|[dejlmn]rand48|arc4random.*|getrandom|getentropy")

# C++ names, demangled.
FORBIDDEN_CXX = re.compile(
    r"std::(__\w+::|_V2::|chrono::|this_thread::)*"
    r"(thread|jthread|(\w+_)?mutex|condition_variable\w*|random_device|system_clock|steady_clock"
    r"|high_resolution_clock|basic_(i|o)?fstream|basic_filebuf|filesystem|cin|cout|cerr|clog"
    r"|ios_base::Init|__atomic_futex\w*|__future_base|sleep_for|sleep_until|__sleep_for|call_once"
    r"|__once_\w+|__notify_\w+)\b")


def includes_of(path):
    """(line number, '<' or '"', name) of each include in the file."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def transport_of(parts):
    """('transport', 'rc', ...) -> 'rc'; None outside of the transports' folders."""
    if len(parts) > 2 and parts[0] == "transport" and parts[1] in TRANSPORTS:
        return parts[1]
    return None


def refusal(includer, bracket, name):
    """Why the file `includer` (parts of its path below src/) may not include `name`, or None."""
    folder = includer[0]
    is_test = includer[-1].endswith(TEST_ENDINGS)
    target = tuple(name.split("/"))

    if bracket == "<" and (target[0] not in RANK or len(target) == 1):  # <memory> is no layer
        if folder in SANS_IO and not is_test and FORBIDDEN_HEADER.fullmatch(name):
            return "a sans-IO layer has no clock, socket, thread, lock or file"
        return None
    if target[0] == "tests":
        return None if is_test else "only a test includes tests/"
    if target[0] not in RANK or ".." in target:
        return f'write the path from src/, as in "{folder}/..."'
    if target[0] == folder:
        mine, theirs = transport_of(includer), transport_of(target)
        if mine and theirs and mine != theirs:
            return f"transport/{mine} and transport/{theirs} never include each other"
        return None
    if RANK[target[0]] == RANK[folder]:
        return f"{folder} and {target[0]} never include each other"
    if RANK[target[0]] > RANK[folder]:
        return f"{target[0]} is below {folder} in the table of layers"
    return None


def check_includes(src):
    """Violations in the tree `src`, one line of text each, and the number of files read."""
    violations = []
    files = sorted(p for p in src.rglob("*") if p.suffix in {".h", ".cc"})
    for path in files:
        parts = path.relative_to(src).parts
        where = "src/" + "/".join(parts)
        if parts[0] not in RANK:
            violations.append(f"{where}: {parts[0]} is not in the table of layers (LAYERS, here)")
            continue
        for number, bracket, name in includes_of(path):
            if why := refusal(parts, bracket, name):
                violations.append(f"{where}:{number}: includes {name}: {why}")
    return violations, len(files)


def unit_of(name):
    """A header and its .cc are one unit: "device/qp/queue_pair"."""
    return name.rsplit(".", 1)[0]


def check_cycles(src):
    """Violations: the units, tests aside, that include each other; one line for each cycle."""
    files = [p for p in src.rglob("*")
             if p.suffix in {".h", ".cc"} and not p.name.endswith(TEST_ENDINGS)]
    graph = {unit_of(p.relative_to(src).as_posix()): set() for p in files}
    for path in files:
        unit = unit_of(path.relative_to(src).as_posix())
        included = {unit_of(name) for _, _, name in includes_of(path)}
        graph[unit] |= (included & graph.keys()) - {unit}
    violations = []
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
            return violations
        except graphlib.CycleError as error:
            cycle = error.args[1]
            violations.append("includes go round: " + " <- ".join(cycle))
            graph[cycle[1]].discard(cycle[0])


def is_forbidden_symbol(symbol):
    """`symbol` as `nm -C` prints it."""
    plain = symbol.split("@")[0]
    if re.fullmatch(r"\w+", plain):
        core = re.sub(r"^_+", "", plain)
        return any(FORBIDDEN_FUNCTION.fullmatch(re.sub(suffix, "", core))
                   for suffix in ("", r"_chk$", r"_2$", r"64(_2|_chk)?$", r"64_time64$"))
    # At the start, or after the words nm puts before it ("vtable for std::thread::_State").
    return re.match(r"((guard variable|typeinfo|typeinfo name|vtable|VTT) for )?(\w+ )?"
                    + FORBIDDEN_CXX.pattern, plain) is not None


def check_nm_output(archive, text):
    """Violations in what `nm -C --undefined-only ARCHIVE` printed."""
    violations, member = [], "?"
    for line in text.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif match := re.match(r"\s+[Uwv] (.+)$", line):
            if is_forbidden_symbol(match[1]):
                violations.append(f"{archive.name}({member}): needs {match[1]}: "
                                  "a sans-IO layer has no clock, socket, thread, lock or file")
    return violations


def check_archives(archives):
    violations = []
    for archive in archives:
        nm = subprocess.run(["nm", "-C", "--undefined-only", str(archive)],
                            check=True, capture_output=True, text=True)
        violations += check_nm_output(archive, nm.stdout)
    return violations


def functions_of(archive, *options):
    """Demangled names of the functions that `nm OPTIONS` tells of, but for inline ones."""
    nm = subprocess.run(["nm", "-C", *options, str(archive)], check=True, capture_output=True,
                        text=True)
    return {match[1] for match in re.finditer(r"^[0-9a-f ]* [TU] (.+)$", nm.stdout, re.MULTILINE)}


def check_drivers(core, drivers):
    offered = functions_of(core, "--defined-only")
    violations = []
    for driver in drivers:
        violations += [f"{driver.name}: has its own {name}, which {core.name} has"
                       for name in sorted(functions_of(driver, "--defined-only") & offered)]
        if not functions_of(driver, "--undefined-only") & offered:
            violations.append(f"{driver.name}: asks {core.name} for nothing")
    return violations


def main(arguments):
    match arguments:
        case ["includes", src] if pathlib.Path(src).is_dir():
            violations, count = check_includes(pathlib.Path(src))
            violations += check_cycles(pathlib.Path(src))
            what = f"includes of {count} files"
        case ["symbols", *archives] if archives and all(map(os.path.isfile, archives)):
            violations = check_archives([pathlib.Path(a) for a in archives])
            what = f"symbols of {len(archives)} archives"
        case ["one", core, *drivers] if drivers and all(map(os.path.isfile, [core, *drivers])):
            violations = check_drivers(pathlib.Path(core), [pathlib.Path(d) for d in drivers])
            what = f"{len(drivers)} drivers of {pathlib.Path(core).name}"
        case _:
            print(__doc__.strip(), file=sys.stderr)
            return 2
    for violation in violations:
        print(violation)
    print(f"layers: {what}: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
