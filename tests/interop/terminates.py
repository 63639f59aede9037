"""The TERMINATE messages of RDMAP in a capture of one iWARP connection without markers. RFC 5040,
4.8; RFC 5041, 4; RFC 5044, 4."""

import dataclasses
import pathlib
import socket
import struct

PCAP_HEADER, RECORD_HEADER, ETHERNET_HEADER = 24, 16, 14
IPV4, TCP, SYN = 0x0800, 6, 0x02
MPA_HEADER, UNTAGGED_HEADER = 20, 18
TAGGED, OPCODE, TERMINATE = 0x80, 0x0f, 7


@dataclasses.dataclass(frozen=True)
class Terminate:
    sender: str
    layer: int
    type: int
    code: int


def frames(file):
    """Ethernet frames of a little-endian pcap, as tcpdump writes it here."""
    stream = pathlib.Path(file).read_bytes()
    at = PCAP_HEADER
    while at + RECORD_HEADER <= len(stream):
        size = struct.unpack_from("<I", stream, at + 8)[0]
        at += RECORD_HEADER
        yield stream[at:at + size]
        at += size


def segments(file):
    """(sender, sequence number, flags, payload) of each TCP segment over IPv4."""
    for frame in frames(file):
        ip = frame[ETHERNET_HEADER:]
        if struct.unpack_from(">H", frame, 12)[0] != IPV4 or ip[9] != TCP:
            continue
        ip = ip[:struct.unpack_from(">H", ip, 2)[0]]
        tcp = ip[(ip[0] & 0x0f) * 4:]
        yield (socket.inet_ntoa(ip[12:16]), struct.unpack_from(">I", tcp, 4)[0], tcp[13],
               tcp[(tcp[12] >> 4) * 4:])


def streams(file):
    """The bytes of each sender, in order."""
    first, stream = {}, {}
    for sender, sequence, flags, payload in segments(file):
        if flags & SYN:
            first[sender], stream[sender] = sequence + 1, bytearray()
        if sender not in first:
            continue
        at = (sequence - first[sender]) % 2 ** 32
        if payload and at <= len(stream[sender]):
            stream[sender][at:at + len(payload)] = payload
    return stream


def ulpdus(stream):
    """Those of the FPDUs behind the frame of MPA."""
    if len(stream) < MPA_HEADER:
        return
    at = MPA_HEADER + struct.unpack_from(">H", stream, MPA_HEADER - 2)[0]
    while at + 2 <= len(stream):
        size = struct.unpack_from(">H", stream, at)[0]
        yield stream[at + 2:at + 2 + size]
        at += (2 + size + 3) // 4 * 4 + 4


def terminates(file, reversed_by):
    """`reversed_by`: the sender that swaps layer and type, as siw does."""
    found = []
    for sender, stream in streams(file).items():
        for ulpdu in ulpdus(stream):
            if len(ulpdu) < UNTAGGED_HEADER + 2 or ulpdu[0] & TAGGED:
                continue
            if ulpdu[1] & OPCODE != TERMINATE:
                continue
            high, low = divmod(ulpdu[UNTAGGED_HEADER], 16)
            layer, kind = (low, high) if sender == reversed_by else (high, low)
            found.append(Terminate(sender, layer, kind, ulpdu[UNTAGGED_HEADER + 1]))
    return found
