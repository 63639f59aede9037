"""One mistake of RDMA programs, made on purpose, by pyverbs on a device named verbena0; run by
explain_test.py.

usage: explain_mistakes.py MISTAKE {alone|two}    alone: both ends are in one process
       explain_mistakes.py many alone             the same one with many QPs

Exits 0 when the error that the mistake leads to has come.
"""

import json
import os
import sys
import time

from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs import addr, cq, device, enums as e, mr, pd, qp, srq, wr

LIMIT_S = 30
ALL = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
       e.IBV_ACCESS_REMOTE_ATOMIC)
GID_INDEX = 3
SIZE = 8192


class Side:
    """One end: a QP in Init, and a region."""

    def __init__(self, context, region=ALL, access=ALL, cqe=64, with_srq=False):
        self.context = context
        self.pd = pd.PD(context)
        self.cq = cq.CQ(context, cqe, None, None, 0)
        self.mr = mr.MR(self.pd, SIZE, region)
        self.other_pd = pd.PD(context)
        self.mr_of_other_pd = mr.MR(self.other_pd, SIZE, ALL)
        self.read_only = mr.MR(self.pd, SIZE, 0)
        attributes = qp.QPAttr(port_num=1)
        attributes.qp_access_flags = access
        cap = qp.QPCap(max_send_wr=100, max_recv_wr=16, max_send_sge=2, max_recv_sge=2)
        self.srq = srq.SRQ(self.pd, srq.SrqInitAttr(srq.SrqAttr(max_wr=16))) if with_srq else None
        init = qp.QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1,
                             srq=self.srq)
        self.qp = qp.QP(self.pd, init, attributes)

    def introduction(self):
        return {"gid": str(self.context.query_gid(1, GID_INDEX)), "qpn": self.qp.qp_num,
                "rkey": self.mr.rkey, "address": self.mr.buf}

    def connect(self, peer, max_rd_atomic=1, rnr_retry=2, timeout=15):
        route = addr.GlobalRoute(dgid=addr.GID(peer["gid"]), sgid_index=GID_INDEX)
        attributes = qp.QPAttr(port_num=1)
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.dest_qp_num = peer["qpn"]
        attributes.rq_psn, attributes.sq_psn = 7, 7
        attributes.max_rd_atomic, attributes.max_dest_rd_atomic = max_rd_atomic, 1
        attributes.min_rnr_timer, attributes.timeout = 6, timeout
        attributes.retry_cnt, attributes.rnr_retry = 7, rnr_retry
        attributes.ah_attr = addr.AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(attributes)

    def receive(self, length=SIZE, lkey=None):
        sge = wr.SGE(self.mr.buf, length, self.mr.lkey if lkey is None else lkey)
        self.qp.post_recv(wr.RecvWR(0x22, 1, [sge]))

    def post(self, opcode, peer, length=64, lkey=None, rkey=None, offset=0, address=None):
        sge = wr.SGE(self.mr.buf if address is None else address, length,
                     self.mr.lkey if lkey is None else lkey)
        request = wr.SendWR(0x11, opcode=opcode, num_sge=1, sg=[sge])
        key = peer["rkey"] if rkey is None else rkey
        if opcode in (e.IBV_WR_ATOMIC_FETCH_AND_ADD, e.IBV_WR_ATOMIC_CMP_AND_SWP):
            request.set_wr_atomic(key, peer["address"] + offset, 1, 0)
        elif opcode != e.IBV_WR_SEND:
            request.set_wr_rdma(key, peer["address"] + offset)
        self.qp.post_send(request)

    def wait(self, wanted):
        """For a completion with the status."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            count, completions = self.cq.poll()
            if count:
                if completions[0].status != wanted:
                    raise SystemExit(f"completion with status {completions[0].status}, not {wanted}")
                return
        raise SystemExit(f"no completion within {LIMIT_S} s")


WRITE, READ, SEND = e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_READ, e.IBV_WR_SEND
ADD = e.IBV_WR_ATOMIC_FETCH_AND_ADD

# Where no answer can come: all retries, soon. Elsewhere they last longer than a busy machine lets a
# peer wait for its turn.
NO_PATIENCE = {"timeout": 8}

# By mistake: how the ends are made, what the responder does before, what the requester posts, and
# the status.
MISTAKES = {
    "none": dict(post=(WRITE, {}), status=e.IBV_WC_SUCCESS),
    "unknown-rkey": dict(post=(WRITE, {"rkey": 0x1234}), status=e.IBV_WC_REM_ACCESS_ERR),
    "out-of-bounds": dict(post=(WRITE, {"offset": SIZE - 8}), status=e.IBV_WC_REM_ACCESS_ERR),
    "region-not-writable": dict(responder={"region": e.IBV_ACCESS_REMOTE_READ}, post=(WRITE, {}),
                                status=e.IBV_WC_REM_ACCESS_ERR),
    "write-not-enabled": dict(responder={"access": e.IBV_ACCESS_REMOTE_READ}, post=(WRITE, {}),
                              status=e.IBV_WC_REM_INV_REQ_ERR),
    "read-not-enabled": dict(responder={"access": e.IBV_ACCESS_REMOTE_WRITE}, post=(READ, {}),
                             status=e.IBV_WC_REM_INV_REQ_ERR),
    "unaligned-atomic": dict(post=(ADD, {"length": 8, "offset": 4}),
                             status=e.IBV_WC_REM_INV_REQ_ERR),
    "long-message": dict(receive={"length": 100}, post=(SEND, {"length": 2000}),
                         status=e.IBV_WC_REM_INV_REQ_ERR),
    "receive-lkey": dict(receive={"lkey": 0x1234}, post=(SEND, {}), status=e.IBV_WC_REM_OP_ERR),
    "no-receive": dict(post=(SEND, {}), status=e.IBV_WC_RNR_RETRY_EXC_ERR),
    "empty-srq": dict(responder={"with_srq": True}, post=(SEND, {}),
                      status=e.IBV_WC_RNR_RETRY_EXC_ERR),
    "unknown-lkey": dict(post=(WRITE, {"lkey": 0x1234}), status=e.IBV_WC_LOC_PROT_ERR),
    "lkey-of-other-pd": dict(post=(WRITE, lambda side: {"lkey": side.mr_of_other_pd.lkey}),
                             status=e.IBV_WC_LOC_PROT_ERR),
    "beyond-own-region": dict(post=(WRITE, lambda side: {"address": side.mr.buf + SIZE - 8}),
                              status=e.IBV_WC_LOC_PROT_ERR),
    "read-into-read-only": dict(
        post=(READ, lambda side: {"lkey": side.read_only.lkey, "address": side.read_only.buf}),
        status=e.IBV_WC_LOC_PROT_ERR),
    "no-rd-atomic": dict(connect={"max_rd_atomic": 0}, post=(READ, {}),
                         status=e.IBV_WC_LOC_QP_OP_ERR),
    "wrong-qpn": dict(peer={"qpn": 1000}, connect=NO_PATIENCE, post=(WRITE, {}),
                      status=e.IBV_WC_RETRY_EXC_ERR),
    "responder-in-init": dict(unconnected=True, connect=NO_PATIENCE, post=(WRITE, {}),
                              status=e.IBV_WC_RETRY_EXC_ERR),
    "responder-in-error": dict(broken=True, post=(WRITE, {}), status=e.IBV_WC_RETRY_EXC_ERR),
    "responder-ends": dict(ends=True, post=(WRITE, {}), status=e.IBV_WC_RETRY_EXC_ERR),
    "no-such-address": dict(peer={"gid": "0000:0000:0000:0000:0000:ffff:7fff:fffe"},
                            connect=NO_PATIENCE, post=(WRITE, {}),
                            status=e.IBV_WC_RETRY_EXC_ERR),
    "post-in-error": dict(own_error=True, post=(WRITE, {}), status=e.IBV_WC_WR_FLUSH_ERR),
    "small-cq": dict(requester={"cqe": 1}, times=100, post=(WRITE, {}), status=None),
}


def to_error(side):
    side.qp.modify(qp.QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)


def ready(side, mistake, requester):
    if "receive" in mistake:
        side.receive(**mistake["receive"])
    if not mistake.get("unconnected"):
        side.connect(requester)


def request(side, mistake, responder, before_post):
    peer = dict(responder)
    for name, value in mistake.get("peer", {}).items():
        peer[name] = value if name == "gid" else peer[name] + value
    side.connect(peer, **mistake.get("connect", {}))
    if mistake.get("ends") or mistake.get("broken"):
        side.post(WRITE, peer)
        side.wait(e.IBV_WC_SUCCESS)
    before_post()
    if mistake.get("own_error"):
        to_error(side)
    opcode, how = mistake["post"]
    for i in range(mistake.get("times", 1)):
        try:
            side.post(opcode, peer, **(how(side) if callable(how) else how))
        except PyverbsRDMAError:  # the CQ has overrun: it takes no more
            if i == 0:
                raise
            break
    if mistake["status"] is None:
        side.context.get_async_event().ack()
    else:
        side.wait(mistake["status"])
    time.sleep(0.05)  # the responder's words


def alone(context, mistake):
    requester = Side(context, **mistake.get("requester", {}))
    responder = Side(context, **mistake.get("responder", {}))
    ready(responder, mistake, requester.introduction())
    request(requester, mistake, responder.introduction(),
            lambda: to_error(responder) if mistake.get("broken") else None)


def two(open_device, mistake):
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    read, write = (to_child[0], to_parent[1]) if child == 0 else (to_parent[0], to_child[1])
    for end in to_child + to_parent:
        if end not in (read, write):
            os.close(end)
    source, sink = os.fdopen(read), os.fdopen(write, "w", buffering=1)
    side = Side(open_device(), **mistake.get("responder" if child == 0 else "requester", {}))
    sink.write(json.dumps(side.introduction()) + "\n")
    peer = json.loads(source.readline())
    if child == 0:
        ready(side, mistake, peer)
        sink.write("ready\n")
        if source.readline() and mistake.get("broken"):
            to_error(side)
        if mistake.get("ends"):
            os._exit(0)
        sink.write("done\n")
        source.readline()  # until the requester ends
        side.cq.poll()
        os._exit(0)

    def tell_responder():
        sink.write("go\n")
        os.waitpid(child, 0) if mistake.get("ends") else source.readline()

    source.readline()
    request(side, mistake, peer, tell_responder)
    sink.close()
    if not mistake.get("ends"):
        os.waitpid(child, 0)


def many(context):
    for _ in range(12):
        alone(context, MISTAKES["unknown-lkey"])


def main():
    if sys.argv[1] == "many":
        return many(device.Context(name="verbena0"))
    mistake, how = MISTAKES[sys.argv[1]], sys.argv[2]

    def open_device():
        return device.Context(name="verbena0")

    alone(open_device(), mistake) if how == "alone" else two(open_device, mistake)


if __name__ == "__main__":
    main()
