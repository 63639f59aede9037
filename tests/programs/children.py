"""Starts programs that end when the test that started them ends, however it ends.

A test that a signal kills runs no cleanups. The kernel then kills its children, which would
otherwise keep ports and devices: PR_SET_PDEATHSIG of prctl(2). The setting survives execve(), so it
also holds behind commands that run another command: `verbena run`, nsenter, env. The program ends
with the *thread* that starts it; tests start programs in their main thread only.
"""

import ctypes
import os
import signal
import subprocess

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _ends_with(parent):
    """Returns what the child runs between fork() and execve()."""
    def before_exec():
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # which ended before prctl()
            os._exit(1)
    return before_exec


class Child(subprocess.Popen):
    """A subprocess.Popen that the kernel kills when this process ends."""

    def __init__(self, command, **options):
        super().__init__(command, preexec_fn=_ends_with(os.getpid()), **options)
