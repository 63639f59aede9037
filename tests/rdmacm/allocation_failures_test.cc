// No exception leaves a call of librdmacm: memory is refused to each allocation of a call in turn,
// and the call fails with ENOMEM or succeeds without that memory. Nothing is left half made.
#include <rdma/rsocket.h>

#include "tests/rdmacm/rdmacm_fixture.h"
#include "tests/support/refused_allocations.h"

#ifdef VERBENA_CAN_REFUSE_ALLOCATIONS

namespace verbena::test {
namespace {

struct RDMACMAllocationFailuresTest : RDMACMTest {
  static rdma_addrinfo* resolve() {
    rdma_addrinfo hints{};
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* found = nullptr;
    return rdma_getaddrinfo(own_address().c_str(), "7471", &hints, &found) == 0 ? found : nullptr;
  }
};

TEST_F(RDMACMAllocationFailuresTest, ChannelsAndIDs) {
  refuse_each_allocation_of<rdma_event_channel>([] { return rdma_create_event_channel(); },
                                                [](rdma_event_channel* made) {
                                                  rdma_destroy_event_channel(made);
                                                  return true;
                                                });
  for (const rdma_port_space space : {RDMA_PS_TCP, RDMA_PS_UDP})
    refuse_each_allocation_of<rdma_cm_id>(
        [&] {
          rdma_cm_id* id = nullptr;
          return rdma_create_id(channel, &id, nullptr, space) == 0 ? id : nullptr;
        },
        [](rdma_cm_id* id) { return rdma_destroy_id(id) == 0; });
}

TEST_F(RDMACMAllocationFailuresTest, DeviceAndAddressLists) {
  refuse_each_allocation_of<ibv_context*>([] { return rdma_get_devices(nullptr); },
                                          [](ibv_context** list) {
                                            rdma_free_devices(list);
                                            return true;
                                          });
  refuse_each_allocation_of<rdma_addrinfo>([] { return resolve(); },
                                           [](rdma_addrinfo* found) {
                                             rdma_freeaddrinfo(found);
                                             return true;
                                           });
}

// Each step on an ID of its own, which is destroyed whether the step succeeded or not.
TEST_F(RDMACMAllocationFailuresTest, StepsOfAnID) {
  const auto refuse_in = [this](const std::function<int(rdma_cm_id*)>& step) {
    refuse_each_allocation_of([&] {
      const int armed = std::exchange(allocations_left, -1);
      rdma_cm_id* id = nullptr;
      EXPECT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
      sockaddr_in here = address(own_address(), 0);
      errno = 0;
      allocations_left = armed;
      const bool done = rdma_bind_addr(id, any(here)) == 0 && step(id) == 0;
      const int error = errno;
      allocations_left = -1;
      EXPECT_EQ(rdma_destroy_id(id), 0);
      errno = error;
      return done;
    });
  };
  refuse_in([](rdma_cm_id*) { return 0; });
  refuse_in([](rdma_cm_id* id) { return rdma_listen(id, 4); });
  refuse_in([](rdma_cm_id* id) {
    ibv_qp_init_attr attr{};
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.qp_type = IBV_QPT_RC;
    if (rdma_create_qp(id, nullptr, &attr) != 0) return -1;
    rdma_destroy_qp(id);
    return 0;
  });
}

TEST_F(RDMACMAllocationFailuresTest, Rsockets) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM})
    refuse_each_allocation_of([&] {
      const int fd = rsocket(AF_INET, type, 0);
      allocations_left = -1;
      return fd >= 0 && rclose(fd) == 0;
    });
  refuse_each_allocation_of([&] {
    const int armed = std::exchange(allocations_left, -1);
    const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in here = address(own_address(), 0);
    errno = 0;
    allocations_left = armed;
    const bool done = rbind(fd, any(here), sizeof here) == 0 && rlisten(fd, 4) == 0;
    const int error = errno;
    allocations_left = -1;
    EXPECT_EQ(rclose(fd), 0);
    errno = error;
    return done;
  });
}

}  // namespace
}  // namespace verbena::test

#endif
