// How an RCPlan is drawn: mostly small work, sometimes large; faults up to what retry_cnt 7
// survives.
#include "tests/sim/rc_workload.h"

namespace verbena::sim {
namespace {

constexpr double kMaxLoss = 0.05;

Faults draw_faults(PRNG& prng) {
  Faults faults;
  if (prng.chance(0.1)) return faults;
  faults.loss = draw_probability(prng, kMaxLoss);
  faults.reorder = draw_probability(prng, 0.05);
  faults.duplicate = draw_probability(prng, 0.05);
  faults.corrupt = draw_probability(prng, 0.02);
  faults.mark = draw_probability(prng, 0.05);
  faults.reorder_delay = us(static_cast<i64>(prng.in(1, 30)));
  return faults;
}

LinkConfig draw_link(PRNG& prng) {
  LinkConfig link;
  constexpr std::array<i64, 4> kRates = {25, 100, 200, 400};
  link.rate = gbps(kRates[prng.below(kRates.size())]);
  link.delay = ns(static_cast<i64>(prng.in(100, 20'000)));
  link.faults = draw_faults(prng);
  if (prng.chance(0.3)) link.coalesce = us(static_cast<i64>(prng.in(1, 20)));
  link.identification = static_cast<Identification>(prng.below(3));
  return link;
}

struct Size {
  u32 max_bytes, least_operations, most_operations, most_depth;
};

Size draw_size(PRNG& prng) {
  const u64 kind = prng.below(100);
  if (kind < 30) return {64, 10, 60, 32};
  if (kind < 70) return {4096, 10, 40, 32};
  if (kind < 95) return {65536, 4, 20, 8};
  return {400'000, 1, 4, 3};
}

PSN draw_psn(PRNG& prng) {
  if (prng.chance(0.4)) return PSN(0u - static_cast<u32>(prng.below(40)));  // wraps soon
  return PSN(static_cast<u32>(prng.next()));
}

void draw_qps(PRNG& prng, RCPlan& plan) {
  for (u32 i = 0; i < plan.connections; ++i) {
    std::array<QPConfig, 2> both;
    both[0].path_mtu = both[1].path_mtu = static_cast<MTU>(prng.in(1, 5));
    for (QPConfig& qp : both) {
      qp.psn = draw_psn(prng);
      qp.max_dest_rd_atomic = static_cast<u8>(prng.in(1, 16));
      qp.ack_timeout = static_cast<u8>(prng.in(10, 14));  // 4 to 67 ms
      qp.min_rnr_timer = static_cast<u8>(prng.in(1, 14));
      qp.traffic_class = 2;  // ECT(0)
    }
    both[0].max_rd_atomic = static_cast<u8>(prng.in(1, both[1].max_dest_rd_atomic));
    both[1].max_rd_atomic = static_cast<u8>(prng.in(1, both[0].max_dest_rd_atomic));
    plan.qps.push_back(both);
  }
}

// Timers that expire while the answer is on its way. Nothing else may then eat up the retries.
void make_impatient(PRNG& prng, RCPlan& plan) {
  plan.link.faults.loss = plan.link.faults.corrupt = 0;
  plan.link.delay = us(static_cast<i64>(prng.in(5, 20)));
  for (std::array<QPConfig, 2>& both : plan.qps)
    for (QPConfig& qp : both) qp.ack_timeout = static_cast<u8>(prng.in(3, 5));  // 33 to 131 us
}

}  // namespace

RCPlan RCPlan::draw(PRNG& prng) {
  RCPlan plan;
  plan.link = draw_link(prng);
  plan.ipv6 = prng.chance(0.3);
  constexpr std::array<u32, 4> kWindows = {4, 16, 128, 1024};
  for (std::size_t side = 0; side < 2; ++side) {
    plan.egress[side] = prng.chance(0.5) ? Egress::kPaced : Egress::kEager;
    plan.window_packets[side] = kWindows[prng.below(kWindows.size())];
    plan.window_bytes[side] = prng.chance(0.3) ? 16384 : 1u << 20;
  }
  // From never, over too early, to when most is over anyway.
  if (prng.chance(0.8)) plan.min_probe_timeout = us(static_cast<i64>(1u << prng.in(0, 12)));
  const Size size = draw_size(prng);
  plan.connections = static_cast<u32>(prng.chance(0.6) ? 1 : prng.in(2, 4));
  plan.operations =
      std::max(1u, static_cast<u32>(prng.in(size.least_operations, size.most_operations)) /
                       plan.connections);
  plan.max_bytes = size.max_bytes;
  plan.send_depth = static_cast<u32>(prng.in(1, size.most_depth));
  plan.receive_depth = static_cast<u32>(prng.in(1, size.most_depth));
  plan.max_sge = static_cast<u32>(prng.in(1, 6));
  plan.max_inline_bytes = prng.chance(0.5) ? static_cast<u32>(prng.in(0, 256)) : 0;
  plan.shared_receive_queue = prng.chance(0.3);
  plan.completion_events = prng.chance(0.3);
  if (plan.completion_events && prng.chance(0.5))
    plan.completions_per_event = static_cast<u32>(prng.in(1, 4));
  if (prng.chance(0.4)) plan.receive_delay = us(static_cast<i64>(prng.in(1, 500)));
  plan.posting_gap = us(static_cast<i64>(prng.in(1, 20)));
  draw_qps(prng, plan);
  if (size.max_bytes <= 4096 && prng.chance(0.2)) make_impatient(prng, plan);
  return plan;
}

RCPlan RCPlan::draw_xrc(PRNG& prng) {
  RCPlan plan = draw(prng);
  plan.xrc = plan.shared_receive_queue = true;
  return plan;
}

RCPlan RCPlan::with_selective_repeat(RCPlan plan, PRNG& prng) {
  const u64 ends = prng.in(1, 6);  // mostly both
  if (ends != 1) plan.retransmission[0] = Retransmission::kSelectiveRepeat;
  if (ends != 2) plan.retransmission[1] = Retransmission::kSelectiveRepeat;
  constexpr std::array<u32, 4> kReordering = {0, 1, 3, 32};
  plan.reordering_packets = kReordering[prng.below(kReordering.size())];
  if (prng.chance(0.5)) plan.link.faults.reorder = prng.chance(0.5) ? 0.2 : 0.8;
  return plan;
}

}  // namespace verbena::sim
