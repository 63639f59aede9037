"""Transfers between the memories of agents, by one-sided RDMA: libverbena-transfer.so from Python.

    from verbena_transfer import Agent
    agent = Agent("decode-0")
    cache = numpy.zeros((1024, 65536), numpy.uint8)      # or a torch tensor
    agent.register(cache)
    peer = agent.fetch_metadata("10.0.0.1:4000")
    agent.read([cache[3], cache[7]], [(address, 65536), (other, 65536)], peer).wait()

Memory is anything with a buffer that is contiguous (NumPy arrays, bytearrays, memoryviews), a torch
tensor, or a pair (address, length). A list of them is a descriptor list. Needs Python alone. The
library needs a libibverbs: run Python by `verbena run`, or on a host with an RDMA card.
"""

import ctypes
import os
import pathlib

__all__ = ["Agent", "Transfer", "TransferError", "KVLayout", "KVCache", "KVTable",
           "REMOTE_READ", "REMOTE_WRITE", "LOCAL_WRITE", "DONE", "IN_PROGRESS"]

_OK, _IN_PROGRESS, _NOT_FOUND, _NO_ROOM = 0, 1, 3, 7
DONE, IN_PROGRESS = "DONE", "PROC"  # what Transfer.state() returns, in NIXL's words
REMOTE_READ, REMOTE_WRITE, LOCAL_WRITE = 1, 2, 4
_READ, _WRITE = 0, 1
_MAX_NOTIFICATION, _MAX_NAME = 4096, 256
_FOREVER = -1.0


class TransferError(RuntimeError):
    """A call failed; `status` is that of enum verbena_transfer_status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class _Descriptor(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("length", ctypes.c_uint64),
                ("region", ctypes.c_uint64)]


class _AgentOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("devices", ctypes.c_char_p),
                ("listen", ctypes.c_char_p), ("queue_pairs", ctypes.c_uint),
                ("window", ctypes.c_size_t), ("piece", ctypes.c_size_t),
                ("transfers", ctypes.c_uint)]


class _TransferOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("priority", ctypes.c_uint),
                ("notification", ctypes.c_char_p), ("notification_size", ctypes.c_size_t),
                ("staged", ctypes.c_uint)]


class _Counters(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64)
        for name in ("bytes", "transfers", "failed", "lanes_up", "lanes_lost")]


class _Layout(ctypes.Structure):
    _fields_ = [("order", ctypes.c_int), ("layers", ctypes.c_uint32), ("blocks", ctypes.c_uint32),
                ("block_bytes", ctypes.c_uint64)]


class _Place(ctypes.Structure):
    _fields_ = [("layout", _Layout), ("base", ctypes.c_uint64), ("region", ctypes.c_uint64)]


class _KVCounters(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64) for name in ("used", "cached", "evictions")]


def _load():
    """The library of this build tree or installation, else the loader's."""
    name = "libverbena-transfer.so.1"
    here = pathlib.Path(__file__).resolve().parent
    places = [os.environ.get("VERBENA_TRANSFER_LIBRARY"), here.parent.parent / "lib" / name,
              *(parent / name for parent in here.parents)]
    path = next((place for place in places if place and os.path.exists(place)), name)
    library = ctypes.CDLL(str(path))
    pointer, text, size, seconds = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
                                    ctypes.c_double)
    for function, arguments, result in (
            ("agent_create", [ctypes.POINTER(pointer), text, pointer], ctypes.c_int),
            ("agent_destroy", [pointer], ctypes.c_int),
            ("agent_name", [pointer], text),
            ("agent_address", [pointer], text),
            ("agent_error", [], text),
            ("agent_register", [pointer, pointer, size, ctypes.c_uint,
                                ctypes.POINTER(ctypes.c_uint64)], ctypes.c_int),
            ("agent_deregister", [pointer, ctypes.c_uint64], ctypes.c_int),
            ("agent_metadata", [pointer, pointer, ctypes.POINTER(size)], ctypes.c_int),
            ("agent_load_metadata", [pointer, text, size, pointer, size], ctypes.c_int),
            ("agent_fetch_metadata", [pointer, text, seconds, pointer, size], ctypes.c_int),
            ("agent_forget", [pointer, text], ctypes.c_int),
            ("agent_connect", [pointer, text, seconds], ctypes.c_int),
            ("agent_notify", [pointer, text, text, size, seconds], ctypes.c_int),
            ("agent_next_notification", [pointer, text, seconds, pointer, size, pointer,
                                         ctypes.POINTER(size)], ctypes.c_int),
            ("agent_count", [pointer, pointer], ctypes.c_int),
            ("transfer_create", [pointer, ctypes.c_int, pointer, size, pointer, size, text, pointer,
                                 ctypes.POINTER(pointer)], ctypes.c_int),
            ("transfer_post", [pointer], ctypes.c_int),
            ("transfer_advance", [pointer, size], ctypes.c_int),
            ("transfer_status", [pointer], ctypes.c_int),
            ("transfer_wait", [pointer, seconds], ctypes.c_int),
            ("transfer_cancel", [pointer], ctypes.c_int),
            ("transfer_error", [pointer], text),
            ("transfer_release", [pointer], None),
            ("kv_list", [pointer, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, pointer, size,
                         pointer], size),
            ("kv_cache_create", [ctypes.POINTER(pointer), pointer, pointer, pointer], ctypes.c_int),
            ("kv_cache_destroy", [pointer], None),
            ("kv_cache_place", [pointer, pointer], ctypes.c_int),
            ("kv_allocate", [pointer, pointer, size, size, pointer, ctypes.POINTER(size)],
             ctypes.c_int),
            ("kv_publish", [pointer, pointer, size], ctypes.c_int),
            ("kv_release", [pointer, pointer, size], ctypes.c_int),
            ("kv_transfer_create", [pointer, ctypes.c_int, pointer, size, pointer, pointer, text,
                                    pointer, ctypes.POINTER(pointer)], ctypes.c_int),
            ("kv_layers_ready", [pointer, ctypes.c_uint32], ctypes.c_int),
            ("kv_count", [pointer, pointer], ctypes.c_int)):
        call = getattr(library, "verbena_" + function)
        call.argtypes, call.restype = arguments, result
    return library


