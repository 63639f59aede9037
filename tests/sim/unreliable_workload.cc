#include "tests/sim/unreliable_workload.h"

#include <algorithm>

#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/ib/grh.h"

namespace verbena::sim {
namespace {

constexpr u64 kSourceBytes = 64 * 1024;
constexpr u32 kEndShift = 40;
constexpr u32 kSendDepth = 64;
constexpr QKey kQKey{0x11111111};
constexpr QKey kWrongQKey{0x22222222};

// The 40 bytes before a datagram name its sender: an IPv6 header, or 20 bytes and an IPv4 one.
bool grh_tells(Bytes grh, const GID& source, const GID& destination) {
  if (source.is_ipv4()) {
    const std::optional<IPv4Header> ip = IPv4Header::decode(grh.subspan(20));
    return ip && ip->source == source.ipv4() && ip->destination == destination.ipv4();
  }
  const std::optional<IPv6Header> ip = IPv6Header::decode(grh);
  return ip && ip->source == source && ip->destination == destination;
}

}  // namespace

UnreliablePlan UnreliablePlan::draw(PRNG& prng, QPType type) {
  UnreliablePlan plan;
  plan.type = type;
  plan.ipv6 = prng.chance(0.3);
  plan.calm = prng.chance(0.2);
  plan.qps = static_cast<u32>(prng.in(1, 3));
  plan.operations = static_cast<u32>(prng.in(5, 40));
  plan.path_mtu = static_cast<MTU>(prng.in(1, 5));
  plan.max_bytes = type == QPType::kUD ? 4096 : prng.chance(0.2) ? 60'000 : 6000;
  plan.receive_depth = static_cast<u32>(prng.in(1, 16));
  plan.max_sge = static_cast<u32>(prng.in(2, 6));
  plan.shared_receive_queue = prng.chance(0.3);
  for (Egress& egress : plan.egress) egress = prng.chance(0.5) ? Egress::kPaced : Egress::kEager;
  plan.link.delay = ns(static_cast<i64>(prng.in(100, 20'000)));
  plan.link.identification = static_cast<Identification>(prng.below(3));
  if (prng.chance(0.3)) plan.link.coalesce = us(static_cast<i64>(prng.in(1, 20)));
  if (plan.calm) {  // each QP has a receive for whatever may come
    plan.receive_depth = plan.operations * plan.qps;
    plan.shared_receive_queue = false;
    return plan;
  }
  plan.link.faults = {.loss = draw_probability(prng, 0.3),
                      .reorder = draw_probability(prng, 0.2),
                      .duplicate = draw_probability(prng, 0.2),
                      .corrupt = draw_probability(prng, 0.1),
                      .mark = draw_probability(prng, 0.1)};
  if (prng.chance(0.5)) plan.receive_delay = us(static_cast<i64>(prng.in(1, 200)));
  return plan;
}

// --- set-up

UnreliableWorkload::UnreliableWorkload(World& world, const UnreliablePlan& plan)
    : world_(world), plan_(plan), prng_(world.prng().fork()) {
  for (u32 i = 0; i < 2; ++i) {
    Node& node = world.add_node(
        {.device = device_config(i, world.prng().next(), plan.ipv6), .egress = plan.egress[i]});
    sites_[i] = std::make_unique<Site>(world, node, prng_.below(u64{1} << 40) * 4096);
  }
  world.join(sites_[0]->node, sites_[1]->node, plan.link);
  for (const auto& site : sites_) {
    if (plan.shared_receive_queue) site->add_srq(plan.receive_depth, plan.max_sge);
    for (u32 i = 0; i < plan.qps; ++i) {
      End& end = *site->ends.emplace_back(std::make_unique<End>());
      end.site = site.get();
      end.index = i;
      end.left = plan.operations;
      end.qp = site->create_qp(
          plan.type,
          {.depth = kSendDepth, .max_sge = plan.max_sge, .max_inline_bytes = plan.max_inline_bytes},
          {.depth = plan.receive_depth, .max_sge = plan.max_sge}, plan.shared_receive_queue);
      end.qpn = site->node.device().attributes_of(end.qp).qpn;
    }
  }
  bring_up();
  for (const auto& site : sites_) lay_out(*site);
  for (const auto& site : sites_) start(*site);
}

UnreliableWorkload::~UnreliableWorkload() = default;

void UnreliableWorkload::bring_up() {
  for (u32 i = 0; i < plan_.qps; ++i) {
    std::array<QPConfig, 2> both;
    for (QPConfig& qp : both) {
      qp.path_mtu = plan_.path_mtu;
      qp.psn = PSN(prng_.chance(0.4) ? 0u - static_cast<u32>(prng_.below(40))
                                     : static_cast<u32>(prng_.next()));
    }
    End &a = *sites_[0]->ends[i], &b = *sites_[1]->ends[i];
    if (plan_.type == QPType::kUC) {
      connect(*sites_[0], a.qp, both[0], *sites_[1], b.qp, both[1]);
    } else {
      bring_up_ud(*sites_[0], a.qp, kQKey, both[0].psn);
      bring_up_ud(*sites_[1], b.qp, kQKey, both[1].psn);
    }
  }
}

void UnreliableWorkload::lay_out(Site& site) {
  Arena& arena = site.arena;
  const u64 slot_bytes = GRH::kSize + plan_.max_bytes + plan_.max_sge * 16;
  site.source = arena.carve(kSourceBytes);
  for (u32 i = 0; i < plan_.receive_depth * (plan_.shared_receive_queue ? 1 : plan_.qps); ++i)
    site.receive_slots.push_back(arena.carve(slot_bytes));
  const u64 landing_end = arena.carve(0);
  if (plan_.type == QPType::kUC)
    for (u32 i = 0; i < plan_.qps * plan_.operations; ++i)
      site.targets.push_back(arena.carve(plan_.max_bytes));
  const u64 targets_end = arena.carve(0);
  arena.seal();
  site.source_keys = arena.open(site.source, kSourceBytes, {});
  const u64 first = site.receive_slots.front();
  site.landing_keys = arena.open(first, landing_end - first, Access::kLocalWrite);
  site.target_keys = arena.open(landing_end, targets_end - landing_end,
                                Access::kLocalWrite | Access::kRemoteWrite);
}

void UnreliableWorkload::start(Site& site) {
  site.node.on_activity = [this, &site] { poll(site); };
  for (const auto& end : site.ends) {
    for (u32 i = 0; i < plan_.receive_depth && !plan_.shared_receive_queue; ++i)
      schedule_receive(site, end.get());
    world_.after(us(1), [this, e = end.get()] { post(*e); });
  }
  for (u32 i = 0; i < plan_.receive_depth && plan_.shared_receive_queue; ++i)
    schedule_receive(site, nullptr);
}

// --- the application

void UnreliableWorkload::poll(Site& site) {
  for (const CQE& cqe : site.node.poll(site.cq)) on_cqe(site, cqe);
}

void UnreliableWorkload::schedule_receive(Site& site, End* end) {
  const u64 most = static_cast<u64>(plan_.receive_delay.ps()) + 1;
  world_.after(ps(static_cast<i64>(prng_.below(most))),
               [this, &site, end] { post_receive(site, end); });
}

void UnreliableWorkload::post_receive(Site& site, End* end) {
  Receive receive;
  receive.slot = site.receive_slots.back();
  site.receive_slots.pop_back();
  u32 left = static_cast<u32>(GRH::kSize) + plan_.max_bytes;
  u64 offset = receive.slot;
  std::vector<SGE> sges;
  for (u32 i = 0; i < plan_.max_sge; ++i) {
    const u32 length = i + 1 == plan_.max_sge ? left : static_cast<u32>(prng_.below(u64{left} + 1));
    offset += prng_.below(16);
    receive.pieces.push_back({offset, length});
    sges.push_back({site.arena.address(offset), length, site.landing_keys.l_key});
    offset += length;
    left -= length;
  }
  const u64 owner = end == nullptr ? 0xff : end->index;
  const u64 wr_id = owner << kEndShift | site.next_receive_id++;
  site.receives[wr_id] = std::move(receive);
  const RecvWR wr{.wr_id = wr_id, .sg_list = sges};
  const PostError error = end == nullptr ? site.node.post_srq_receive(site.srq, wr)
                                         : site.node.post_receive(end->qp, wr);
  if (error != PostError::kOk) fail(site, "a receive was refused");
}

u32 UnreliableWorkload::draw_length() {
  const u32 mtu = bytes(plan_.path_mtu), most = plan_.max_bytes;
  switch (prng_.below(4)) {
    case 0: return static_cast<u32>(prng_.below(65));
    case 1: return std::min<u32>(most, mtu * static_cast<u32>(prng_.in(1, 5)));
    case 2: return std::min<u32>(most, mtu * static_cast<u32>(prng_.in(1, 5)) + 1);
    default: return static_cast<u32>(prng_.in(0, most));
  }
}

std::vector<u8> UnreliableWorkload::gather(Site& site, SendWR& wr, std::vector<SGE>& sges) {
  u32 left = draw_length();
  wr.inline_data = left <= plan_.max_inline_bytes && prng_.chance(0.5);
  std::vector<u8> data;
  for (u32 i = 0; i < plan_.max_sge; ++i) {
    const u32 length = i + 1 == plan_.max_sge ? left : static_cast<u32>(prng_.below(u64{left} + 1));
    const u64 offset = site.source + prng_.below(kSourceBytes - length + 1);
    sges.push_back({wr.inline_data ? reinterpret_cast<u64>(site.arena.host_pointer(offset))
                                   : site.arena.address(offset),
                    length, site.source_keys.l_key});
    const Bytes piece = site.arena.actual(offset, length);
    data.insert(data.end(), piece.begin(), piece.end());
    left -= length;
  }
  return data;
}

void UnreliableWorkload::post(End& end) {
  Site& site = *end.site;
  Site& peer = *sites_[end.site == sites_[0].get() ? 1 : 0];
  const bool ud = plan_.type == QPType::kUD;
  End& to = *peer.ends[ud ? prng_.below(plan_.qps) : end.index];
  SendWR wr;
  std::vector<SGE> sges;
  Message message;
  message.from = end.index;
  message.data = gather(site, wr, sges);
  wr.sg_list = sges;
  wr.wr_id = u64{end.index} << kEndShift | end.next_wr_id++;
  wr.signaled = prng_.chance(0.5);
  const bool write = !ud && prng_.chance(0.4);
  if (prng_.chance(0.4)) message.immediate = wr.immediate = static_cast<u32>(prng_.next());
  wr.op = message.immediate ? SendOp::kSendWithImmediate : SendOp::kSend;
  if (write) {
    wr.op = message.immediate ? SendOp::kRDMAWriteWithImmediate : SendOp::kRDMAWrite;
    message.op = CompletionOp::kReceiveRDMAWithImmediate;
    message.written = peer.targets.back();
    peer.targets.pop_back();
    wr.remote_address = peer.arena.address(message.written);
    wr.r_key = peer.target_keys.r_key;
  }
  if (ud) {
    message.deliverable = prng_.chance(0.9);
    wr.destination = path_to(site, peer);
    wr.dest_qp = to.qpn;
    wr.q_key = message.deliverable ? kQKey : kWrongQKey;
  }
  if (wr.signaled) end.signaled.push_back(wr.wr_id);
  to.inbound.push_back(std::move(message));
  ++sent_;
  if (site.node.post_send(end.qp, wr) != PostError::kOk) return fail(site, "a send was refused");
  if (--end.left != 0)
    world_.after(ns(static_cast<i64>(prng_.in(0, 5000))), [this, &end] { post(end); });
}

// --- completions

void UnreliableWorkload::on_cqe(Site& site, const CQE& cqe) {
  for (const auto& end : site.ends) {
    if (end->qpn != cqe.qp) continue;
    if (cqe.op == CompletionOp::kReceive || cqe.op == CompletionOp::kReceiveRDMAWithImmediate)
      return on_receive_cqe(*end, cqe);
    if (cqe.status != WQEStatus::kSuccess || end->signaled.empty() ||
        end->signaled.front() != cqe.wr_id)
      return fail(site, "not the completion that was due: " + to_string(cqe));
    end->signaled.pop_front();
    return;
  }
  fail(site, "a completion of no QP");
}

bool UnreliableWorkload::matches(const Message& message, const End& end, const CQE& cqe,
                                 Bytes data) const {
  const Site& sender = *sites_[end.site == sites_[0].get() ? 1 : 0];
  if (plan_.type == QPType::kUD && cqe.source_qp != sender.ends[message.from]->qpn) return false;
  if (message.op != cqe.op || message.immediate.has_value() != cqe.with_immediate) return false;
  if (message.immediate && *message.immediate != cqe.immediate) return false;
  if (!message.deliverable) return false;
  if (message.op == CompletionOp::kReceive) return std::ranges::equal(message.data, data);
  return message.data.size() == cqe.byte_length &&
         std::ranges::equal(message.data,
                            end.site->arena.actual(message.written, message.data.size()));
}

UnreliableWorkload::Message* UnreliableWorkload::find(End& end, const CQE& cqe, Bytes data) {
  if (!plan_.calm) {
    for (Message& message : end.inbound)
      if (matches(message, end, cqe, data)) return &message;
    return nullptr;
  }
  // In order from each sender; a plain WRITE leaves no completion.
  for (Message& message : end.inbound) {
    const bool silent = message.op != CompletionOp::kReceive && !message.immediate;
    if (message.delivered || silent || !message.deliverable) continue;
    if (matches(message, end, cqe, data)) return &message;
    if (plan_.type == QPType::kUC) return nullptr;  // from one sender only
  }
  return nullptr;
}

void UnreliableWorkload::on_receive_cqe(End& end, const CQE& cqe) {
  Site& site = *end.site;
  const auto found = site.receives.find(cqe.wr_id);
  if (found == site.receives.end()) return fail(site, "never posted: " + to_string(cqe));
  const Receive receive = std::move(found->second);
  site.receives.erase(found);
  site.receive_slots.push_back(receive.slot);
  schedule_receive(site, plan_.shared_receive_queue ? nullptr : &end);

  std::vector<u8> data;
  for (const Piece& piece : receive.pieces) {
    const Bytes bytes = site.arena.actual(piece.offset, piece.length);
    data.insert(data.end(), bytes.begin(), bytes.end());
    site.arena.accept(piece.offset, piece.length);  // an earlier, dropped message may have begun it
  }
  if (cqe.status != WQEStatus::kSuccess) {
    // A message that was dropped half-way has used up the SRQ's WQE.
    if (plan_.shared_receive_queue && plan_.type == QPType::kUC && !plan_.calm) return;
    return fail(site, "failed: " + to_string(cqe));
  }
  Bytes message_bytes = data;
  if (cqe.op == CompletionOp::kReceive) message_bytes = message_bytes.first(cqe.byte_length);
  if (plan_.type == QPType::kUD) {
    const Site& sender = *sites_[end.site == sites_[0].get() ? 1 : 0];
    if (!cqe.with_grh || cqe.byte_length < GRH::kSize ||
        !grh_tells(message_bytes.first(GRH::kSize), sender.node.device().config().gids[0].gid,
                   site.node.device().config().gids[0].gid))
      return fail(site, "a wrong GRH");
    message_bytes = message_bytes.subspan(GRH::kSize);
  }
  Message* const message = find(end, cqe, message_bytes);
  if (message == nullptr) return fail(site, "was never sent so: " + to_string(cqe));
  message->delivered = true;
  ++received_;
}

// --- the end

void UnreliableWorkload::fail(const Site& site, const std::string& what) {
  world_.timeline().note(world_.now(), site.node.index(), "FAILED: " + what);
  world_.stop();
  if (!failure_) failure_ = "node " + std::to_string(site.node.index()) + ": " + what;
}

std::optional<std::string> UnreliableWorkload::run(Duration limit) {
  if (!world_.run_until_idle(limit)) return failure_ ? failure_ : "it does not come to an end";
  if (!failure_) failure_ = check_end();
  return failure_;
}

// Each byte of a WRITE's target is as it was or as it was sent; all are, when it must have arrived.
void UnreliableWorkload::check_written(Site& site, const Message& message) {
  const Bytes now = site.arena.actual(message.written, message.data.size());
  const Bytes before = site.arena.expected(message.written, message.data.size());
  const bool whole = message.delivered || plan_.calm;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != message.data[i] && (whole || now[i] != before[i]))
      return fail(site, "a WRITE left wrong data");
  site.arena.accept(message.written, message.data.size());
}

std::optional<std::string> UnreliableWorkload::check_end() {
  for (const auto& site : sites_) {
    for (const auto& end : site->ends) {
      if (end->left != 0 || !end->signaled.empty()) return "sends are left";
      for (const Message& message : end->inbound) {
        const bool silent = message.op != CompletionOp::kReceive && !message.immediate;
        if (plan_.calm && message.deliverable && !silent && !message.delivered)
          return "a message is lost on a calm wire";
        if (message.op != CompletionOp::kReceive) check_written(*site, message);
      }
      if (site->node.device().attributes_of(end->qp).state != QPState::kRTS) return "not in RTS";
    }
    for (const auto& [wr_id, receive] : site->receives)
      for (const Piece& piece : receive.pieces) site->arena.accept(piece.offset, piece.length);
    if (std::optional<std::string> difference = site->arena.difference()) return difference;
  }
  if (failure_) return failure_;
  for (const auto& site : sites_)
    if (std::optional<std::string> left = site->tear_down()) return left;
  return std::nullopt;
}

}  // namespace verbena::sim
