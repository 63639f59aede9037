#!/usr/bin/env python3
"""One scripted conversation of two sides over verbs, completions and data checked on both.

usage: conversation.py passive SCENARIO PORT
       conversation.py active SCENARIO PORT PASSIVE_ADDRESS

The sides meet over TCP. VP_DEV and VP_GID name device and GID index; VP_LOSE is a command that makes
packets to this side get lost: VP_LOSE nth N | all | random PERCENT | none.
Exit status 0: everything was as expected.
"""

import dataclasses
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

AREA = 65536     # what this side sends from, then what it receives into
SIZE = 2 * AREA
Q_KEY = 0x11111111
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
          | e.IBV_ACCESS_REMOTE_ATOMIC | e.IBV_ACCESS_MW_BIND)
OPERATIONS = {"send": e.IBV_WR_SEND, "send_imm": e.IBV_WR_SEND_WITH_IMM,
              "send_inv": e.IBV_WR_SEND_WITH_INV, "write": e.IBV_WR_RDMA_WRITE,
              "write_imm": e.IBV_WR_RDMA_WRITE_WITH_IMM, "read": e.IBV_WR_RDMA_READ,
              "cas": e.IBV_WR_ATOMIC_CMP_AND_SWP, "faa": e.IBV_WR_ATOMIC_FETCH_AND_ADD}
TYPES = {"rc": e.IBV_QPT_RC, "uc": e.IBV_QPT_UC, "ud": e.IBV_QPT_UD}
OK = e.IBV_WC_SUCCESS
SIZES = (0, 1, 64, 1023, 1024, 3000, 40000)


