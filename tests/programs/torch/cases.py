"""One rank of the tests of verbena_torch: `cases.py CASE`, with RANK and WORLD_SIZE set.

Most cases do the same with gloo and compare.
"""

import datetime
import gc
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import verbena_torch  # noqa: F401
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

SECONDS = datetime.timedelta(seconds=1)
REDUCED = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32,
           torch.float64]
MOVED = REDUCED + [torch.bfloat16, torch.bool, torch.int16, torch.complex64]
SHAPES = [(), (0,), (1,), (7, 3), (1000,), (129, 517)]


class Both:
    """A group of all ranks by verbena, and one by gloo."""

    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.gloo = dist.new_group(backend="gloo")

    def tensor(self, shape, dtype, salt=0):
        generator = torch.Generator().manual_seed(97 * self.rank + salt)
        values = torch.randint(0, 3, shape, generator=generator)
        return values.to(dtype)

    def same(self, operate, *tensors):
        """Whether operate(group, copies of the tensors) gives equal results by both."""
        results = []
        for group in (dist.GroupMember.WORLD, self.gloo):
            copies = [tensor.clone() for tensor in tensors]
            results.append(operate(group, *copies) or copies)
        for mine, theirs in zip(*results):
            assert torch.equal(mine, theirs), (mine, theirs)


def reductions(both):
    for dtype in REDUCED:
        for shape in SHAPES:
            for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN,
                       dist.ReduceOp.MAX):
                tensor = both.tensor(shape, dtype)
                both.same(lambda group, t: dist.all_reduce(t, op, group=group), tensor)

                def reduce(group, t):
                    dist.reduce(t, both.size - 1, op, group=group)
                    return [t] if both.rank == both.size - 1 else [torch.zeros(1)]
                both.same(reduce, tensor)
    for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        both.same(lambda group, t: dist.all_reduce(t, op, group=group),
                  both.tensor((50,), torch.int32))
    mean = torch.full((5,), float(both.rank))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert torch.equal(mean, torch.full((5,), (both.size - 1) / 2))
    flags = torch.tensor([both.rank == 0, False, True])
    dist.all_reduce(flags)
    assert flags.tolist() == [True, False, True]
    short = torch.full((3,), 300, dtype=torch.int16)
    dist.all_reduce(short)
    assert short.tolist() == [300 * both.size] * 3
    brains = torch.full((3,), 1.5, dtype=torch.bfloat16)
    dist.all_reduce(brains)
    assert brains.tolist() == [1.5 * both.size] * 3
    turned = torch.arange(12.0).reshape(3, 4).t()  # not contiguous
    dist.all_reduce(turned)
    assert torch.equal(turned, both.size * torch.arange(12.0).reshape(3, 4).t())


def movements(both):
    n, rank = both.size, both.rank
    for dtype in MOVED:
        for shape in SHAPES:
            tensor = both.tensor(shape, dtype)
            for root in (0, n - 1):
                theirs = [torch.Generator().manual_seed(97 * r) for r in range(n)]
                expected = [torch.randint(0, 3, shape, generator=g).to(dtype) for g in theirs]
                copy = tensor.clone()
                dist.broadcast(copy, root)
                assert torch.equal(copy, expected[root])
                into = [torch.empty_like(tensor) for _ in range(n)] if rank == root else None
                dist.gather(tensor, into, root)
                assert rank != root or all(map(torch.equal, into, expected))
                part = torch.empty_like(tensor)
                dist.scatter(part, expected if rank == root else None, root)
                assert torch.equal(part, expected[rank])
            into = [torch.empty_like(tensor) for _ in range(n)]
            dist.all_gather(into, tensor)
            assert all(map(torch.equal, into, expected))
    flat = torch.empty(n * 10)
    dist.all_gather_into_tensor(flat, torch.full((10,), float(rank)))
    assert torch.equal(flat, torch.arange(n).repeat_interleave(10).float())
    part = torch.empty(10)
    dist.reduce_scatter_tensor(part, torch.arange(n).repeat_interleave(10).float())
    assert torch.equal(part, torch.full((10,), float(rank * n)))
    part = torch.empty(10)
    dist.reduce_scatter(part, [torch.full((10,), float(i)) for i in range(n)])
    assert torch.equal(part, torch.full((10,), float(rank * n)))


def exchanges(both):
    n, rank = both.size, both.rank
    sent = torch.arange(n * 3) + 100 * rank
    got = torch.empty_like(sent)
    dist.all_to_all_single(got, sent)
    assert got.tolist() == [100 * r + 3 * rank + i for r in range(n) for i in range(3)]
    splits = [r + 1 for r in range(n)]  # to rank r: r + 1 rows
    sent = torch.full((sum(splits), 2), rank)
    got = torch.empty((n * (rank + 1), 2), dtype=torch.int64)
    dist.all_to_all_single(got, sent, [rank + 1] * n, splits)
    assert torch.equal(got[:, 0], torch.arange(n).repeat_interleave(rank + 1))
    outputs = [torch.empty(rank + 1) for _ in range(n)]
    dist.all_to_all(outputs, [torch.full((r + 1,), float(rank)) for r in range(n)])
    assert all(torch.equal(out, torch.full((rank + 1,), float(r))) for r, out in enumerate(outputs))
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(n)]