_library = None


def _call(name, *arguments):
    global _library
    if _library is None:
        _library = _load()
    return getattr(_library, "verbena_" + name)(*arguments)


def _check(status):
    if status != _OK:
        raise TransferError(status, _call("agent_error").decode())


def _bytes(text):
    return text.encode() if isinstance(text, str) else bytes(text)


def _memory_of(value):
    """(address, length, is_writable) of a buffer, a tensor or a pair."""
    if isinstance(value, tuple):
        address, length = value
        return int(address), int(length), True
    if hasattr(value, "data_ptr"):  # torch
        if not value.is_contiguous():
            raise ValueError("the tensor is not contiguous")
        return value.data_ptr(), value.numel() * value.element_size(), True
    view = memoryview(value)
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous")
    if hasattr(value, "__array_interface__"):  # NumPy; read-only buffers have an address, too
        return value.__array_interface__["data"][0], view.nbytes, not view.readonly
    if view.readonly:
        raise ValueError("a read-only buffer has no address here: pass a NumPy array")
    address = ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 0
    return address, view.nbytes, True


def _descriptors(values):
    values = values if isinstance(values, list) else [values]
    blocks = (_Descriptor * len(values))()
    for i, value in enumerate(values):
        if isinstance(value, _Descriptor):
            blocks[i] = value
        else:
            blocks[i].address, blocks[i].length = _memory_of(value)[:2]
    return blocks


_OPERATIONS = {"READ": _READ, "WRITE": _WRITE}


def _options(notification, priority, staged=False):
    buffer = None if notification is None else _bytes(notification)
    return _TransferOptions(ctypes.sizeof(_TransferOptions), priority, buffer, len(buffer or b""),
                            staged)


def _numbers(values, kind=ctypes.c_uint32):
    return (kind * len(values))(*values)


