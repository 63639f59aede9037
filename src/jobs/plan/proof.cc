#include "jobs/plan/proof.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "congestion/presets.h"
#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

constexpr u32 kMostSenders = 63, kLeastSenders = 7;
constexpr u64 kSharedBytes = 1u << 20;  // that other ports have left, beside all headroom
constexpr u64 kReserveBytes = 4096;     // of each port
constexpr u64 kFlowBytes = 1'000'000;
constexpr i64 kPicosecondsPerMetre = 5000;
constexpr u64 kSearchBytes = 512;  // how exactly the least headroom is looked for
constexpr Duration kStretch = us(100), kLongest = ms(500);

enum class Control : u8 { kDCQCN, kNone };
enum class Lossless : u8 { kPFC, kNone };

struct Setup {
  u64 headroom = 0;
  Control control = Control::kDCQCN;
  Lossless lossless = Lossless::kPFC;
  u64 shared_bytes = kSharedBytes;
};

// Headroom and reserve of all ports, and little besides. Ports: of the senders, the target, the
// bystander and the link to B.
u64 buffer_bytes(const Setup& setup, u32 senders) {
  return (u64{senders} + 3) * (setup.headroom + kReserveBytes) + setup.shared_bytes;
}

// Returns the cable's delay, and half of the time of PHYs and a response: the headroom has that
// time once, and the link twice.
Duration slow_delay(const Tuning& tuning) {
  const u64 bytes = tuning.headroom.phy + tuning.headroom.response;
  const Duration hardware = ps(static_cast<i64>(static_cast<double>(bytes) * 8e12 / 2 /
                                                static_cast<double>(tuning.link.rate.bps())));
  return ps(i64{tuning.link.cable_metres} * kPicosecondsPerMetre) + hardware;
}

class Incast final : public fabric::Trace {
 public:
  // `proof`: who sends how much, through which buffer.
  Incast(const ProofRequest& request, const Setup& setup, const Proof& proof)
      : request_(request), setup_(setup), proof_(proof) {
    link_ = {.rate = request.tuning.link.rate, .delay = slow_delay(request.tuning)};
    target_ = host_at(a_ = topology_.add_switch());
    bystander_ = host_at(a_);
    for (u32 i = 0; i < proof.senders; ++i) senders_.push_back(host_at(a_));
    b_ = topology_.add_switch();
    topology_.join(a_, b_, link_);
    uplink_ = {b_, 0};
    senders_.push_back(host_at(b_));
    victim_ = host_at(b_);
  }

  enum class Who : u8 { kAll, kVictim };
  ProofRun run(Who who, const Stop& stop) {
    fabric::Network network(topology_, config());
    network.set_trace(this);
    started_ = 0;
    if (who == Who::kAll)
      for (const fabric::NodeIndex sender : senders_)
        add(network, {.source = sender, .destination = target_, .bytes = proof_.bytes});
    add(network, {.source = victim_, .destination = bystander_, .bytes = proof_.bytes});
    for (Time end = Time() + kStretch; network.run(end) && end - Time() < kLongest;
         end = end + kStretch)
      if (network.flows_finished() == started_ ||
          stop({end - Time(), network.counters().events, {}}))
        break;
    ProofRun result{.name = {}, .headroom_bytes = setup_.headroom};
    result.drops = network.counters().drops;
    result.pauses = network.counters().pauses;
    result.marks = network.counters().marks;
    result.incast = last_incast_ - Time();
    result.longest_pause = paused_;
    result.is_finished = network.flows_finished() == started_;
    return result;
  }
  [[nodiscard]] Duration victim_time() const { return victim_end_ - Time(); }

 private:
  fabric::NodeIndex host_at(fabric::NodeIndex node) {
    const fabric::NodeIndex host = topology_.add_host();
    topology_.join(node, host, link_);
    return host;
  }
  void add(fabric::Network& network, const fabric::Flow& flow) {
    CHECK(network.add_flow(flow));
    ++started_;
  }
  fabric::NetworkConfig config() const {
    fabric::NetworkConfig config = request_.network;
    config.technology = fabric::Technology::kRoCEv2;
    config.faults = {};
    config.threads = 1;
    config.switches.forwarding = {};  // what has come is in the buffer
    config.switches.pfc.enabled = setup_.lossless == Lossless::kPFC;
    config.switches.buffer.size = buffer_bytes(setup_, proof_.senders);
    config.switches.buffer.reserve = kReserveBytes;
    config.host = [this, usual = request_.network.host](const fabric::LinkConfig& link) {
      fabric::HostConfig host = usual(link);
      host.device.congestion =
          *congestion_named(setup_.control == Control::kDCQCN ? "dcqcn" : "off", link.rate);
      return host;
    };
    config.switch_port = [this](const fabric::LinkConfig&) {
      fabric::SwitchPortConfig port;
      port.buffer.headroom = static_cast<u32>(setup_.headroom);
      port.marking.k_min = request_.tuning.ecn.k_min;
      port.marking.k_max = request_.tuning.ecn.k_max;
      port.marking.p_max = request_.tuning.ecn.p_max;
      return port;
    };
    return config;
  }
  void on_flow_finished(u32 flow, Time now) override {
    if (flow + 1 == started_)
      victim_end_ = now;
    else
      last_incast_ = std::max(last_incast_, now);
  }
  void on_pause_received(fabric::NodeIndex node, u32 port, u32, u32 quanta, Time now) override {
    if (node != uplink_.first || port != uplink_.second) return;
    if (is_paused_) paused_ = paused_ + (now - paused_since_);
    is_paused_ = quanta != 0;
    paused_since_ = now;
  }