def messages(both):
    n, rank = both.size, both.rank
    following, before = (rank + 1) % n, (rank - 1) % n
    for count in (1, 3000, 300000):
        sent, got = torch.full((count,), float(rank)), torch.empty(count)
        works = [dist.isend(sent, following, tag=5), dist.irecv(got, before, tag=5)]
        for work in works:
            work.wait()
        assert (got == before).all()
    if rank == 0:
        sources = {dist.recv(got) for _ in range(n - 1)}
        assert sources == set(range(1, n))
    else:
        dist.send(torch.full((300000,), float(rank)), 0)
    dist.barrier()  # what follows has the same tag
    operations = [dist.P2POp(dist.isend, sent, following), dist.P2POp(dist.irecv, got, before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert (got == before).all()


def overlapping(both):
    tensors = [torch.full((50000,), float(i)) for i in range(30)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future() for work in works[::2]]
    for work in reversed(works):
        work.wait()
    assert all(work.is_completed() for work in works)
    for future in futures:
        future.wait()
    assert all((t == i * both.size).all() for i, t in enumerate(tensors))
    chained = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(
        lambda future: future.value()[0] / both.size)
    assert chained.wait().tolist() == [1, 1, 1]


def groups(both):
    evens = dist.new_group(list(range(0, both.size, 2)))
    pair = dist.new_group([0, both.size - 1])
    if both.rank % 2 == 0:
        total = torch.tensor([both.rank])
        dist.all_reduce(total, group=evens)
        assert total.item() == sum(range(0, both.size, 2))
    if both.rank in (0, both.size - 1):
        word = torch.tensor([both.rank])
        dist.broadcast(word, both.size - 1, group=pair)
        assert word.item() == both.size - 1
    dist.barrier()
    dist.monitored_barrier(timeout=20 * SECONDS)


def endings(both):
    """Groups that end while callbacks in Python wait for their operations."""
    for i in range(20):
        group = dist.new_group()
        ends = []
        works = [dist.all_reduce(torch.ones(20000), group=group, async_op=True) for _ in range(8)]
        for work in works:
            work.get_future().then(lambda future: ends.append(future.value()[0][0].item()))
        del works, work
        dist.destroy_process_group(group)
        del group
        gc.collect()
        assert ends == [both.size] * 8, (i, ends)


def late(both):
    """A rank that does not come is named."""
    if both.rank == 1:
        time.sleep(3)
    else:
        try:
            dist.monitored_barrier(timeout=SECONDS)
            raise AssertionError("no failure")
        except RuntimeError as error:
            assert "Rank 1 failed to pass monitoredBarrier" in str(error) or both.rank != 0, error
    dist.barrier()


def timeouts(both):
    group = dist.new_group(timeout=SECONDS)
    if both.rank == 1:
        time.sleep(4)
    try:
        dist.all_reduce(torch.ones(10), group=group)
        raise AssertionError("no failure")
    except RuntimeError as error:
        assert "rank 1 did not take part in AllReduce" in str(error), error


def patience(both):
    """Some programs mean for ever by a thousand years."""
    for_ever = datetime.timedelta(days=365000)
    group, data = dist.new_group(timeout=for_ever), torch.ones(10)
    assert dist.all_reduce(data, group=group, async_op=True).wait(for_ever)
    assert torch.equal(data, torch.full((10,), float(both.size)))


def mismatches(both):
    try:
        dist.all_reduce(torch.ones(10 + both.rank))
        raise AssertionError("no failure")
    except RuntimeError as error:
        assert "AllReduce of 1" in str(error), error


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(),
                                    nn.Linear(300, 5))

    def forward(self, x):
        return self.layers(x)


def train(both, backend_group, hook=None):
    torch.manual_seed(3)
    model = DistributedDataParallel(Net(), process_group=backend_group, bucket_cap_mb=0.2)
    if hook:
        model.register_comm_hook(backend_group, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(both.rank)
    for _ in range(20):
        x = torch.randn(16, 20, generator=data)
        loss = (model(x) - x[:, :5]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def ddp(both):
    world = dist.distributed_c10d._get_default_group()
    mine, theirs = train(both, world), train(both, both.gloo)
    assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    every = [torch.empty_like(mine) for _ in range(both.size)]
    dist.all_gather(every, mine)
    assert all(torch.equal(mine, other) for other in every), "replicas differ"
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
        assert torch.allclose(train(both, world, hook), theirs, rtol=1e-1, atol=1e-2)


CASES = {case.__name__: case for case in (reductions, movements, exchanges, messages, overlapping,
                                          groups, endings, late, timeouts, patience,
                                          mismatches, ddp)}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("verbena", timeout=30 * SECONDS)
    both = Both()
    for name in sys.argv[1:]:
        CASES[name](both)
    print("done", flush=True)
    if "mismatches" not in sys.argv[1:]:
        dist.destroy_process_group()


main()
