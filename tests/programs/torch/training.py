"""One rank of the tests of verbena_torch with what training programs use: `training.py CASE`, with
RANK and WORLD_SIZE set. The cases are those of PyTorch's test_c10d_common, test_distributed_spawn,
test_join and test_zero_redundancy_optimizer, written anew; most compare with gloo.
"""

import datetime
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import verbena_torch  # noqa: F401
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

SECONDS = datetime.timedelta(seconds=1)


class Branches(nn.Module):
    """A network of which each rank uses another branch."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(8, 200)
        self.branches = nn.ModuleList([nn.Linear(200, 3) for _ in range(3)])
        self.never = nn.Linear(50, 50)

    def forward(self, x, branch):
        return self.branches[branch](torch.tanh(self.shared(x)))


def parameters_of(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def both_groups(operate):
    """Compares operate(group) by verbena with gloo's result, and the results of all ranks."""
    world = dist.distributed_c10d._get_default_group()
    mine, theirs = operate(world), operate(dist.new_group(backend="gloo"))
    assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-6), (mine, theirs)
    every = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(every, mine)
    assert all(torch.equal(mine, other) for other in every), "the ranks differ"


def unused_parameters():
    def train(group):
        torch.manual_seed(5)
        model = DistributedDataParallel(Branches(), process_group=group, bucket_cap_mb=0.01,
                                        find_unused_parameters=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = torch.Generator().manual_seed(dist.get_rank())
        for step in range(8):
            branch = (step + dist.get_rank()) % 3
            loss = model(torch.randn(4, 8, generator=data), branch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return parameters_of(model)
    both_groups(train)


def accumulation():
    def train(group):
        torch.manual_seed(6)
        net = nn.Sequential(nn.Linear(8, 300), nn.Tanh(), nn.Linear(300, 2))
        model = DistributedDataParallel(net, process_group=group, gradient_as_bucket_view=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        data = torch.Generator().manual_seed(dist.get_rank())
        for _ in range(5):
            optimizer.zero_grad()
            with model.no_sync():
                for _ in range(3):
                    model(torch.randn(4, 8, generator=data)).pow(2).mean().backward()
            model(torch.randn(4, 8, generator=data)).pow(2).mean().backward()
            optimizer.step()
        return parameters_of(model)
    both_groups(train)


def uneven_inputs():
    def train(group):
        torch.manual_seed(7)
        model = DistributedDataParallel(nn.Linear(8, 2), process_group=group)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = torch.Generator().manual_seed(dist.get_rank())
        with Join([model]):
            for _ in range(3 + 2 * dist.get_rank()):
                optimizer.zero_grad()
                model(torch.randn(4, 8, generator=data)).pow(2).mean().backward()
                optimizer.step()
        return parameters_of(model)
    both_groups(train)


def sharded_optimizer():
    def train(group):
        torch.manual_seed(8)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 100), nn.Linear(100, 2)),
                                        process_group=group)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01,
                                            process_group=group)
        data = torch.Generator().manual_seed(dist.get_rank())
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(4, 8, generator=data)).pow(2).mean().backward()
            optimizer.step()
        optimizer.consolidate_state_dict(0)
        assert dist.get_rank() != 0 or len(optimizer.state_dict()["state"]) == 4
        return parameters_of(model)
    both_groups(train)


def buffers():
    """Buffers of a network, and its first parameters, are rank 0's."""
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)))
    model(torch.randn(16, 8) + dist.get_rank())
    model(torch.randn(16, 8)).sum().backward()
    mean = model.module[1].running_mean.clone()
    model.eval()
    everyones = [None] * dist.get_world_size()
    dist.all_gather_object(everyones, parameters_of(model).tolist())
    assert all(one == everyones[0] for one in everyones)
    assert mean.shape == (8,)


def objects():
    rank, size = dist.get_rank(), dist.get_world_size()
    listed = [{"from": 1, "text": "x" * 100000}, None, 3.5] if rank == 1 else [None] * 3
    dist.broadcast_object_list(listed, src=1)
    assert listed[0]["from"] == 1 and len(listed[0]["text"]) == 100000 and listed[2] == 3.5
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(["short", "a" * 1000 * (rank + 1)][rank % 2], gathered, dst=0)
    if rank == 0:
        assert [len(text) for text in gathered] == [5 if r % 2 == 0 else 1000 * (r + 1)
                                                    for r in range(size)]
    mine = [None]
    dist.scatter_object_list(mine, [{"to": r} for r in range(size)] if rank == 0 else None, src=0)
    assert mine == [{"to": rank}]


def batches():
    """Messages to and from every other rank in one batch."""
    rank, size = dist.get_rank(), dist.get_world_size()
    others = [r for r in range(size) if r != rank]
    for count in (1, 70000):
        sent = {r: torch.full((count,), 10.0 * rank + r) for r in others}
        got = {r: torch.empty(count) for r in others}
        operations = [dist.P2POp(dist.irecv, got[r], r) for r in others]
        operations += [dist.P2POp(dist.isend, sent[r], r) for r in reversed(others)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        assert all((got[r] == 10.0 * r + rank).all() for r in others)


def subsets():
    """Groups of any ranks, also of one, and in an order of their own; sums that overlap."""
    rank, size = dist.get_rank(), dist.get_world_size()
    members = [[0], list(range(1, size)), list(range(size - 1)), list(reversed(range(size)))]
    groups = [dist.new_group(ranks) for ranks in members]
    works = []
    for ranks, group in zip(members, groups):
        if rank not in ranks:
            assert dist.get_rank(group) == -1
            continue
        total = torch.tensor([float(rank)])
        works.append((dist.all_reduce(total, group=group, async_op=True), total, sum(ranks)))
    for work, total, expected in works:
        work.wait()
        assert total.item() == expected
    for ranks, group in zip(members, groups):
        if rank in ranks:
            dist.destroy_process_group(group)


def missing():
    """monitored_barrier(wait_all_ranks=True) names all ranks that do not come."""
    size = dist.get_world_size()
    if dist.get_rank() == 0:
        try:
            dist.monitored_barrier(timeout=SECONDS, wait_all_ranks=True)
            raise AssertionError("no failure")
        except RuntimeError as error:
            for rank in range(1, size):
                assert str(rank) in str(error), error
    else:
        time.sleep(3)
    dist.barrier()


CASES = {case.__name__: case for case in (unused_parameters, accumulation, uneven_inputs,
                                          sharded_optimizer, buffers, objects, batches, subsets,
                                          missing)}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("verbena", timeout=30 * SECONDS)
    for name in sys.argv[1:]:
        CASES[name]()
        dist.barrier()
    print("done", flush=True)
    dist.destroy_process_group()


main()