class Agent:
    """A named agent. Close it, or use it in a `with` statement."""

    def __init__(self, name, *, devices=None, listen=None, queue_pairs=0, window=0, piece=0,
                 transfers=0):
        options = _AgentOptions(ctypes.sizeof(_AgentOptions), devices and _bytes(devices),
                                listen and _bytes(listen), queue_pairs, window, piece, transfers)
        self._handle = ctypes.c_void_p()
        self._held = {}  # by region: the memory must live as long
        self._transfers, self._caches = set(), set()
        _check(_call("agent_create", ctypes.byref(self._handle), _bytes(name),
                     ctypes.byref(options)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def close(self):
        for transfer in list(getattr(self, "_transfers", ())):
            transfer.release()
        for cache in list(getattr(self, "_caches", ())):
            cache.close()
        if self._handle:
            _call("agent_destroy", self._handle)
        self._handle = None
        self._held.clear()

    @property
    def name(self):
        return _call("agent_name", self._handle).decode()

    @property
    def address(self):
        """HOST:PORT, for fetch_metadata() of others."""
        return _call("agent_address", self._handle).decode()

    def register(self, memory, rights=0):
        """Registers memory, and keeps it alive until deregister(). Returns the region's number."""
        address, length, is_writable = _memory_of(memory)
        if rights == 0 and not is_writable:
            rights = REMOTE_READ
        region = ctypes.c_uint64()
        _check(_call("agent_register", self._handle, address, length, rights,
                     ctypes.byref(region)))
        self._held[region.value] = memory
        return region.value

    def deregister(self, region):
        _check(_call("agent_deregister", self._handle, region))
        self._held.pop(region, None)

    def metadata(self):
        size = ctypes.c_size_t()
        _call("agent_metadata", self._handle, None, ctypes.byref(size))
        while True:
            buffer = ctypes.create_string_buffer(size.value)
            status = _call("agent_metadata", self._handle, buffer, ctypes.byref(size))
            if status != _NO_ROOM:  # no region was added in between
                _check(status)
                return buffer.raw[:size.value]

    def load_metadata(self, metadata):
        """Returns the other agent's name."""
        name = ctypes.create_string_buffer(_MAX_NAME)
        _check(_call("agent_load_metadata", self._handle, metadata, len(metadata), name, _MAX_NAME))
        return name.value.decode()

    def fetch_metadata(self, address, timeout=10.0):
        name = ctypes.create_string_buffer(_MAX_NAME)
        _check(_call("agent_fetch_metadata", self._handle, _bytes(address), timeout, name,
                     _MAX_NAME))
        return name.value.decode()

    def forget(self, peer):
        _check(_call("agent_forget", self._handle, _bytes(peer)))

    def connect(self, peer, timeout=10.0):
        _check(_call("agent_connect", self._handle, _bytes(peer), timeout))

    def transfer(self, operation, local, remote, peer, *, notification=None, priority=0,
                 staged=False):
        """A prepared transfer, "READ" or "WRITE". Post it as often as it is needed. The blocks of a
        staged one move when advance() says so."""
        local, remote = _descriptors(local), _descriptors(remote)
        options = _options(notification, priority, staged)
        handle = ctypes.c_void_p()
        _check(_call("transfer_create", self._handle, _OPERATIONS[operation], local, len(local),
                     remote, len(remote), _bytes(peer), ctypes.byref(options),
                     ctypes.byref(handle)))
        return Transfer(self, handle)

    def read(self, local, remote, peer, **options):
        """Starts a READ from the peer's memory."""
        return self.transfer("READ", local, remote, peer, **options).post()

    def write(self, local, remote, peer, **options):
        return self.transfer("WRITE", local, remote, peer, **options).post()

    def notify(self, peer, notification, timeout=10.0):
        buffer = _bytes(notification)
        _check(_call("agent_notify", self._handle, _bytes(peer), buffer, len(buffer), timeout))

    def next_notification(self, timeout=_FOREVER, peer=None):
        """(peer, bytes); None if none came in time."""
        name = ctypes.create_string_buffer(_MAX_NAME)
        buffer = ctypes.create_string_buffer(_MAX_NOTIFICATION)
        size = ctypes.c_size_t(_MAX_NOTIFICATION)
        status = _call("agent_next_notification", self._handle, peer and _bytes(peer), timeout,
                       name, _MAX_NAME, buffer, ctypes.byref(size))
        if status == _NOT_FOUND:
            return None
        _check(status)
        return name.value.decode(), buffer.raw[:size.value]

    def counters(self):
        counters = _Counters(ctypes.sizeof(_Counters))
        _check(_call("agent_count", self._handle, ctypes.byref(counters)))
        return {name: getattr(counters, name) for name, _ in _Counters._fields_[1:]}


class Transfer:
    """A READ or WRITE of a list. Keeps nothing alive: its memory is registered."""

    def __init__(self, agent, handle):
        self._handle, self._agent = handle, agent
        agent._transfers.add(self)

    def post(self):
        _check(_call("transfer_post", self._handle))
        return self

    def advance(self, blocks):
        """The first blocks of the local list of a staged transfer may move now."""
        _check(_call("transfer_advance", self._handle, blocks))

    def layers_ready(self, layers):
        """The first layers of a KV cache's transfer may move now."""
        _check(_call("kv_layers_ready", self._handle, layers))

    def state(self):
        """DONE or IN_PROGRESS. Raises TransferError if it failed."""
        status = _call("transfer_status", self._handle)
        if status == _IN_PROGRESS:
            return IN_PROGRESS
        _check(status)
        return DONE

    def wait(self, timeout=_FOREVER):
        """Raises TransferError if it failed, and TimeoutError if it is not done in time."""
        status = _call("transfer_wait", self._handle, timeout)
        if status == _IN_PROGRESS:
            raise TimeoutError("the transfer is not done in time")
        _check(status)
        return self

    def cancel(self):
        _check(_call("transfer_cancel", self._handle))

    def release(self):
        """A transfer in progress is cancelled first. Later calls fail."""
        if self._handle:
            _call("transfer_release", self._handle)
        self._handle = None
        self._agent._transfers.discard(self)


class KVLayout:
    """Where a paged KV cache has its blocks: order "layers" (vLLM, FlashAttention), "pairs" (vLLM,
    FlashInfer), "split" (SGLang) or "latent" (MLA)."""

    _ORDERS = {"layers": 0, "pairs": 1, "split": 2, "latent": 3}

    def __init__(self, order, layers, blocks, block_bytes):
        self._layout = _Layout(self._ORDERS[order], layers, blocks, block_bytes)

    def blocks(self, base, layer, table):
        """The descriptor list of one layer's blocks in a cache at the address `base`."""
        numbers = _numbers(table)
        reference = ctypes.byref(self._layout)
        count = _call("kv_list", reference, base, 0, layer, numbers, len(table), None)
        if count == 0 and len(table) != 0:
            raise IndexError("the cache has no such layer or block")
        found = (_Descriptor * count)()
        _call("kv_list", reference, base, 0, layer, numbers, len(table), found)
        return list(found)


class KVTable(list):
    """The block table of a request. The first `reused` blocks have their contents already."""

    def __init__(self, blocks, reused=0):
        super().__init__(blocks)
        self.reused = reused


class KVCache:
    """A paged KV cache in registered memory: block tables of requests, which share the blocks of
    equal prefixes, and transfers layer by layer.

        cache = KVCache(agent, KVLayout("layers", 80, 4096, 65536), memory)
        table = cache.allocate(hashes)              # by block: of all tokens up to its end
        transfer = cache.transfer("WRITE", table, place, peer_table, peer, notification="r1").post()
        for layer in range(80):
            compute(layer)
            transfer.layers_ready(layer + 1)
        transfer.wait(); transfer.release(); cache.publish(table); cache.release(table)
    """

    def __init__(self, agent, layout, memory):
        address, length, _ = _memory_of(memory)
        shape = layout._layout
        halves = 1 if shape.order == KVLayout._ORDERS["latent"] else 2
        if length < shape.layers * shape.blocks * halves * shape.block_bytes:
            raise ValueError("the memory is smaller than the cache")
        self._handle, self._agent, self._memory = ctypes.c_void_p(), agent, memory
        _check(_call("kv_cache_create", ctypes.byref(self._handle), agent._handle,
                     ctypes.byref(shape), address))
        agent._caches.add(self)

    def close(self):
        """Release its transfers before."""
        if self._handle:
            _call("kv_cache_destroy", self._handle)
        self._handle = self._memory = None
        self._agent._caches.discard(self)

    @property
    def place(self):
        """Bytes that tell a peer's transfer() where this cache is."""
        place = _Place()
        _check(_call("kv_cache_place", self._handle, ctypes.byref(place)))
        return bytes(place)

    def allocate(self, hashes, more=0):
        """The table of a request: a block for each hash, and `more` without one. Raises
        TransferError if there is no room."""
        blocks, reused = _numbers([0] * (len(hashes) + more)), ctypes.c_size_t()
        _check(_call("kv_allocate", self._handle, _numbers(hashes, ctypes.c_uint64), len(hashes),
                     more, blocks, ctypes.byref(reused)))
        return KVTable(blocks, reused.value)

    def publish(self, blocks):
        """The blocks have their contents: later requests share them."""
        _check(_call("kv_publish", self._handle, _numbers(blocks), len(blocks)))

    def release(self, blocks):
        """The request is over, or cancelled."""
        _check(_call("kv_release", self._handle, _numbers(blocks), len(blocks)))

    def transfer(self, operation, blocks, place, peer_blocks, peer, *, notification=None,
                 priority=0):
        """A prepared transfer with a peer's cache. After post(), layers_ready() lets layers move."""
        if len(blocks) != len(peer_blocks):
            raise ValueError("the block tables differ in length")
        there = _Place.from_buffer_copy(place)
        options = _options(notification, priority)
        handle = ctypes.c_void_p()
        _check(_call("kv_transfer_create", self._handle, _OPERATIONS[operation], _numbers(blocks),
                     len(blocks), ctypes.byref(there), _numbers(peer_blocks), _bytes(peer),
                     ctypes.byref(options), ctypes.byref(handle)))
        return Transfer(self._agent, handle)

    def counters(self):
        counters = _KVCounters(ctypes.sizeof(_KVCounters))
        _check(_call("kv_count", self._handle, ctypes.byref(counters)))
        return {name: getattr(counters, name) for name, _ in _KVCounters._fields_[1:]}
