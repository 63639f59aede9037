// Uses an R_Key that it has told its peer to invalidate.
#include "loop.h"

__attribute__((noinline)) static void write_it(struct loop *l, uint32_t rkey) {
  post(l->a, IBV_WR_RDMA_WRITE, piece(l, 8), IBV_SEND_SIGNALED, (uintptr_t)l->memory + 64, rkey);
  wait_for(l->cq);
}

int main(int argc, char **argv) {
  struct loop l = connected_loop();
  struct ibv_mw *mw = ibv_alloc_mw(l.pd, IBV_MW_TYPE_2);
  struct ibv_mr *mr = ibv_reg_mr(l.pd, l.memory, kSize,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                     IBV_ACCESS_MW_BIND);
  struct ibv_send_wr *bad, bind = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
  bind.bind_mw.mw = mw;
  bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  bind.bind_mw.bind_info.mr = mr;
  bind.bind_mw.bind_info.addr = (uintptr_t)l.memory;
  bind.bind_mw.bind_info.length = kSize;
  bind.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  require(ibv_post_send(l.b, &bind, &bad) == 0 && wait_for(l.cq).status == IBV_WC_SUCCESS, "bind");
  if (!is_wrong(argc, argv)) write_it(&l, mw->rkey);
  post_receive(l.b, piece(&l, 64));
  post(l.a, IBV_WR_SEND_WITH_INV, piece(&l, 8), IBV_SEND_SIGNALED, 0, mw->rkey);
  wait_for(l.cq);
  wait_for(l.cq);
  if (is_wrong(argc, argv)) write_it(&l, mw->rkey);
  ibv_destroy_qp(l.a);
  ibv_destroy_qp(l.b);
  ibv_dealloc_mw(mw);
  ibv_dereg_mr(mr);
  l.a = make_qp(&l, l.cq, 0);
  l.b = make_qp(&l, l.cq, 0);
  close_loop(&l);
  return 0;
}
