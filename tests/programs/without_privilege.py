"""Runs a command as a container engine does by default: no capability, no_new_privs, and a seccomp
filter that refuses, with EPERM, the calls that the default profiles of Docker and Podman refuse to a
process without capabilities. Options add process_vm_readv and process_vm_writev, which old kernels'
profiles refuse, too.

usage: without_privilege.py [--no-process-vm] COMMAND...
"""

import ctypes
import errno
import os
import struct
import sys

# x86-64 numbers of the calls.
REFUSED = {
    "ptrace": 101, "mount": 165, "umount2": 166, "swapon": 167, "reboot": 169, "init_module": 175,
    "setns": 308, "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304, "kcmp": 312,
    "finit_module": 313, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "add_key": 248, "request_key": 249, "keyctl": 250,
}
PROCESS_VM = {"process_vm_readv": 310, "process_vm_writev": 311}

PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECCOMP = 38, 24, 22
SECCOMP_MODE_FILTER = 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def filter_of(numbers):
    """A classic BPF program: each number jumps to the refusal at the end."""
    lines = [(LOAD, 0, 0, 0)]
    for left, number in zip(range(len(numbers), 0, -1), numbers):
        lines.append((JUMP_IF_EQUAL, left, 0, number))
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *line) for line in lines), len(lines)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_char_p)]


def main(arguments):
    refused = dict(REFUSED)
    if arguments[0] == "--no-process-vm":
        refused |= PROCESS_VM
        arguments = arguments[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    code, length = filter_of(list(refused.values()))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(length, code)), 0, 0) != 0:
        sys.exit(f"without_privilege: {os.strerror(ctypes.get_errno())}")
    os.execvp(arguments[0], arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
