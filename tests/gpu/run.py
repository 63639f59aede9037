#!/usr/bin/env python3
"""What needs a GPU of CUDA, on a machine that has one: ./dev gpu.

  run.py BUILD [--driver FILE] [--sizes SIZE,...]

Prints the card and its driver; `verbena bench gpu-paths` for each size, which also compares the bytes
that arrive; and NCCL's all-reduce, between two ranks on Verbena's device with GPUDirect and over
NCCL's own sockets, if all_reduce_perf of nccl-tests is in PATH. Exits 77 without a driver. --driver
names another library, as the stand-in of tests/standin/, whose results are no GPU's.
"""

import argparse
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77  # as Automake has it
NCCL = ["all_reduce_perf", "-b", "8", "-e", "64M", "-f", "8", "-g", "1"]


def driver_of(name):
    """The device's name and the driver's version; None without either."""
    try:
        cuda = ctypes.CDLL(name)
        device, version = ctypes.c_int(), ctypes.c_int()
        text = ctypes.create_string_buffer(256)
        if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
            return None
        cuda.cuDeviceGetName(text, 255, device)
        cuda.cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return f"{text.value.decode()}, CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def gpu_paths(build, driver, size):
    command = [build / "bin/verbena", "bench", "gpu-paths", "--driver", driver, "--size", size]
    return subprocess.run(command, check=False).returncode == 0


def nccl(build, over):
    """Two ranks on one GPU by different NCCL_HOSTIDs, where NCCL permits it."""
    environment = os.environ | {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
    if over == "sockets":
        environment["NCCL_IB_DISABLE"] = "1"
    else:
        environment["NCCL_NET_GDR_LEVEL"] = "SYS"
    ranks = [part for rank in range(2) for part in
             ([":"] if rank else []) + ["-n", "1", "env", f"NCCL_HOSTID=rank{rank}", *NCCL]]
    command = ["mpirun", "--oversubscribe", *ranks]
    if over != "sockets":
        command = [build / "bin/verbena", "run", "--", *command]
    print(f"\nNCCL's all-reduce over {over}:", flush=True)
    return subprocess.run(command, env=environment, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", default="libcuda.so.1")
    parser.add_argument("--sizes", default="4K,64K,1M,16M")
    arguments = parser.parse_args()
    device = driver_of(arguments.driver)
    if device is None:
        print(f"gpu: there is no CUDA driver or no GPU here ({arguments.driver})", file=sys.stderr)
        return SKIPPED
    print(f"Card and driver: {device}\n", flush=True)
    well = all([gpu_paths(arguments.build, arguments.driver, size)
                for size in arguments.sizes.split(",")])
    if arguments.driver == "libcuda.so.1" and shutil.which(NCCL[0]) and shutil.which("mpirun"):
        well &= all([nccl(arguments.build, over) for over in ("Verbena's device", "sockets")])
    else:
        print("\nNCCL's all-reduce has not run: it needs a GPU, all_reduce_perf and mpirun.")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