  const ProofRequest& request_;
  const Setup setup_;
  const Proof& proof_;
  fabric::Topology topology_;
  fabric::LinkConfig link_;
  fabric::NodeIndex a_ = 0, b_ = 0, target_ = 0, bystander_ = 0, victim_ = 0;
  std::vector<fabric::NodeIndex> senders_;
  std::pair<fabric::NodeIndex, u32> uplink_;
  u32 started_ = 0;
  Time victim_end_, last_incast_, paused_since_;
  bool is_paused_ = false;
  Duration paused_;
};

ProofRun run_with(const ProofRequest& request, const Setup& setup, const Proof& proof,
                  const Stop& stop) {
  Incast alone(request, setup, proof);
  (void)alone.run(Incast::Who::kVictim, stop);
  Incast incast(request, setup, proof);
  ProofRun run = incast.run(Incast::Who::kAll, stop);
  if (run.is_finished)
    run.victim_slowdown = incast.victim_time().seconds() / alone.victim_time().seconds();
  return run;
}

u64 least_headroom(const ProofRequest& request, const Proof& proof, const Stop& stop) {
  u64 lossy = 0, enough = request.tuning.headroom.sum();
  while (enough - lossy > kSearchBytes) {
    const u64 between = (lossy + enough) / 2;
    const Setup setup{.headroom = between, .control = Control::kNone};
    const ProofRun run = Incast(request, setup, proof).run(Incast::Who::kAll, stop);
    (run.drops == 0 ? enough : lossy) = between;
  }
  return enough;
}

}  // namespace

bool Proof::holds() const {
  return runs.size() >= 3 && runs[0].drops == 0 && runs[0].is_finished && runs[1].drops == 0 &&
         runs[1].is_finished && runs[2].drops != 0;
}

Proof prove(const ProofRequest& request, const Stop& stop) {
  Proof proof;
  proof.senders =
      std::clamp(request.ports < 3 ? 0 : request.ports - 3, kLeastSenders, kMostSenders);
  const u64 computed = request.tuning.headroom.sum();
  proof.bytes = kFlowBytes;
  proof.least_headroom_bytes = least_headroom(request, proof, stop);
  const auto run = [&](std::string_view name, const Setup& setup) {
    proof.runs.push_back(run_with(request, setup, proof, stop));
    proof.runs.back().name = name;
  };
  run("as computed", {.headroom = computed});
  run("DCQCN off", {.headroom = computed, .control = Control::kNone});
  run("DCQCN off, too little headroom",
      {.headroom = proof.least_headroom_bytes * 9 / 10, .control = Control::kNone});
  run("DCQCN off, no PFC", {.headroom = 0, .control = Control::kNone, .lossless = Lossless::kNone});
  run("as computed, buffer free",
      {.headroom = computed, .shared_bytes = request.network.switches.buffer.size});
  return proof;
}

std::string text_of(const ProofRequest& request, const Proof& proof) {
  const u64 computed = request.tuning.headroom.sum();
  std::string text = fmt::format(
      "{} hosts send {} each to one, through a switch whose buffer is taken but for {} and the\n"
      "headroom; links of {} and {} m, PHYs and responses as slow as IEEE 802.3 allows\n",
      proof.senders + 1, fabric::bytes_text(proof.bytes), fabric::bytes_text(kSharedBytes),
      fabric::rate_text(static_cast<double>(request.tuning.link.rate.bps())),
      request.tuning.link.cable_metres);
  text += fmt::format("  {:<32} {:>10} {:>7} {:>7} {:>9} {:>10} {:>9}\n", "settings", "headroom",
                      "drops", "pauses", "incast", "paused", "victim");
  for (const ProofRun& run : proof.runs)
    text += fmt::format("  {:<32} {:>10} {:>7} {:>7} {:>9} {:>10} {:>9}\n", run.name,
                        fabric::bytes_text(run.headroom_bytes), run.drops, run.pauses,
                        run.is_finished ? fabric::duration_text(run.incast) : "never",
                        fabric::duration_text(run.longest_pause),
                        run.is_finished ? fmt::format("{:.2f} x", run.victim_slowdown) : "-");
  return text +
         fmt::format(
             "  {}: with {} or more nothing is dropped here, which is {:.0f} % of the {} "
             "computed\n",
             proof.holds() ? "proven" : "NOT proven",
             fabric::bytes_text(proof.least_headroom_bytes),
             100 * static_cast<double>(proof.least_headroom_bytes) / static_cast<double>(computed),
             fabric::bytes_text(computed));
}

}  // namespace verbena::jobs
