#include "tests/sim/rc_workload.h"

#include <algorithm>
#include <cstring>

#include "transport/completions.h"

namespace verbena::sim {
namespace {

constexpr u32 kWindowsPerEnd = 2;

constexpr AccessFlags kZoneAccess = Access::kLocalWrite | Access::kRemoteWrite |
                                    Access::kRemoteRead | AccessFlags(Access::kMWBind) |
                                    Access::kFlushGlobal;
constexpr AccessFlags kWordsAccess =
    Access::kLocalWrite | Access::kRemoteWrite | AccessFlags(Access::kRemoteAtomic);

}  // namespace

// --- set-up

RCWorkload::RCWorkload(World& world, const RCPlan& plan)
    : world_(world), plan_(plan), prng_(world.prng().fork()) {
  for (u32 i = 0; i < 2; ++i) {
    DeviceConfig config = device_config(i, world.prng().next(), plan.ipv6);
    config.path.window_packets = plan.window_packets[i];
    config.path.window_bytes = plan.window_bytes[i];
    config.path.min_probe_timeout = plan.min_probe_timeout;
    config.retransmission = plan.retransmission[i];
    config.reordering_packets = plan.reordering_packets;
    Node& node = world.add_node({.device = config, .egress = plan.egress[i]});
    const u64 iova = prng_.chance(0.2) ? 0 : prng_.below(u64{1} << 40) * 4096;
    sites_[i] = std::make_unique<Site>(world, node, iova);
  }
  world.join(sites_[0]->node, sites_[1]->node, plan.link);
  for (const auto& site : sites_) {
    if (plan.xrc)
      site->add_xrc_srq(plan.receive_depth, plan.max_sge);
    else if (plan.shared_receive_queue)
      site->add_srq(plan.receive_depth, plan.max_sge);
    for (u32 i = 0; i < plan.connections; ++i) {
      End& end = *site->ends.emplace_back(std::make_unique<End>());
      end.site = site.get();
      end.index = i;
      end.left = plan.operations;
      end.windows.resize(kWindowsPerEnd);
    }
  }
  connect_all();
  for (const auto& site : sites_) lay_out(*site);
  for (const auto& site : sites_) open(*site);
  for (const auto& site : sites_) start(*site);
}

RCWorkload::~RCWorkload() = default;

void RCWorkload::create_qps(End& end) {
  const SendQueueLimits send = {.depth = plan_.send_depth,
                                .max_sge = plan_.max_sge,
                                .max_inline_bytes = plan_.max_inline_bytes};
  const ReceiveQueueLimits receive = {.depth = plan_.receive_depth, .max_sge = plan_.max_sge};
  Site& site = *end.site;
  if (plan_.xrc) {
    end.qp = site.create_qp(QPType::kXRCInitiator, send, receive, false);
    end.receiver = site.create_xrc_target();
  } else {
    end.qp = end.receiver = site.create_qp(QPType::kRC, send, receive, plan_.shared_receive_queue);
  }
}

void RCWorkload::connect_all() {
  Site &first = *sites_[0], &second = *sites_[1];
  for (u32 i = 0; i < plan_.connections; ++i) {
    End &a = *first.ends[i], &b = *second.ends[i];
    create_qps(a);
    create_qps(b);
    a.peer = &b;
    b.peer = &a;
    connect(first, a.qp, plan_.qps[i][0], second, b.receiver, plan_.qps[i][1]);
    if (plan_.xrc) connect(first, a.receiver, plan_.qps[i][0], second, b.qp, plan_.qps[i][1]);
  }
}

// Room for what the peers' ends write and for all that can be on its way to land here.
void RCWorkload::lay_out(Site& site) {
  site.source = {site.arena.carve(kSourceBytes), kSourceBytes};
  site.shared_word = {site.arena.carve(8), 8};
  for (const auto& end : site.ends) {
    end->peer->zone = {site.arena.carve(plan_.max_bytes * 2ull), plan_.max_bytes * 2ull};
    end->peer->words = {site.arena.carve(8 * kWordsPerEnd), 8 * kWordsPerEnd};
  }
  const u64 slot_bytes = plan_.max_bytes + plan_.max_sge * kGapBytes + 8;
  const u32 receive_queues = plan_.shared_receive_queue ? 1 : plan_.connections;
  for (u32 i = 0; i < receive_queues * plan_.receive_depth; ++i)
    site.receive_slots.push_back(site.arena.carve(slot_bytes));
  for (u32 i = 0; i < plan_.connections * plan_.send_depth; ++i)
    site.free_slots.push_back(site.arena.carve(slot_bytes));
  site.landing_end = site.free_slots.back() + slot_bytes;
  site.arena.seal();
}

void RCWorkload::open(Site& site) {
  Arena& arena = site.arena;
  site.source_keys = arena.open(site.source.offset, site.source.length, Access::kRemoteRead);
  site.shared_key =
      arena.open(site.shared_word.offset, site.shared_word.length, kWordsAccess).r_key;
  const u64 first = site.receive_slots.front();
  site.landing_keys = arena.open(first, site.landing_end - first, Access::kLocalWrite);
  for (const auto& end : site.ends) {
    End& peer = *end->peer;
    const MRKeys zone = arena.open(peer.zone.offset, peer.zone.length, kZoneAccess);
    peer.zone_key = zone.r_key;
    peer.zone_l_key = zone.l_key;
    peer.words_key = arena.open(peer.words.offset, peer.words.length, kWordsAccess).r_key;
    for (Window& window : end->windows)
      window.key = *site.node.device().memory().allocate_mw(site.pd->id, MWType::k2);
  }
}

void RCWorkload::start(Site& site) {
  site.node.on_activity = [this, &site] {
    if (!plan_.completion_events) schedule_poll(site);
  };
  site.node.on_completion_event = [this, &site](void*) { schedule_poll(site); };
  if (plan_.completion_events) site.node.request_notification(site.cq);
  for (u32 i = 0; i < plan_.receive_depth; ++i) {
    if (plan_.shared_receive_queue) {
      schedule_receive(site, nullptr, plan_.receive_delay);
      continue;
    }
    for (const auto& end : site.ends) schedule_receive(site, end.get(), plan_.receive_delay);
  }
  for (const auto& end : site.ends) schedule_post(*end, plan_.posting_gap);
}

// --- the application

void RCWorkload::schedule_poll(Site& site) {
  if (site.poll_scheduled) return;
  site.poll_scheduled = true;
  world_.after(ns(static_cast<i64>(prng_.below(1000))), [this, &site] { poll(site); });
}

void RCWorkload::poll(Site& site) {
  site.poll_scheduled = false;
  const std::vector<CQE> cqes =
      plan_.completion_events ? poll_after_event(site) : site.node.poll(site.cq);
  for (const CQE& cqe : cqes) on_cqe(site, cqe);
}

std::vector<CQE> RCWorkload::poll_after_event(Site& site) {
  site.node.request_notification(site.cq);
  return site.node.poll(site.cq, plan_.completions_per_event);
}

void RCWorkload::schedule_receive(Site& site, End* end, Duration wait) {
  const i64 most = wait.ps() + 1;
  world_.after(ps(static_cast<i64>(prng_.below(static_cast<u64>(most)))),
               [this, &site, end] { post_receive(site, end); });
}

void RCWorkload::post_receive(Site& site, End* end) {
  CHECK(!site.receive_slots.empty());
  Receive receive;
  receive.slot = site.receive_slots.back();
  site.receive_slots.pop_back();
  receive.pieces = land(site, receive.slot, plan_.max_bytes, plan_.max_sge);
  const std::vector<SGE> sges = sges_of(site, receive.pieces);
  const u64 owner = end == nullptr ? 0xff : end->index;
  const u64 wr_id = owner << kEndShift | site.next_receive_id++;
  site.receives[wr_id] = std::move(receive);
  const RecvWR wr{.wr_id = wr_id, .sg_list = sges};
  const PostError error = end == nullptr ? site.node.post_srq_receive(site.srq, wr)
                                         : site.node.post_receive(end->qp, wr);
  if (error != PostError::kOk) fail(site, "a receive was refused");
}

void RCWorkload::schedule_post(End& end, Duration wait) {
  if (end.post_scheduled) return;
  end.post_scheduled = true;
  world_.after(ps(static_cast<i64>(prng_.below(static_cast<u64>(wait.ps()) + 1))),
               [this, &end] { post(end); });
}

void RCWorkload::post(End& end) {
  end.post_scheduled = false;
  for (u64 burst = prng_.in(1, 8); burst != 0; --burst) {
    if (!end.ready) {
      if (end.left == 0) return;
      end.ready = build(end);
    }
    Request& r = *end.ready;
    r.wr.sg_list = r.sges;
    const PostError error = end.site->node.post_send(end.qp, r.wr);
    if (error == PostError::kQueueFull) {
      if (end.requests.empty()) fail(*end.site, "the send queue is full of nothing");
      return;  // the next completion brings us back
    }
    if (error != PostError::kOk) return fail(*end.site, "a send was refused");
    end.requests.push_back(std::move(r));
    end.ready.reset();
  }
  if (end.left != 0) schedule_post(end, plan_.posting_gap);
}

// --- completions

void RCWorkload::on_cqe(Site& site, const CQE& cqe) {
  for (const auto& end : site.ends) {
    const bool receive =
        cqe.op == CompletionOp::kReceive || cqe.op == CompletionOp::kReceiveRDMAWithImmediate;
    const QueuePair* const qp = receive ? end->receiver : end->qp;
    if (site.node.device().attributes_of(qp).qpn != cqe.qp) continue;
    if (cqe.status != WQEStatus::kSuccess) return fail(site, "failed: " + to_string(cqe));
    if (receive && plan_.xrc && cqe.srq != site.node.device().number_of(site.srq))
      return fail(site, "of another SRQ: " + to_string(cqe));
    return receive ? on_receive_cqe(*end, cqe) : on_send_cqe(*end, cqe);
  }
  fail(site, "a completion of no QP: " + to_string(cqe));
}

// Everything before it in the queue is complete too.
void RCWorkload::on_send_cqe(End& end, const CQE& cqe) {
  while (!end.requests.empty()) {
    Request r = std::move(end.requests.front());
    end.requests.pop_front();
    const bool signaled = r.wr.signaled;
    if (signaled) {
      if (r.wr.wr_id != cqe.wr_id) return fail(*end.site, "out of order: " + to_string(cqe));
      if (completion_op(r.wr.op) != cqe.op) return fail(*end.site, "wrong op: " + to_string(cqe));
      u64 length = 0;
      for (const Piece& piece : r.landing) length += piece.range.length;
      if (cqe.byte_length != length) return fail(*end.site, "wrong length: " + to_string(cqe));
    }
    finished(end, r);
    if (signaled) {
      if (end.left != 0 || end.ready) schedule_post(end, plan_.posting_gap);
      return;
    }
  }
  fail(*end.site, "never posted: " + to_string(cqe));
}

void RCWorkload::finished(End& end, Request& r) {
  if (r.slot) {
    if (r.data)
      expect_scattered(*end.site, r.landing, *r.data, "a READ or atomic brought wrong data");
    else
      for (const Piece& piece : r.landing)
        end.site->arena.accept(piece.range.offset, piece.range.length);
    end.site->free_slots.push_back(*r.slot);
  }
  if (!r.window) return;
  Window& window = end.windows[*r.window];
  if (r.wr.op == SendOp::kLocalInvalidate) {
    window.state = Window::State::kFree;
  } else if (prng_.chance(0.7)) {
    window.state = Window::State::kPeers;
    end.peer->lent.push_back(window.key);
  } else {
    window.state = Window::State::kOurs;
  }
}

void RCWorkload::on_receive_cqe(End& end, const CQE& cqe) {
  Site& site = *end.site;
  const auto posted_receive = site.receives.find(cqe.wr_id);
  if (posted_receive == site.receives.end()) return fail(site, "never posted: " + to_string(cqe));
  if (end.peer->messages.empty()) return fail(site, "never sent: " + to_string(cqe));
  const Receive receive = std::move(posted_receive->second);
  const Message message = std::move(end.peer->messages.front());
  // A QP uses its own receives in order. Those of an SRQ go to the first message that comes.
  if (!plan_.shared_receive_queue) {
    const auto first = site.receives.lower_bound(u64{end.index} << kEndShift);
    if (first != posted_receive) return fail(site, "out of order: " + to_string(cqe));
  }
  site.receives.erase(posted_receive);
  end.peer->messages.pop_front();

  if (cqe.op != message.op || cqe.byte_length != message.byte_length ||
      cqe.with_immediate != message.immediate.has_value() ||
      cqe.with_invalidate != message.invalidated.has_value() ||
      (message.immediate && cqe.immediate != *message.immediate) ||
      (message.invalidated && cqe.immediate != *message.invalidated))
    return fail(site, "not the message that was sent: " + to_string(cqe));
  if (message.op == CompletionOp::kReceive)
    expect_scattered(site, receive.pieces, message.data, "a SEND arrived changed");
  else if (!message.overwritten &&
           !std::ranges::equal(site.arena.actual(message.written.offset, message.written.length),
                               message.data))
    return fail(site, "a WRITE with immediate completed before its data");
  if (message.invalidated)
    for (Window& window : end.windows)
      if (window.key.value == *message.invalidated) window.state = Window::State::kFree;
  site.receive_slots.push_back(receive.slot);
  schedule_receive(site, plan_.shared_receive_queue ? nullptr : &end, plan_.receive_delay);
}

void RCWorkload::expect_scattered(Site& site, const std::vector<Piece>& pieces, Bytes data,
                                  const char* what) {
  for (const Piece& piece : pieces) {
    const u64 here = std::min<u64>(piece.range.length, data.size());
    site.arena.expect(piece.range.offset, data.first(here));
    if (!std::ranges::equal(site.arena.actual(piece.range.offset, here), data.first(here)))
      return fail(site, what);
    data = data.subspan(here);
  }
}

// --- the end

void RCWorkload::fail(const Site& site, const std::string& what) {
  world_.timeline().note(world_.now(), site.node.index(), "FAILED: " + what);
  world_.stop();
  if (!failure_) failure_ = "node " + std::to_string(site.node.index()) + ": " + what;
}

std::optional<std::string> RCWorkload::run(Duration limit) {
  if (!world_.run_until_idle(limit)) return failure_ ? failure_ : "it does not come to an end";
  if (!failure_) failure_ = check_end();
  return failure_;
}

const Counters& RCWorkload::counters(std::size_t side) const {
  return sites_[side]->node.device().counters();
}

std::optional<std::string> RCWorkload::check_end() {
  for (std::size_t i = 0; i < 2; ++i) {
    Site& site = *sites_[i];
    for (const auto& end : site.ends) {
      if (end->left != 0 || !end->requests.empty()) return "requests are left";
      if (!end->messages.empty()) return "messages were not received";
      for (const QueuePair* const qp : {end->qp, end->receiver})
        if (site.node.device().attributes_of(qp).state != QPState::kRTS) return "not in RTS";
    }
    if (std::optional<std::string> difference = site.arena.difference()) return difference;
    for (const AsyncEvent& event : site.node.events)
      if (event.type != AsyncEventType::kCommunicationEstablished)
        return std::string("an event: ") + name_of(event.type);
    const Counters& counters = site.node.device().counters();
    const LinkCounters& link = sites_[1 - i]->node.link().counters();
    if (counters.port_rcv_errors != link.corrupted) return "corrupt frames are not counted";
    if (counters.port_rcv_packets != link.frames - link.lost + link.copied)
      return "frames are not counted";
  }
  for (const auto& site : sites_) {
    for (const auto& end : site->ends)
      for (const Window& window : end->windows)
        CHECK(site->node.device().memory().deallocate_mw(window.key) == Status::kOk);
    if (std::optional<std::string> left = site->tear_down()) return left;
  }
  return std::nullopt;
}

}  // namespace verbena::sim
