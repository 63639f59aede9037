"""Cases of transfer_python_test.py, run by `verbena run -- python3 cases.py CASE`."""

import sys

from verbena_transfer import (IN_PROGRESS, REMOTE_READ, Agent, KVCache, KVLayout, KVTable,
                              TransferError)


def two_agents():
    a, b = Agent("a"), Agent("b")
    return a, b


def bytearrays():
    a, b = two_agents()
    here, there = bytearray(b"x" * 4096), bytearray(b"y" * 4096)
    a.register(here)
    b.register(there)
    peer = a.load_metadata(b.metadata())
    assert peer == "b"
    transfer = a.write(memoryview(here)[:100], memoryview(there)[50:150], peer, notification="done")
    transfer.wait(10)
    assert b.next_notification(10) == ("a", b"done")
    assert there == b"y" * 50 + b"x" * 100 + b"y" * 3946
    assert b.next_notification(0) is None
    assert a.counters()["bytes"] == 100
    transfer.post().wait(10)
    a.notify("b", b"\x00\xff")
    assert b.next_notification(10) == ("a", b"done")
    assert b.next_notification(10, "a") == ("a", b"\x00\xff")
    for agent in (a, b):
        agent.close()


def numpy_arrays():
    import numpy
    a, b = two_agents()
    here = numpy.zeros((64, 1000), numpy.float32)
    there = numpy.random.default_rng(1).random((64, 1000), numpy.float32)
    there.flags.writeable = False
    a.register(here)
    b.register(there)  # others may read it
    peer = a.fetch_metadata(b.address)
    rows = [5, 3, 60]
    a.read([here[i] for i in range(3)], [there[row] for row in rows], peer).wait(10)
    assert (here[:3] == there[rows]).all()
    try:
        a.write(here[0], there[0], peer)
        raise AssertionError("a read-only array was written")
    except TransferError as error:
        assert "does not allow remote writes" in str(error), error
    try:
        a.register(here[:, ::2])
        raise AssertionError("an array with holes was registered")
    except ValueError:
        pass


def torch_tensors():
    import torch
    a, b = two_agents()
    here, there = torch.zeros(16, 4096), torch.randn(16, 4096)
    a.register(here)
    b.register(there, REMOTE_READ)
    peer = a.fetch_metadata(b.address)
    transfer = a.transfer("READ", [here[0], here[9]], [there[15], there[1]], peer, priority=3)
    transfer.post()
    while transfer.state() == IN_PROGRESS:
        pass
    assert torch.equal(here[0], there[15]) and torch.equal(here[9], there[1])


def kv_cache():
    import numpy
    layout = KVLayout("layers", 2, 8, 512)
    a, b = two_agents()
    here = numpy.zeros((2, 2, 8, 512), numpy.uint8)
    there = numpy.random.default_rng(2).integers(0, 256, here.shape, numpy.uint8)
    a.register(here)
    b.register(there)
    peer = a.fetch_metadata(b.address)
    for layer in range(2):
        a.read(layout.blocks(here.ctypes.data, layer, [1, 0, 7]),
               layout.blocks(there.ctypes.data, layer, [3, 4, 5]), peer).wait(10)
    assert (here[:, :, [1, 0, 7]] == there[:, :, [3, 4, 5]]).all()
    assert not here[:, :, 2].any()
    try:
        layout.blocks(0, 2, [0])
        raise AssertionError("a layer that is not there")
    except IndexError:
        pass


def kv_manager():
    import numpy
    layout = KVLayout("layers", 2, 8, 512)
    a, b = two_agents()
    here = numpy.random.default_rng(3).integers(0, 256, (2, 2, 8, 512), numpy.uint8)
    there = numpy.zeros(here.shape, numpy.uint8)
    prefill, decode = KVCache(a, layout, here), KVCache(b, layout, there)
    peer = a.fetch_metadata(b.address)
    table, other = prefill.allocate([1, 2], 1), decode.allocate([], 5)
    transfer = prefill.transfer("WRITE", table, decode.place, other[2:], peer, notification="r")
    transfer.post().layers_ready(1)
    assert b.next_notification(0.05) is None
    transfer.layers_ready(2)
    transfer.wait(10)
    assert b.next_notification(10) == ("a", b"r")
    assert (there[:, :, other[2:]] == here[:, :, table]).all()
    assert not there[:, :, other[:2]].any()
    prefill.publish(table)
    prefill.release(table)
    assert prefill.counters() == {"used": 3, "cached": 0, "evictions": 0}  # the transfer's
    transfer.release()
    assert prefill.counters() == {"used": 0, "cached": 2, "evictions": 0}
    again = prefill.allocate([1, 2, 3])
    assert isinstance(again, KVTable) and again.reused == 2 and again[:2] == table[:2]
    for wrong in (lambda: prefill.allocate([], 6), lambda: prefill.release([7])):
        try:
            wrong()
            raise AssertionError("no error")
        except TransferError:
            pass
    try:
        KVCache(a, layout, bytearray(8 * 2 * 2 * 512 - 1))
        raise AssertionError("memory that is too small")
    except ValueError:
        pass


def errors():
    a, b = two_agents()
    memory = bytearray(64)
    region = a.register(memory)
    for wrong in (lambda: a.read(memory, memory, "nobody"), lambda: Agent("two words"),
                  lambda: a.load_metadata(b"x"), lambda: a.deregister(region + 1)):
        try:
            wrong()
            raise AssertionError("no error")
        except TransferError as error:
            assert str(error) and error.status
    a.deregister(region)
    a.load_metadata(b.metadata())
    address = b.address
    b.close()
    try:
        a.connect("b", 2)
        raise AssertionError("no error")
    except TransferError as error:
        assert address.split(":")[0] in str(error) or "b" in str(error)


def waiting_agent():
    with Agent("b") as agent:
        print(agent.address, flush=True)
        sys.stdin.readline()


def meet_iwarp():
    with Agent("a") as agent:
        peer = agent.fetch_metadata(sys.stdin.readline().strip())
        try:
            agent.connect(peer)
            raise AssertionError("RoCE and iWARP connected")
        except TransferError as error:
            assert "iWARP" in str(error), error


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("passed")
