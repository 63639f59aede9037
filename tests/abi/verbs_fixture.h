// A device on the loopback address, opened, with a protection domain and a CQ; and pairs of QPs of
// this one process that are connected to each other.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/abi/verbs_library.h"

namespace verbena::test {

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND;

class VerbsTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // --- shorthands for what every test needs; a failure fails the test
  ibv_mr* register_all(void* address, std::size_t length, int access = kAllAccess);
  ibv_cq* make_cq(int depth = 64, ibv_comp_channel* channel = nullptr);
  ibv_qp_init_attr qp_attributes(ibv_qp_type type) const;
  ibv_qp* make_qp(ibv_qp_type type = IBV_QPT_RC);
  ibv_ah_attr loopback_route() const;

  // The transitions of ibv_modify_qp(3), each with just the attributes it needs. The errno value.
  int to_init(ibv_qp* qp) const;
  int to_rtr(ibv_qp* qp, std::uint32_t dest_qp_num) const;
  int to_rts(ibv_qp* qp) const;
  void connect(ibv_qp* a, ibv_qp* b) const;  // both to RTS
  void ready_ud(ibv_qp* qp) const;           // to RTS, with kQKey

  // Polls until a completion comes; a zero wr_id and IBV_WC_GENERAL_ERR when none does for long.
  ibv_wc wait_for_completion(ibv_cq* from) const;
  ibv_wc wait_for_completion() const { return wait_for_completion(cq); }

  static constexpr std::uint32_t kQKey = 0x11223344;
  static constexpr std::uint8_t kGIDIndex = 3;  // RoCE v2, IPv4

  const VerbsLibrary& verbs = VerbsLibrary::get();
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
};

[[nodiscard]] ibv_sge sge_of(const ibv_mr* mr, std::uint64_t offset, std::uint32_t length);
// A signaled request with one element.
[[nodiscard]] ibv_send_wr send_wr(std::uint64_t wr_id, ibv_wr_opcode opcode, ibv_sge* sge);
[[nodiscard]] ibv_recv_wr recv_wr(std::uint64_t wr_id, ibv_sge* sge);

int post(ibv_qp* qp, ibv_send_wr wr);
int post(ibv_qp* qp, ibv_recv_wr wr);

}  // namespace verbena::test
