"""A tour of pyverbs: objects of every kind, traffic of RC QPs, atomics, memory windows, completion
channels, extended QPs and CQs. Run on a device named verbena0 by pyverbs_test.py.
"""

import time
import unittest

from pyverbs import addr, cq, device, enums as e, mr, pd, qp, wr
from pyverbs.pyverbs_error import PyverbsRDMAError

LIMIT_S = 30


class Side:
    """One end of a connection: a QP, and memory that both ends may use in every way."""

    def __init__(self, context, gid_index, qp_type=None, extended=False):
        self.context, self.gid_index = context, gid_index
        self.pd = pd.PD(context)
        self.channel = cq.CompChannel(context)
        if extended:
            self.cq = cq.CQEX(context, cq.CqInitAttrEx(
                cqe=64, wc_flags=e.IBV_WC_EX_WITH_BYTE_LEN | e.IBV_WC_EX_WITH_QP_NUM))
        else:
            self.cq = cq.CQ(context, 64, None, self.channel, 0)
        self.rights = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE |
                       e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC |
                       e.IBV_ACCESS_MW_BIND)
        self.mr = mr.MR(self.pd, 4096, self.rights)
        attributes = qp.QPAttr(port_num=1)  # for Init
        attributes.qp_access_flags = self.rights & ~e.IBV_ACCESS_MW_BIND
        cap = qp.QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=2, max_recv_sge=2)
        qp_type = e.IBV_QPT_RC if qp_type is None else qp_type
        if extended:
            operations = (e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_RDMA_WRITE |
                          e.IBV_QP_EX_WITH_SEND_WITH_IMM)
            init = qp.QPInitAttrEx(
                qp_type=qp_type, scq=self.cq, rcq=self.cq, cap=cap, pd=self.pd, sq_sig_all=1,
                comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                send_ops_flags=operations)
            self.qp = qp.QPEx(context, init, attributes)
        else:
            init = qp.QPInitAttr(qp_type=qp_type, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1)
            self.qp = qp.QP(self.pd, init, attributes)

    def connect(self, peer):
        route = addr.GlobalRoute(dgid=peer.context.query_gid(1, peer.gid_index),
                                 sgid_index=self.gid_index)
        attributes = qp.QPAttr(port_num=1)
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.dest_qp_num = peer.qp.qp_num
        attributes.rq_psn, attributes.sq_psn = 7, 7
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1
        attributes.min_rnr_timer, attributes.timeout = 12, 14
        attributes.retry_cnt = attributes.rnr_retry = 7
        attributes.ah_attr = addr.AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(attributes)

    def sge(self, offset, length):
        return [wr.SGE(self.mr.buf + offset, length, self.mr.lkey)]

    def complete(self):
        """The next completion, which must be a success."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            count, found = self.cq.poll(1)
            if count:
                assert found[0].status == e.IBV_WC_SUCCESS, found[0]
                return found[0]
        raise AssertionError("no completion in time")

    def complete_extended(self):
        deadline = time.monotonic() + LIMIT_S
        attributes = cq.PollCqAttr()
        while time.monotonic() < deadline:
            if self.cq.start_poll(attributes) == 0:
                result = (self.cq.status, self.cq.read_opcode(), self.cq.read_byte_len())
                self.cq.end_poll()
                assert result[0] == e.IBV_WC_SUCCESS, result
                return result
        raise AssertionError("no completion in time")


class Tour(unittest.TestCase):
    GID_INDEX = 3

    def setUp(self):
        self.context = device.Context(name="verbena0")
        self.addCleanup(self.context.close)

    def pair(self, **options):
        sides = [Side(self.context, self.GID_INDEX, **options) for _ in range(2)]
        sides[0].connect(sides[1])
        sides[1].connect(sides[0])
        return sides

    def test_device(self):
        self.assertEqual([d.name.decode() for d in device.get_device_list()], ["verbena0"])
        self.assertGreater(self.context.query_device().max_qp, 1000)
        port = self.context.query_port(1)
        self.assertEqual((port.state, port.link_layer), (e.IBV_PORT_ACTIVE, 2))
        self.assertEqual(len(self.context.query_gid_table(8)), port.gid_tbl_len)
        self.assertEqual(self.context.query_gid_type(1, 3), e.IBV_GID_TYPE_SYSFS_ROCE_V2)
        self.assertEqual(self.context.query_pkey(1, 0), 0xffff)
        self.assertTrue(self.context.query_device_ex().comp_mask is not None)

    def test_send_and_receive(self):
        a, b = self.pair()
        for size in (0, 1, 1024, 4000):
            text = bytes(i * 5 % 251 for i in range(size))
            a.mr.write(text, size)
            b.mr.write(bytes(size), size)
            b.qp.post_recv(wr.RecvWR(wr_id=1, num_sge=1, sg=b.sge(0, 4096)))
            a.qp.post_send(wr.SendWR(wr_id=2, num_sge=1, sg=a.sge(0, size)))
            received = b.complete()
            self.assertEqual((received.wr_id, received.byte_len), (1, size))
            self.assertEqual(a.complete().wr_id, 2)
            self.assertEqual(b.mr.read(size, 0), text)

    def test_write_and_read(self):
        a, b = self.pair()
        a.mr.write(b"verbena!" * 128, 1024)
        write = wr.SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=a.sge(0, 1024))
        write.set_wr_rdma(b.mr.rkey, b.mr.buf + 1024)
        a.qp.post_send(write)
        a.complete()
        self.assertEqual(b.mr.read(1024, 1024), b"verbena!" * 128)
        read = wr.SendWR(opcode=e.IBV_WR_RDMA_READ, num_sge=1, sg=a.sge(2048, 1024))
        read.set_wr_rdma(b.mr.rkey, b.mr.buf + 1024)
        a.qp.post_send(read)
        a.complete()
        self.assertEqual(a.mr.read(1024, 2048), b"verbena!" * 128)

    def test_atomics(self):
        a, b = self.pair()
        b.mr.write((40).to_bytes(8, "little"), 8)
        add = wr.SendWR(opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD, num_sge=1, sg=a.sge(0, 8))
        add.set_wr_atomic(b.mr.rkey, b.mr.buf, 2)
        a.qp.post_send(add)
        a.complete()
        self.assertEqual(int.from_bytes(a.mr.read(8, 0), "little"), 40)
        swap = wr.SendWR(opcode=e.IBV_WR_ATOMIC_CMP_AND_SWP, num_sge=1, sg=a.sge(0, 8))
        swap.set_wr_atomic(b.mr.rkey, b.mr.buf, 42, 1000)
        a.qp.post_send(swap)
        a.complete()
        self.assertEqual(int.from_bytes(b.mr.read(8, 0), "little"), 1000)

    def test_windows(self):
        """Bound with a right too many, local write, as programs do."""
        a, b = self.pair()
        window = mr.MW(b.pd, e.IBV_MW_TYPE_1)
        rights = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_LOCAL_WRITE
        info = mr.MWBindInfo(b.mr, b.mr.buf, 64, rights)
        b.qp.bind_mw(window, mr.MWBind(info, e.IBV_SEND_SIGNALED))
        b.complete()
        a.mr.write(b"w" * 64, 64)
        write = wr.SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=a.sge(0, 64))
        write.set_wr_rdma(window.rkey, b.mr.buf)
        a.qp.post_send(write)
        a.complete()
        self.assertEqual(b.mr.read(64, 0), b"w" * 64)
        window.close()

    def test_events(self):
        a, b = self.pair()
        b.cq.req_notify(False)
        b.qp.post_recv(wr.RecvWR(num_sge=1, sg=b.sge(0, 64)))
        a.qp.post_send(wr.SendWR(num_sge=1, sg=a.sge(0, 64)))
        b.channel.get_cq_event(b.cq)
        b.cq.ack_events(1)
        b.complete()

    def test_extended(self):
        a, b = self.pair(extended=True)
        a.mr.write(b"x" * 100, 100)
        b.qp.post_recv(wr.RecvWR(num_sge=1, sg=b.sge(0, 4096)))
        a.qp.wr_start()
        a.qp.wr_id, a.qp.wr_flags = 5, e.IBV_SEND_SIGNALED
        a.qp.wr_send()
        a.qp.wr_set_sge(a.sge(0, 100)[0])
        a.qp.wr_id = 6
        a.qp.wr_rdma_write(b.mr.rkey, b.mr.buf + 2048)
        a.qp.wr_set_sge(a.sge(0, 100)[0])
        a.qp.wr_complete()
        self.assertEqual(b.complete_extended(), (0, e.IBV_WC_RECV, 100))
        self.assertEqual(a.complete_extended()[1], e.IBV_WC_SEND)
        self.assertEqual(a.complete_extended()[1], e.IBV_WC_RDMA_WRITE)
        self.assertEqual(b.mr.read(100, 0), b"x" * 100)
        self.assertEqual(b.mr.read(100, 2048), b"x" * 100)

    def test_registering_again_keeps_the_key(self):
        with pd.PD(self.context) as domain, mr.MR(domain, 64, e.IBV_ACCESS_LOCAL_WRITE) as region:
            before = region.rkey
            region.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0,
                         e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ)
            self.assertEqual(region.rkey, before)

    def test_refusals(self):
        with pd.PD(self.context) as domain:
            with self.assertRaises(PyverbsRDMAError):
                mr.MR(domain, 64, e.IBV_ACCESS_REMOTE_WRITE)  # without local write
        with self.assertRaises(PyverbsRDMAError):
            self.context.query_gid(1, 1000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
