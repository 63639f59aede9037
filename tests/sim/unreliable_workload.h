// UnreliableWorkload: random UC or UD messages between two hosts, both ways at once, and the plain
// model: every send completes at once and in order; a message that arrives is one that was sent,
// whole, at an address it was sent to; nothing else in memory changes. On a calm run (no faults,
// receives in time) every message arrives, in order.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>

#include "tests/sim/host.h"

namespace verbena::sim {

struct UnreliablePlan {
  QPType type = QPType::kUC;
  LinkConfig link{};
  bool ipv6 = false;
  std::array<Egress, 2> egress{};
  bool calm = false;
  u32 qps = 1;  // on each host
  u32 operations = 20;
  u32 max_bytes = 4096;
  u32 receive_depth = 8, max_sge = 3, max_inline_bytes = 64;
  bool shared_receive_queue = false;
  Duration receive_delay{};
  MTU path_mtu = MTU::k1024;

  [[nodiscard]] static UnreliablePlan draw(PRNG& prng, QPType type);
};

class UnreliableWorkload {
 public:
  UnreliableWorkload(World& world, const UnreliablePlan& plan);
  ~UnreliableWorkload();
  [[nodiscard]] std::optional<std::string> run(Duration limit);

  u64 sent() const { return sent_; }
  u64 received() const { return received_; }

 private:
  struct Piece {
    u64 offset = 0;
    u32 length = 0;
  };
  struct Message {
    u32 from = 0;  // QP of the sender
    CompletionOp op = CompletionOp::kReceive;
    std::optional<u32> immediate;
    std::vector<u8> data;
    u64 written = 0;          // WRITE: where
    bool deliverable = true;  // false for a wrong Q_Key
    bool delivered = false;
  };
  struct Receive {
    u64 slot = 0;
    std::vector<Piece> pieces;
  };
  struct Site;
  struct End {
    Site* site = nullptr;
    u32 index = 0;
    QueuePair* qp = nullptr;
    QPN qpn;
    u32 left = 0;
    u64 next_wr_id = 0;
    std::deque<u64> signaled;      // wr_ids whose CQEs are to come, in order
    std::vector<Message> inbound;  // all that was ever sent to this QP
    std::size_t next_in_order = 0;
  };
  struct Site : Host {
    using Host::Host;
    u64 source = 0;
    MRKeys source_keys, landing_keys, target_keys;
    std::vector<u64> receive_slots;
    std::vector<u64> targets;  // of WRITEs: each is used once
    std::vector<std::unique_ptr<End>> ends;
    std::map<u64, Receive> receives;
    u64 next_receive_id = 0;
  };

  void lay_out(Site& site);
  void bring_up();
  void start(Site& site);
  void poll(Site& site);
  void post_receive(Site& site, End* end);
  void schedule_receive(Site& site, End* end);
  void post(End& end);
  std::vector<u8> gather(Site& site, SendWR& wr, std::vector<SGE>& sges);
  u32 draw_length();
  void on_cqe(Site& site, const CQE& cqe);
  void on_receive_cqe(End& end, const CQE& cqe);
  bool matches(const Message& message, const End& end, const CQE& cqe, Bytes data) const;
  Message* find(End& end, const CQE& cqe, Bytes data);
  void check_written(Site& site, const Message& message);
  std::optional<std::string> check_end();
  void fail(const Site& site, const std::string& what);

  World& world_;
  const UnreliablePlan plan_;
  PRNG prng_;
  std::array<std::unique_ptr<Site>, 2> sites_;
  u64 sent_ = 0, received_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace verbena::sim
