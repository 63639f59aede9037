"""Sends 3000 traps 128 and as many malformed MADs to a subnet manager, as fast as it can, and says so.

usage, under `verbena run --fabric`: umad_flood.py LID
"""

import ctypes
import struct
import sys

TRAPS = 3000
MAD_BYTES = 256


def trap(number):
    header = struct.pack(">BBBBHHQHHI", 1, 1, 1, 5, 0, 0, number, 2, 0, 0)
    notice = struct.pack(">BBHHHH", 0x81, 0, 2, 128, 7, 0) + struct.pack(">H", 7)
    return header + bytes(8) + bytes(32) + notice.ljust(64, b"\0") + bytes(128)


def malformed(number):
    header = struct.pack(">BBBBHHQHHI", 1, 1, number % 3, number % 256, 0xffff, 0xffff, number,
                         number % 0x40, 0, number)
    return header + bytes([number % 256]) * (MAD_BYTES - 24)


def main():
    library = ctypes.CDLL("libibumad.so.3")
    port = library.umad_open_port(None, 1)
    agent = library.umad_register(port, 1, 1, 0, None)
    head = library.umad_size()
    manager = int(sys.argv[1])
    sent = 0
    for number in range(1, TRAPS + 1):
        for mad in (trap(number), malformed(number)):
            buffer = ctypes.create_string_buffer(bytes(head) + mad, head + MAD_BYTES)
            library.umad_set_addr(buffer, manager, 0, 0, 0)
            sent += library.umad_send(port, agent, buffer, MAD_BYTES, 0, 0) == 0
    print(f"{sent // 2} sent")


main()
