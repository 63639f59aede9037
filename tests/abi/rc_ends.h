// RCEnds: two RC QPs of this process that are connected to each other, and a request from one to
// the other. A test chooses the way that the request takes and the kind of the target's memory, and
// changes either end before it posts the request.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "tests/abi/verbs_fixture.h"
#include "tests/support/end_memory.h"

namespace verbena::test {

struct Way {
  const char* name;
  ibv_wr_opcode opcode;
  std::uint32_t length;
  std::uint32_t shift = 0;  // of the target in its page, against the source
  unsigned flags = 0;
  int pieces = 1;                  // elements of the scatter/gather list
  bool takes_from_an_srq = false;  // the peer's receives are in an SRQ
};

inline bool is_send(const Way& way) {
  return way.opcode == IBV_WR_SEND || way.opcode == IBV_WR_SEND_WITH_IMM;
}
inline bool takes_receive(const Way& way) {
  return is_send(way) || way.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
inline bool is_rdma(const Way& way) { return !is_send(way); }
inline bool is_write(const Way& way) {
  return way.opcode == IBV_WR_RDMA_WRITE || way.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
inline bool is_read(const Way& way) { return way.opcode == IBV_WR_RDMA_READ; }
inline bool is_atomic(const Way& way) {
  return way.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || way.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}
inline bool is_answered(const Way& way) { return is_read(way) || is_atomic(way); }
inline bool is_inline(const Way& way) { return (way.flags & IBV_SEND_INLINE) != 0; }

// The right that the request needs at the target.
inline int right_of(const Way& way) {
  return is_write(way)  ? IBV_ACCESS_REMOTE_WRITE
         : is_read(way) ? IBV_ACCESS_REMOTE_READ
                        : IBV_ACCESS_REMOTE_ATOMIC;
}

// The kind of the target's memory. kOfAGPU: of both ends'.
using Memory = EndMemory::Kind;

class RCEnds : public VerbsTest {
 public:
  static constexpr int kRemote =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  static constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | kRemote;
  static constexpr std::uint32_t kSize = EndMemory::kSize;

  struct Attributes {
    std::uint8_t max_dest_rd_atomic = 4;  // of the peer
    ibv_mtu peer_mtu = IBV_MTU_1024;
    std::uint32_t sq_psn = 100;
    std::uint8_t timeout = 14, retry_cnt = 7;  // 67 ms
    std::uint8_t rnr_retry = 0;
    ibv_qp_state peer_state = IBV_QPS_RTS;
    // The peer's idea of us, if it is wrong.
    const ibv_qp* peers_peer = nullptr;
    std::uint8_t peers_last_byte = 0;  // of the destination of its path
  };

  // --- connections
  // Both ends anew. A peer in RESET, INIT or ERR does not answer.
  void reconnect(const Attributes& to);
  void reconnect_peer(const Attributes& to);
  void set_state_of_peer(ibv_qp_state state) const { set_state(peer_, state); }
  void set_own_state(ibv_qp_state state) const { set_state(qp_, state); }
  void change_rights_of_peer(unsigned access) const;
  void destroy_peer();
  // So that both ends are at another PSN than they began with.
  void exchange_a_message();
  [[nodiscard]] ibv_qp* another_qp();

  // --- the target's region
  void replace_target(int access) { replace_target_in(pd, access); }
  void move_target() { replace_target_in(other_pd_, kAll); }
  void deregister_target() const { ASSERT_EQ(verbs.dereg_mr(remote_mr_), 0); }
  // The same region with other properties: ibv_rereg_mr.
  void change_rights_of_target(int access);
  void change_domain_of_target();
  void halve_target();

  // --- a window to the target in place of its region
  struct Window {
    ibv_mw_type type = IBV_MW_TYPE_2;
    int access = kRemote;
    std::uint64_t offset = 0, length = kSize;
    bool is_of_another_qp = false;
  };
  void open_window(const Window& window);
  void close_window();

  // --- our own region
  void replace_own(int access) { replace_own_in(pd, access); }
  void move_own() { replace_own_in(other_pd_, kAll); }
  void deregister_own() const { ASSERT_EQ(verbs.dereg_mr(local_mr_), 0); }

  // --- pages
  void protect_last_page_of_target(int protection) const;

  // Receives are posted, but not before the request has found none.
  void post_receives_late();

  [[nodiscard]] const Way& way() const { return way_; }

  std::optional<EndMemory> here, there;
  // The parameters of the request.
  ibv_sge sge{};
  std::uint64_t target = 0;
  std::uint32_t r_key = 0;
  std::uint32_t receive_length = 0, receive_key = 0;
  int receives = 2;

 protected:
  RCEnds(const Way& way, Memory memory) : way_(way), memory_(memory) {}
  void SetUp() override;
  void TearDown() override;

  ibv_send_wr request(std::uint64_t wr_id);
  void post_receives(int count) const;
  [[nodiscard]] ibv_qp_state state_of(ibv_qp* of) const;
  // Posts the request and waits for it, as nothing is wrong yet. All that the way prepares is then
  // there.
  void do_without_refusal();

  ibv_cq* peer_cq_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;

 private:
  void make_qps();
  void fill_both(char own, char targets);
  void set_state(ibv_qp* of, ibv_qp_state state) const;
  void connect_one(ibv_qp* of, const ibv_qp* to, const Attributes& attributes,
                   ibv_qp_state last) const;
  void to_rtr_of(ibv_qp* of, const ibv_qp* to, const Attributes& attributes) const;
  void replace_target_in(ibv_pd* domain, int access);
  void replace_own_in(ibv_pd* domain, int access);
  void aim_at_region();
  void reregister_target(int flags, ibv_pd* domain, std::size_t length, int access);
  void post_receive(ibv_sge* room, std::uint64_t wr_id) const;

  const Way& way_;
  const Memory memory_;
  ibv_pd* other_pd_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_mr *local_mr_ = nullptr, *remote_mr_ = nullptr;
  ibv_mw* mw_ = nullptr;
  ibv_qp* binder_ = nullptr;  // the window's QP
  std::vector<ibv_sge> pieces_;
  std::uint64_t content_of_target_ = 0;  // its 8 bytes, for atomics
  std::thread late_poster_;
  void* gpu_context_ = nullptr;
};

}  // namespace verbena::test
