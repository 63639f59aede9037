// A device on a loopback address of this process alone, and rdma_cm IDs on it: server and client
// are the same process. Every wait has a limit.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::test {

// An event, with what of it lasts longer than its acknowledgement.
struct Event {
  int type = -1;  // -1: none came
  int status = 0;
  rdma_cm_id* id = nullptr;
  rdma_cm_id* listener = nullptr;
  std::string data;
  rdma_conn_param conn{};
  rdma_ud_param ud{};
};

class RDMACMTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  static const std::string& own_address();  // "127.x.y.1"
  static sockaddr_in address(const std::string& text, std::uint16_t port);
  static sockaddr_in6 address6(const std::string& text, std::uint16_t port);
  template <typename Address>
  static sockaddr* any(Address& address) {
    return reinterpret_cast<sockaddr*>(&address);
  }

  // Destroyed with the test, unless the test does it.
  rdma_cm_id* make_id(rdma_port_space space = RDMA_PS_TCP);
  void destroy(rdma_cm_id* id);
  rdma_cm_id* make_listener(rdma_port_space space = RDMA_PS_TCP);
  // To our own address, with address and route resolved.
  rdma_cm_id* make_resolved(std::uint16_t port, rdma_port_space space = RDMA_PS_TCP);
  void make_qp(rdma_cm_id* id, ibv_qp_type type = IBV_QPT_RC);

  // The next event, acknowledged.
  Event next_event();
  Event expect_event(int type);
  bool has_event(int wait_ms) const;

  static rdma_conn_param with_data(const std::string& data);
  static std::uint16_t port_of(rdma_cm_id* id) { return ntohs(rdma_get_src_port(id)); }

  struct Pair {
    rdma_cm_id *client, *server;
  };
  Pair connect_pair();  // both with a QP, and established

  rdma_event_channel* channel = nullptr;

 private:
  std::vector<rdma_cm_id*> ids_;
};

}  // namespace verbena::test
