#!/usr/bin/env python3
"""Writes the execution traces of chakra_step.yaml: make_traces.py FOLDER

Eight ranks: two pipeline stages of two replicas of two tensor parallel GPUs, rank = tensor + 2 *
(replica + 2 * stage). Four micro-batches go forward through both stages and back; then replicas add
their gradients. A file is a GlobalMetadata and Nodes in the encoding of Protocol Buffers, each behind
its length.
"""
import json
import pathlib
import sys

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE = 0
MICRO_BATCHES = 4
ACTIVATIONS, GRADIENTS = 16 << 20, 64 << 20  # bytes


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def length_delimited(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    kind = length_delimited(29, value.encode()) if isinstance(value, str) else number(9, value)  # int64
    return length_delimited(10, length_delimited(1, name.encode()) + kind)


class Trace:
    def __init__(self):
        self.messages = [length_delimited(1, b"0.0.4")]

    def add(self, name, kind, after=(), micros=0, **attributes):
        """Returns the node's id."""
        node = number(1, len(self.messages)) + length_delimited(2, name.encode()) + number(3, kind)
        node += b"".join(number(5, one) for one in after)
        node += number(7, micros) if micros else b""
        node += length_delimited(10, length_delimited(1, b"is_cpu_op") + number(27, 0))
        node += b"".join(attribute(key, value) for key, value in attributes.items())
        self.messages.append(node)
        return len(self.messages) - 1

    def write(self, path):
        path.write_bytes(b"".join(varint(len(one)) + one for one in self.messages))


def trace_of(rank):
    stage, replica, tensor = rank // 4, rank // 2 % 2, rank % 2
    tensor_group = str(1 + rank // 2)
    data_group = str(5 + stage * 2 + tensor)
    peer = rank + 4 if stage == 0 else rank - 4
    trace = Trace()

    def stage_pass(name, after, micros):
        done = trace.add(name, COMPUTE, after, micros)
        return trace.add(f"{name} sum", COLLECTIVE, [done], comm_type=ALL_REDUCE,
                         comm_size=ACTIVATIONS, pg_name=tensor_group)

    def receive(name, tag):
        return trace.add(name, RECEIVE, comm_src=peer, comm_size=ACTIVATIONS, comm_tag=tag)

    def send(name, after, tag):
        trace.add(name, SEND, [after], comm_dst=peer, comm_size=ACTIVATIONS, comm_tag=tag)

    last = []
    for batch in range(MICRO_BATCHES):
        needs = [receive(f"activations {batch}", batch)] if stage == 1 else []
        last = [stage_pass(f"forward {batch}", needs + last, 400)]
        if stage == 0:
            send(f"activations {batch}", last[0], batch)
        else:  # the last stage goes back at once
            last = [stage_pass(f"backward {batch}", last, 800)]
            send(f"gradients {batch}", last[0], 100 + batch)
    if stage == 0:
        for batch in range(MICRO_BATCHES):
            needs = [receive(f"gradients {batch}", 100 + batch)]
            last = [stage_pass(f"backward {batch}", needs + last, 800)]
    done = trace.add("gradients sum", COLLECTIVE, last, comm_type=ALL_REDUCE, comm_size=GRADIENTS,
                     pg_name=data_group)
    # Without a time: by the roofline of the job's GPU.
    trace.add("optimizer", COMPUTE, [done], num_ops=4 * GRADIENTS, tensor_size=7 * GRADIENTS)
    return trace


def main():
    folder = pathlib.Path(sys.argv[1])
    for rank in range(8):
        trace_of(rank).write(folder / f"step.{rank}.et")
    groups = {str(1 + i): [2 * i, 2 * i + 1] for i in range(4)}
    groups |= {str(5 + 2 * stage + tensor): [4 * stage + tensor, 4 * stage + 2 + tensor]
               for stage in range(2) for tensor in range(2)}
    (folder / "groups.json").write_text(json.dumps(groups) + "\n")


if __name__ == "__main__":
    main()