def pattern(active, size):
    """What a side's own area holds: never the same on both."""
    step, first = (7, 3) if active else (11, 101)
    return bytes((first + step * i + i // 256) & 0xff for i in range(size))


def lose(*what):
    subprocess.run([*os.environ["VP_LOSE"].split(), *map(str, what)], check=True)


class Side:
    def __init__(self, active, port, peer, kind="rc", timeout=14, retries=7, rnr_timer=14,
                 rnr_retries=7, access=ACCESS):
        self.active, self.kind = active, kind
        stream = self.dial(peer, port) if active else self.answer(port)
        # Two files: one for both throws away what it has read ahead when it is written to.
        self.hears, self.tells = stream.makefile("r"), stream.makefile("w")
        context = Context(name=os.environ["VP_DEV"])
        gid_index = int(os.environ["VP_GID"])
        self.pd, self.cq = PD(context), CQ(context, 256, None, None, 0)
        self.mr = MR(self.pd, SIZE, ACCESS)
        self.mr.write(pattern(active, AREA), AREA, 0)
        self.mr.write(bytes(AREA), AREA, AREA)
        attributes = QPAttr()
        attributes.port_num, attributes.qkey = 1, Q_KEY
        attributes.qp_access_flags = access & ~e.IBV_ACCESS_MW_BIND
        psn = 0xfffffa if active else 0x7ffffc  # both wrap or change sign soon
        attributes.sq_psn = psn
        capacity = QPCap(max_send_wr=64, max_recv_wr=64, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=TYPES[kind], scq=self.cq, rcq=self.cq,
                                         sq_sig_all=1, cap=capacity), attributes)
        self.tell({"qpn": self.qp.qp_num, "psn": psn, "gid": str(context.query_gid(1, gid_index)),
                   "address": self.mr.buf, "rkey": self.mr.rkey})
        self.peer = self.hear()
        route = GlobalRoute(dgid=GID(self.peer["gid"]), sgid_index=gid_index, hop_limit=64)
        path = AHAttr(port_num=1, is_global=1, gr=route)
        if kind == "ud":
            self.ah = AH(self.pd, attr=path)
        else:
            attributes.path_mtu = e.IBV_MTU_1024
            attributes.dest_qp_num, attributes.rq_psn = self.peer["qpn"], self.peer["psn"]
            attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 4
            attributes.timeout, attributes.retry_cnt = timeout, retries
            attributes.min_rnr_timer, attributes.rnr_retry = rnr_timer, rnr_retries
            attributes.ah_attr = path
            self.qp.to_rts(attributes)
        self.meet()

    @staticmethod
    def dial(address, port):
        return socket.create_connection((address, port), timeout=40)

    @staticmethod
    def answer(port):
        door = socket.create_server(("", port))
        return door.accept()[0]

    def tell(self, what):
        self.tells.write(json.dumps(what) + "\n")
        self.tells.flush()

    def hear(self):
        return json.loads(self.hears.readline())

    def meet(self):
        self.tell("here")
        assert self.hear() == "here"

    # --- work requests and completions

    def receive(self, size=AREA, count=1):
        for index in range(count):
            self.qp.post_recv(RecvWR(wr_id=100 + index, num_sge=1,
                                     sg=[SGE(self.mr.buf + AREA, size, self.mr.lkey)]))

    def post(self, operation, size, remote=AREA, rkey=None, imm=None, swap=0, compare_add=0, local=0,
             flags=0):
        wr = SendWR(wr_id=1, opcode=OPERATIONS[operation], num_sge=1,
                    sg=[SGE(self.mr.buf + local, size, self.mr.lkey)],
                    send_flags=flags | e.IBV_SEND_SIGNALED,
                    imm_data=socket.htonl(imm) if imm is not None else 0)
        rkey = self.peer["rkey"] if rkey is None else rkey
        if operation in ("cas", "faa"):
            wr.set_wr_atomic(rkey, self.peer["address"] + remote, compare_add,
                             swap)
        elif operation.startswith("write") or operation == "read":
            wr.set_wr_rdma(rkey, self.peer["address"] + remote)
        if self.kind == "ud":
            wr.set_wr_ud(self.ah, self.peer["qpn"], Q_KEY)
        self.qp.post_send(wr)

    def completions(self, count, limit_s=30):
        found, deadline = [], time.monotonic() + limit_s
        while len(found) < count and time.monotonic() < deadline:
            number, wcs = self.cq.poll()
            found += wcs or []
            if not number:
                time.sleep(0.001)
        for wc in found:
            print(f"  completion wr_id={wc.wr_id} status={wc.status} length={wc.byte_len}")
        assert len(found) == count, f"{len(found)} of {count} completions came"
        return found

    def expect(self, *statuses):
        """The next completion has one of these."""
        status = self.completions(1)[0].status
        assert status in statuses, f"status {status}, not one of {statuses}"

    def do(self, operation, size, *statuses, **options):
        print(operation, size, options)
        self.post(operation, size, **options)
        self.expect(*(statuses or (OK,)))

    # --- memory

    def own(self, size, at=0):
        return self.mr.read(size, at)

    def received(self, size):
        return self.mr.read(size, AREA)

    def check(self, data, expected, what):
        assert data == expected, f"{what}: the data differ"


# --- scenarios: one function for each side ---------------------------------------------------------


def send_active(side):
    for size in SIZES:
        side.do("send", size)
        side.meet()
    side.meet()
    side.do("send", 64, flags=e.IBV_SEND_SOLICITED)
    side.do("send_imm", 2500, imm=0x11223344)


def send_passive(side):
    for size in SIZES:
        side.receive()
        wc = side.completions(1)[0]
        assert (wc.status, wc.byte_len) == (OK, size), wc
        side.check(side.received(size), pattern(True, size), f"SEND of {size}")
        side.meet()
    side.receive(count=2)
    side.meet()
    last = side.completions(2)[1]
    assert (last.status, last.byte_len) == (OK, 2500) and last.wc_flags & e.IBV_WC_WITH_IMM
    assert socket.ntohl(last.imm_data) == 0x11223344


def write_active(side):
    for size in SIZES:
        side.do("write", size)
        side.do("write_imm", 0, imm=size)
        side.meet()
    side.do("write_imm", 5000, imm=0xfedcba98)


def write_passive(side):
    for size in SIZES:
        wc = side.completions(1)[0]
        assert (wc.status, socket.ntohl(wc.imm_data)) == (OK, size)
        side.check(side.received(size), pattern(True, size), f"WRITE of {size}")
        side.meet()
    wc = side.completions(1)[0]
    assert (wc.byte_len, socket.ntohl(wc.imm_data)) == (5000, 0xfedcba98)


def read_active(side):
    for size in SIZES:
        side.do("read", size, remote=0, local=AREA)
        side.check(side.received(size), pattern(False, size), f"READ of {size}")
    for index in range(8):  # more than the four that may be under way
        side.post("read", 1500, remote=1500 * index, local=AREA + 1500 * index)
    assert all(wc.status == OK for wc in side.completions(8))
    side.check(side.received(12000), pattern(False, 12000), "eight READs")


COUNTER = 0x1122334455667788


def atomic_active(side):
    side.meet()
    side.do("cas", 8, compare_add=COUNTER, swap=5)
    side.check(side.own(8), COUNTER.to_bytes(8, "little"), "COMPARE SWAP, the original")
    side.do("cas", 8, compare_add=COUNTER, swap=9)
    side.check(side.own(8), (5).to_bytes(8, "little"), "COMPARE SWAP that fails")
    for index in range(8):
        side.post("faa", 8, compare_add=3, local=8 * index)
    assert all(wc.status == OK for wc in side.completions(8))
    values = [int.from_bytes(side.own(8, 8 * index), "little") for index in range(8)]
    assert values == [5 + 3 * index for index in range(8)], values


def set_counter(side):
    side.mr.write(COUNTER.to_bytes(8, "little"), 8, AREA)
    side.meet()


def check_counter(side):
    value = int.from_bytes(side.received(8), "little")
    assert value == 5 + 24, value


def unreliable_active(side):
    side.do("send", 64)
    side.do("send_imm", 700 if side.kind == "ud" else 2500, imm=7)
    if side.kind == "uc":
        side.do("write", 2500, remote=AREA + 10000)
        side.do("write_imm", 64, imm=0x05060708, remote=AREA + 20000)


def unreliable_passive(side):
    header = 40 if side.kind == "ud" else 0  # the GRH
    wcs = side.completions(2 if side.kind == "ud" else 3)
    assert all(wc.status == OK for wc in wcs)
    side.check(side.received(header + 64)[header:], pattern(True, 64), "SEND")
    assert wcs[1].byte_len == header + (700 if side.kind == "ud" else 2500)
    assert socket.ntohl(wcs[1].imm_data) == 7
    if side.kind == "uc":
        side.check(side.own(2500, AREA + 10000), pattern(True, 2500), "WRITE")


def rnr_active(side):
    side.post("send", 64)
    time.sleep(0.3)
    side.tell("posted")
    side.expect(OK)


def rnr_passive(side):
    assert side.hear() == "posted"
    side.receive()
    side.expect(OK)


def window_active(side):
    key = side.hear()
    side.do("write", 64, rkey=key)
    side.do("send_inv", 16, imm=socket.htonl(key))
    side.do("write", 64, e.IBV_WC_REM_ACCESS_ERR, rkey=key)


def window_passive(side):
    window = MW(side.pd, e.IBV_MW_TYPE_2)
    wr = SendWR(wr_id=2, opcode=e.IBV_WR_BIND_MW, send_flags=e.IBV_SEND_SIGNALED)
    wr.set_bind_wr(window, MWBindInfo(side.mr, side.mr.buf, SIZE, e.IBV_ACCESS_REMOTE_WRITE))
    side.qp.post_send(wr)
    side.expect(OK)
    side.tell(wr.rkey)
    wc = side.completions(1)[0]
    is_told = wc.wc_flags & e.IBV_WC_WITH_INV or "rxe" in os.environ["VP_DEV"]  # rxe never tells
    assert wc.status == OK and is_told


def refused(operation, size, *statuses, **options):
    def active(side):
        if "other_key" in options:
            options["rkey"] = side.peer["rkey"] ^ options.pop("other_key")
        side.do(operation, size, *statuses, **options)
        side.post("write", 8)  # the QP is in Error
        side.expect(e.IBV_WC_WR_FLUSH_ERR)
    return active


def lost_request_active(side):
    side.meet()
    for _ in range(6):
        side.post("send", 64)
    assert all(wc.status == OK for wc in side.completions(6))


def lost_request_passive(side):
    lose("nth", 1)
    side.meet()
    try:
        assert all(wc.status == OK for wc in side.completions(6))
    finally:
        lose("none")


def lost_response_active(side):
    lose("nth", 1)
    side.do("read", 4096, remote=0, local=AREA)
    side.check(side.received(4096), pattern(False, 4096), "READ whose second response was lost")
    lose("none")
    lose("nth", 0)
    side.do("faa", 8, compare_add=7)  # repeated by the requester, executed once
    lose("none")
    assert int.from_bytes(side.own(8), "little") == 0


def check_once(side):
    assert int.from_bytes(side.received(8), "little") == 7


def lost_ack_active(side):
    lose("nth", 0)
    side.do("send", 64)
    side.do("send", 64)
    lose("none")


def silence_active(side):
    lose("all")
    try:
        side.do("send", 64, e.IBV_WC_RETRY_EXC_ERR)
    finally:
        lose("none")


def storm_active(side):
    """Random requests while each direction loses packets: what both memories hold is known."""
    numbers = random.Random(7)
    lose("random", 3)
    try:
        for _ in range(60):
            operation = numbers.choice(("write", "read"))
            size, at = numbers.randrange(1, 20000), numbers.randrange(0, AREA - 20000)
            if operation == "read":
                side.post("read", size, remote=at, local=AREA + at)
            else:
                side.post("write", size, remote=AREA + at, local=at)
            side.expect(OK)
            if operation == "read":
                side.check(side.own(size, AREA + at), pattern(False, AREA)[at:at + size], "READ")
        side.do("write", AREA)
    finally:
        lose("none")


def check_storm(side):
    side.check(side.received(AREA), pattern(True, AREA), "WRITEs under loss")


READ_ONLY = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ


def nothing(_):
    pass


REFUSED = e.IBV_WC_REM_ACCESS_ERR
# Linux's responder answers a message that is too long with "remote operational error", where the
# specification has "invalid request" (IBTA Vol 1, 9.9.3); a requester hears either.
TOO_LONG = (e.IBV_WC_REM_INV_REQ_ERR, e.IBV_WC_REM_OP_ERR)
SHORT = {"retries": 3, "rnr_retries": 3}


@dataclasses.dataclass
class Scenario:
    active: Callable
    passive: Callable = nothing  # at the same time
    after: Callable = nothing    # what the passive side checks when the active side is done
    receives: int = 0            # posted by the passive side before it begins
    receive_size: int = AREA
    settings: dict = dataclasses.field(default_factory=dict)  # of both QPs


SCENARIOS = {
    "send": Scenario(send_active, send_passive),
    "write": Scenario(write_active, write_passive, receives=len(SIZES) + 1),
    "read": Scenario(read_active),
    "atomic": Scenario(atomic_active, set_counter, check_counter),
    "uc": Scenario(unreliable_active, unreliable_passive, receives=3, settings={"kind": "uc"}),
    "ud": Scenario(unreliable_active, unreliable_passive, receives=2, settings={"kind": "ud"}),
    "rnr": Scenario(rnr_active, rnr_passive),
    "rnr-exceeded": Scenario(lambda side: side.do("send", 64, e.IBV_WC_RNR_RETRY_EXC_ERR),
                             settings=SHORT),
    "window-invalidated": Scenario(window_active, window_passive, receives=1),
    "wrong-rkey-write": Scenario(refused("write", 64, REFUSED, other_key=0x100)),
    "wrong-rkey-read": Scenario(refused("read", 64, REFUSED, other_key=0x100)),
    "wrong-rkey-atomic": Scenario(refused("faa", 8, REFUSED, other_key=0x100)),
    "bounds-write": Scenario(refused("write", 2048, REFUSED, remote=SIZE - 100)),
    "bounds-read": Scenario(refused("read", 2048, REFUSED, remote=SIZE - 100)),
    "no-right": Scenario(refused("write", 64, REFUSED, e.IBV_WC_REM_INV_REQ_ERR),
                         settings={"access": READ_ONLY}),
    "too-long": Scenario(refused("send", 64, *TOO_LONG), receives=1, receive_size=32),
    "lost-request": Scenario(lost_request_active, lost_request_passive, receives=6),
    "lost-ack": Scenario(lost_ack_active, receives=2),
    "lost-response": Scenario(lost_response_active, after=check_once),
    "silence": Scenario(silence_active, receives=1, settings=SHORT),
    "storm": Scenario(storm_active, after=check_storm),
}


def main():
    role, name, port, *peer = sys.argv[1:]
    is_active, scenario = role == "active", SCENARIOS[name]
    side = Side(is_active, int(port), peer[0] if peer else None, **scenario.settings)
    if is_active:
        side.meet()
        scenario.active(side)
        side.meet()
    else:
        side.receive(scenario.receive_size, scenario.receives)
        side.meet()
        scenario.passive(side)
        side.meet()
        scenario.after(side)
    print("as expected")


if __name__ == "__main__":
    main()
