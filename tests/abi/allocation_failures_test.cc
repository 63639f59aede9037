// No exception leaves a verb: memory is refused to each allocation of a call in turn, and the call
// fails with ENOMEM or succeeds without that memory. Afterwards everything can be destroyed, so
// nothing is left half made.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

#include "tests/abi/verbs_fixture.h"
#include "tests/support/refused_allocations.h"

#ifdef VERBENA_CAN_REFUSE_ALLOCATIONS

namespace verbena::test {
namespace {

struct AllocationFailuresTest : VerbsTest {
  template <typename T>
  static void refuse_each_allocation_of(const std::function<T*()>& make, int (*destroy)(T*)) {
    test::refuse_each_allocation_of<T>(make, [&](T* made) { return destroy(made) == 0; });
  }

  std::array<char, 4096> buffer_{};
};

TEST_F(AllocationFailuresTest, Contexts) {
  ibv_device* const device = context->device;
  refuse_each_allocation_of<ibv_context>([&] { return verbs.open_device(device); },
                                         verbs.close_device);
}

TEST_F(AllocationFailuresTest, DeviceLists) {
  test::refuse_each_allocation_of([&] {
    ibv_device** const list = verbs.get_device_list(nullptr);
    if (list != nullptr) verbs.free_device_list(list);
    return list != nullptr;
  });
}

TEST_F(AllocationFailuresTest, ObjectsOfAContext) {
  refuse_each_allocation_of<ibv_pd>([&] { return verbs.alloc_pd(context); }, verbs.dealloc_pd);
  refuse_each_allocation_of<ibv_comp_channel>([&] { return verbs.create_comp_channel(context); },
                                              verbs.destroy_comp_channel);
  refuse_each_allocation_of<ibv_cq>(
      [&] { return verbs.create_cq(context, 16, nullptr, nullptr, 0); }, verbs.destroy_cq);
  refuse_each_allocation_of<ibv_td>(
      [&] {
        ibv_td_init_attr attr{};
        return ibv_alloc_td(context, &attr);
      },
      ibv_dealloc_td);
  refuse_each_allocation_of<ibv_xrcd>(
      [&] {
        ibv_xrcd_init_attr attr{};
        attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        attr.fd = -1;
        return ibv_open_xrcd(context, &attr);
      },
      ibv_close_xrcd);
  refuse_each_allocation_of<ibv_dm>(
      [&] {
        ibv_alloc_dm_attr attr{};
        attr.length = 4096;
        return ibv_alloc_dm(context, &attr);
      },
      ibv_free_dm);
}

TEST_F(AllocationFailuresTest, ObjectsOfAProtectionDomain) {
  refuse_each_allocation_of<ibv_mr>(
      [&] { return verbs.reg_mr(pd, buffer_.data(), buffer_.size(), kAllAccess); }, verbs.dereg_mr);
  refuse_each_allocation_of<ibv_mw>([&] { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); },
                                    ibv_dealloc_mw);
  refuse_each_allocation_of<ibv_ah>(
      [&] {
        ibv_ah_attr route = loopback_route();
        return verbs.create_ah(pd, &route);
      },
      verbs.destroy_ah);
  refuse_each_allocation_of<ibv_srq>(
      [&] {
        ibv_srq_init_attr attr{.srq_context = nullptr,
                               .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
        return verbs.create_srq(pd, &attr);
      },
      verbs.destroy_srq);
}

TEST_F(AllocationFailuresTest, QPs) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD})
    refuse_each_allocation_of<ibv_qp>(
        [&] {
          ibv_qp_init_attr attr = qp_attributes(type);
          return verbs.create_qp(pd, &attr);
        },
        verbs.destroy_qp);
  refuse_each_allocation_of<ibv_qp>(
      [&] {
        const ibv_qp_init_attr basic = qp_attributes(IBV_QPT_RC);
        ibv_qp_init_attr_ex attr{};
        attr.send_cq = attr.recv_cq = cq;
        attr.qp_type = IBV_QPT_RC;
        attr.cap = basic.cap;
        attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.pd = pd;
        attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
        return ibv_create_qp_ex(context, &attr);
      },
      verbs.destroy_qp);
  EXPECT_EQ(verbs.destroy_cq(cq), 0) << "no QP is left";
}

// The refused request is told, and the adapter is not left locked.
TEST_F(AllocationFailuresTest, Work) {
  test::refuse_each_allocation_of([&] {
    const int armed = std::exchange(allocations_left, -1);
    ibv_qp *qp = make_qp(), *peer = make_qp();
    connect(qp, peer);
    ibv_recv_wr receive = recv_wr(1, nullptr), *bad_receive = nullptr;
    ibv_send_wr send = send_wr(2, IBV_WR_SEND, nullptr), *bad_send = nullptr;
    ibv_wc wc{};
    allocations_left = armed;
    const int receive_error = ibv_post_recv(peer, &receive, &bad_receive);
    const int send_error = ibv_post_send(qp, &send, &bad_send);
    static_cast<void>(ibv_poll_cq(cq, 1, &wc));
    allocations_left = -1;
    EXPECT_EQ(bad_receive, receive_error == 0 ? nullptr : &receive);
    EXPECT_EQ(bad_send, send_error == 0 ? nullptr : &send);
    EXPECT_EQ(verbs.destroy_qp(qp), 0);
    EXPECT_EQ(verbs.destroy_qp(peer), 0);
    errno = std::max(receive_error, send_error);
    return errno == 0;
  });
}

}  // namespace
}  // namespace verbena::test

#endif
