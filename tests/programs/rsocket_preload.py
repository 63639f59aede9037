"""Debian's librspreload, which makes rsockets of a program's TCP sockets."""

import pathlib

PRELOAD = pathlib.Path("/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so")


def preloaded(*command):
    return "env", f"LD_PRELOAD={PRELOAD}", *command
