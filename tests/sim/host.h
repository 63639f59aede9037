// Host: a node with what an application sets up on it: a PD, a CQ, perhaps an SRQ, an arena; and
// the steps that bring QPs up.
#pragma once

#include "tests/sim/arena.h"
#include "tests/sim/world.h"

namespace verbena::sim {

// The attributes of one side of a connection. The peer's are told to connect().
struct QPConfig {
  MTU path_mtu = MTU::k1024;
  PSN psn{0};  // of what this side sends
  u8 max_rd_atomic = 4, max_dest_rd_atomic = 4;
  u8 ack_timeout = 12, retry_count = 7, rnr_retry_count = 7, min_rnr_timer = 5;
  u8 traffic_class = 0;
  AccessFlags remote_access = Access::kRemoteRead | Access::kRemoteWrite |
                              AccessFlags(Access::kRemoteAtomic) | Access::kFlushGlobal;
};

struct Host {
  Host(World& world, Node& node, u64 iova);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void add_srq(u32 depth, u32 max_sge);
  void add_xrc_srq(u32 depth, u32 max_sge);  // and its domain
  QueuePair* create_qp(QPType type, const SendQueueLimits& send, const ReceiveQueueLimits& receive,
                       bool use_srq);
  QueuePair* create_xrc_target();
  void reset(QueuePair* qp);
  // Everything made here is destroyed. Returns what is left that should not be.
  [[nodiscard]] std::optional<std::string> tear_down();

  World& world;
  Node& node;
  ProtectionDomain* pd = nullptr;
  CompletionQueue* cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  XRCDomain* xrcd = nullptr;
  std::vector<QueuePair*> qps;
  Arena arena;
};

// The addresses of the two hosts; `ipv6`: and of which kind.
[[nodiscard]] DeviceConfig device_config(u32 index, u64 seed, bool ipv6);
[[nodiscard]] AddressVector path_to(const Host& from, const Host& to, u8 traffic_class = 0);
// Reset to RTS, RC, UC, or an XRC initiator and a target.
void connect(Host& a, QueuePair* qp_a, const QPConfig& config_a, Host& b, QueuePair* qp_b,
             const QPConfig& config_b);
void bring_up_ud(Host& host, QueuePair* qp, QKey q_key, PSN psn);

}  // namespace verbena::sim
