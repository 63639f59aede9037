#!/usr/bin/env python3
"""A prefill instance computes the KV caches of prompts, and writes them into the cache of a decode
instance while it computes: layer by layer, several requests at once, prefixes shared.

    verbena run -- python3 examples/kv_prefill_decode.py [REQUESTS]

The instances are two processes, each with an agent and a paged cache of its own: the prefill
instance in the layout of vLLM, the decode instance in that of SGLang. The decode instance allocates
blocks, and sends a notification with their numbers. The answer is the notification of the transfer:
it comes when all layers are there. "Attention" is a hash here, so the decode instance can check each
byte of the cache.
"""

import hashlib
import json
import multiprocessing
import sys

import numpy

from verbena_transfer import DONE, Agent, KVCache, KVLayout

LAYERS, BLOCKS, BLOCK_BYTES = 8, 64, 16384
BLOCK_TOKENS = 16


def prompt_of(request):
    """Requests begin with one of two system prompts of three blocks; the rest is their own."""
    system = [request % 2] * (3 * BLOCK_TOKENS)
    return system + [1000 + request] * (2 * BLOCK_TOKENS)


def prefix_hashes(tokens):
    """For each block, the hash of all tokens up to its end."""
    return [int.from_bytes(hashlib.sha256(repr(tokens[:end]).encode()).digest()[:8], "big")
            for end in range(BLOCK_TOKENS, len(tokens) + 1, BLOCK_TOKENS)]


def computed(layer, half, prefix_hash):
    """K (half 0) or V (half 1) of a block, as a model would compute it."""
    seed = [layer, half, prefix_hash]
    return numpy.random.default_rng(seed).integers(0, 256, BLOCK_BYTES, numpy.uint8)


def is_released(transfer):
    if transfer.state() != DONE:
        return False
    transfer.release()
    return True


def prefill(address, requests):
    with Agent("prefill") as agent:
        memory = numpy.zeros((LAYERS, 2, BLOCKS, BLOCK_BYTES), numpy.uint8)
        cache = KVCache(agent, KVLayout("layers", LAYERS, BLOCKS, BLOCK_BYTES), memory)
        decode = agent.fetch_metadata(address)
        agent.notify(decode, agent.metadata())
        moving = []
        for _ in range(requests):
            order = json.loads(agent.next_notification()[1])
            moving = [transfer for transfer in moving if not is_released(transfer)]
            hashes = prefix_hashes(order["tokens"])
            table = cache.allocate(hashes)
            first = order["reused"]  # the decode instance has these already
            transfer = cache.transfer("WRITE", table[first:], bytes.fromhex(order["place"]),
                                      order["blocks"][first:], decode,
                                      notification=str(order["request"])).post()
            for layer in range(LAYERS):
                for block in range(table.reused, len(table)):  # the others are computed
                    for half in (0, 1):
                        memory[layer, half, table[block]] = computed(layer, half, hashes[block])
                transfer.layers_ready(layer + 1)  # it moves while the next layer is computed
            cache.publish(table)
            cache.release(table)  # the transfer keeps its blocks until it is released
            moving.append(transfer)
        for transfer in moving:
            transfer.wait(30)
            transfer.release()
        print(f"prefill: {cache.counters()['evictions']} blocks evicted")


def decode(requests, tell_address):
    with Agent("decode") as agent:
        memory = numpy.zeros((2, LAYERS, BLOCKS, BLOCK_BYTES), numpy.uint8)
        cache = KVCache(agent, KVLayout("split", LAYERS, BLOCKS, BLOCK_BYTES), memory)
        tell_address.send(agent.address)
        peer = agent.load_metadata(agent.next_notification()[1])
        reused = 0
        for first in range(0, requests, 4):  # four at once
            running = {}
            for request in range(first, min(first + 4, requests)):
                tokens = prompt_of(request)
                table = cache.allocate(prefix_hashes(tokens))
                running[request] = (tokens, table)
                reused += table.reused
                agent.notify(peer, json.dumps({
                    "request": request, "tokens": tokens, "blocks": table, "reused": table.reused,
                    "place": cache.place.hex()}))
            for _ in range(len(running)):
                request = int(agent.next_notification(30)[1])
                tokens, table = running[request]
                for block, prefix_hash in zip(table, prefix_hashes(tokens)):
                    for layer in range(LAYERS):
                        for half in (0, 1):
                            expected = computed(layer, half, prefix_hash)
                            assert (memory[half, layer, block] == expected).all(), (request, block)
                cache.publish(table)  # later requests share the prefix
            for _, table in running.values():
                cache.release(table)
        print(f"decode: {requests} requests are right, {reused} blocks were there already, "
              f"{cache.counters()['evictions']} evicted", flush=True)


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    processes = multiprocessing.get_context("spawn")
    here, there = processes.Pipe()
    decoding = processes.Process(target=decode, args=(requests, there))
    decoding.start()
    prefilling = processes.Process(target=prefill, args=(here.recv(), requests))
    prefilling.start()
    for process in (decoding, prefilling):
        process.join()
    sys.exit(decoding.exitcode or prefilling.exitcode)


if __name__ == "__main__":
    main()
