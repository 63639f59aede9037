#!/usr/bin/env python3
"""Encrypted iWARP in a kernel that has kTLS (CONFIG_TLS), which the machine's own may not have: two programs
in a small guest (tests/lab), before and after its module tls is loaded. /proc/net/tls_stat says who encrypts.

usage: ktls.py [BUILD_DIR]

The exit status is 77 where a guest cannot run (run.py says what it needs).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import run

TIME_LIMIT_S = 300
LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1")
SCRIPT = r"""
cp /host/key /tmp/key && chmod 600 /tmp/key
export LD_LIBRARY_PATH=/host VERBENA_LINK=iwarp VERBENA_ADDRESS=127.0.0.21 VERBENA_LOCAL=off
export VERBENA_ENCRYPTION=psk:/tmp/key
pair() {
  timeout 60 rping -s -a 127.0.0.21 -C 20 -V > /dev/null &
  for i in $(seq 60); do grep -q ":1C06 " /proc/net/tcp && break; sleep 0.5; done
  timeout 60 rping -c -a 127.0.0.21 -C 20 -V > /dev/null || exit 1
  wait $! || exit 1
  echo "$1 passed"
}
pair process
modprobe tls || exit 1
pair kernel
cat /proc/net/tls_stat
"""


def needed_by(library):
    """What it links beyond the guest's C library."""
    listed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return [path for path in re.findall(r"=> (/\S+)", listed)
            if not re.search(r"/(libc|libm|libgcc_s|libstdc\+\+|libpthread|libdl)\.so", path)]


def counted(name, text):
    found = re.search(rf"\b{name}\s+(\d+)", text)
    return int(found.group(1)) if found else 0


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release").resolve()
    if reason := run.why_not():
        print(f"skipped: {reason}")
        return run.SKIPPED
    with tempfile.TemporaryDirectory(prefix="verbena-ktls-") as name:
        folder = pathlib.Path(name)
        for library in LIBRARIES:
            shutil.copy(build / "lib" / library, folder)
            for path in needed_by(build / "lib" / library):
                shutil.copy(path, folder)
        (folder / "key").write_text("a key that both ends have\n")
        (folder / "go.sh").write_text(SCRIPT)
        command = [run.LAB / "guest-run", "--rdma", "none", "--mem", "512", "--share", folder, "--time-limit",
                   TIME_LIMIT_S, "--guest", "bash /host/go.sh"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              check=False)
    text = done.stdout
    # Two connections of the two programs: each end sends and receives by the kernel.
    passed = (done.returncode == 0 and "process passed" in text and "kernel passed" in text and
              counted("TlsTxSw", text) >= 2 and counted("TlsDecryptError", text) == 0)
    print(text if not passed else f"ok: the kernel encrypts {counted('TlsTxSw', text)} and decrypts "
          f"{counted('TlsRxSw', text)} directions of connections")
    print(done.stderr if not passed else "", end="")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
