#!/usr/bin/env python3
"""Trains a small GPT on a text of this folder, with DistributedDataParallel.

  torchrun --nproc_per_node 2 examples/train_gpt.py                      # on Verbena's backend
  torchrun --nproc_per_node 2 examples/train_gpt.py --backend gloo
  torchrun --nproc_per_node 4 examples/train_gpt.py --compare            # both, and their curves
  verbena run --fault 'loss 1%' -- torchrun --nproc_per_node 2 examples/train_gpt.py --compare

PYTHONPATH is where verbena_torch lies: build/release/python, or nothing if it is installed. Each rank
takes its own pieces of the text. With --compare the same training runs on gloo, then on verbena, from the
same seed; the two loss curves must be equal but for the order of floating-point additions.
"""

import argparse
import math
import os
import pathlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

TEXT = pathlib.Path(__file__).with_name("train_gpt.txt")


class Block(nn.Module):
    """Causal attention, then two layers, each beside a shortcut."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                    nn.Linear(4 * width, width))

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(width / self.heads)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(dim=3)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norms[0](x))
        return x + self.layers(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, letters, length, width, layers, heads):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)

    def forward(self, x):
        x = self.letters(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def read_text():
    text = TEXT.read_text(encoding="utf-8")
    letters = sorted(set(text))
    place = {letter: i for i, letter in enumerate(letters)}
    return torch.tensor([place[letter] for letter in text]), len(letters)


def batch_of(text, options, generator):
    starts = torch.randint(len(text) - options.length - 1, (options.batch,), generator=generator)
    pieces = torch.stack([text[start:start + options.length + 1] for start in starts])
    return pieces[:, :-1], pieces[:, 1:]


class Timed:
    """A communication hook that averages gradients, and notes how long it waits in a step."""

    def __init__(self, group):
        self.group, self.seconds, self.begun = group, 0.0, {}

    def hook(self, _, bucket):
        gradients = bucket.buffer().div_(dist.get_world_size(self.group))
        begun = time.perf_counter()
        work = dist.all_reduce(gradients, group=self.group, async_op=True)

        def done(future):
            self.seconds += time.perf_counter() - begun
            return future.value()[0]
        return work.get_future().then(done)


def train(backend, options):
    """The losses of all steps, averaged over the ranks, and the tokens of a second."""
    group = dist.new_group(backend=backend)
    text, letters = read_text()
    torch.manual_seed(options.seed)
    model = GPT(letters, options.length, options.width, options.layers, options.heads)
    model = DistributedDataParallel(model, process_group=group)
    timed = Timed(group)
    model.register_comm_hook(None, timed.hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    generator = torch.Generator().manual_seed(options.seed + dist.get_rank())
    losses, begun, warm = [], 0.0, min(3, options.steps - 1)
    for step in range(options.steps):
        if step == warm:  # the first steps allocate
            dist.barrier(group)
            begun, timed.seconds = time.perf_counter(), 0.0
        inputs, targets = batch_of(text, options, generator)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, group=group)
        losses.append(mean.item() / dist.get_world_size())
        if dist.get_rank() == 0 and (step % options.every == 0 or step == options.steps - 1):
            print(f"{backend}: step {step:4}  loss {losses[-1]:.5f}", flush=True)
    seconds = time.perf_counter() - begun
    timed_steps = options.steps - warm
    tokens = options.batch * options.length * dist.get_world_size() * timed_steps / seconds
    if dist.get_rank() == 0:
        print(f"{backend}: {tokens:10,.0f} tokens/s, a step takes {seconds / timed_steps * 1e3:.1f}"
              f" ms, its gradients {timed.seconds / timed_steps * 1e3:.2f} ms", flush=True)
    return losses


def compare(gloo, verbena):
    """Additions in another order differ in the last digits, and each step grows that a little."""
    worst = max(abs(a - b) / a for a, b in zip(gloo, verbena))
    same = worst < 1e-3
    if dist.get_rank() == 0:
        print(f"the curves {'are the same' if same else 'DIFFER'}: at most {worst:.2e} of the loss")
    return same


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="verbena", choices=["verbena", "gloo"])
    parser.add_argument("--compare", action="store_true", help="gloo, then verbena")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8, help="pieces of text of each rank")
    parser.add_argument("--length", type=int, default=64, help="letters of a piece")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=10, help="steps between two lines")
    return parser.parse_args()


def main():
    options = read_options()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ.get("WORLD_SIZE", "1"))))
    if options.compare or options.backend == "verbena":
        import verbena_torch  # noqa: F401  (registers the backend)
    dist.init_process_group("gloo" if options.compare else options.backend)
    if options.compare:
        same = compare(train("gloo", options), train("verbena", options))
    else:
        train(options.backend, options)
        same = True
    dist.destroy_process_group()
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
