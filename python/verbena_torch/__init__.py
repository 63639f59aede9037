"""torch.distributed's backend "verbena": import this, then init_process_group("verbena").

The backend needs a libibverbs. Under `verbena run`, or on a host with an RDMA card, that is the one
that the loader finds; else this module loads Verbena's own, which needs nothing.
"""

import ctypes
import os
import pathlib

import torch
import torch.distributed as dist

_HERE = pathlib.Path(__file__).resolve().parent


def _has_device():
    """Whether the loader's own libibverbs has something to offer."""
    if os.environ.get("VERBENA_FILES"):
        return True
    try:
        return bool(os.listdir("/sys/class/infiniband"))
    except OSError:
        return False


def _verbena_libraries():
    """Verbena's libibverbs.so.1 and librdmacm.so.1: of a build tree, or where it is installed."""
    places = [_HERE.parent.parent / "lib"]
    places += [parent / "lib" / folder / "verbena" for parent in _HERE.parents
               for folder in ("", "x86_64-linux-gnu")]
    for place in places:
        if (place / "libibverbs.so.1").exists():
            return place / "libibverbs.so.1", place / "librdmacm.so.1"
    return ()


def _load_libraries():
    if _has_device():
        return
    for library in _verbena_libraries():
        try:
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            # PyTorch has loaded the system's libibverbs, which Verbena's librdmacm cannot use. The
            # system's librdmacm takes its place: RoCE and InfiniBand need no rdma_cm.
            ctypes.CDLL(library.name, mode=ctypes.RTLD_GLOBAL)


_load_libraries()
from verbena_torch import _backend  # noqa: E402  (its libraries are loaded now)


def _register():
    if hasattr(dist.Backend, "VERBENA"):
        return
    if int(torch.__version__.split(".")[0]) >= 2:
        dist.Backend.register_backend("verbena", _backend.create, devices=["cpu", "cuda"])
    else:
        dist.Backend.register_backend("verbena", _backend.create)


_register()
_monitored_barrier = dist.monitored_barrier


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch's own refuses every backend but gloo; this one knows "verbena", too."""
    if dist.distributed_c10d._rank_not_in_group(group):
        return  # as torch's own: it is no member that others wait for
    if str(dist.get_backend(group)).lower() != "verbena":
        return _monitored_barrier(group, timeout, wait_all_ranks)
    if timeout is None:
        timeout = dist.distributed_c10d.default_pg_timeout
    chosen = group if group is not None and group is not dist.GroupMember.WORLD \
        else dist.distributed_c10d._get_default_group()
    return chosen.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


dist.monitored_barrier = monitored_barrier
dist.distributed_c10d.monitored_barrier = monitored_barrier
