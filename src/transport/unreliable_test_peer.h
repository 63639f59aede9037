// TestPeer: one end of a UC or UD connection for unit tests: an engine with its attributes, keys,
// receive queue and one registered buffer. Packets leave and enter as bytes (BTH to end of pad), so
// that every test goes through the wire format too.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "transport/datagram_engine.h"
#include "transport/outcomes_for_test.h"

namespace verbena::test {

using PacketBytes = std::vector<u8>;

inline PacketBytes encoded(const PacketHeaders& headers, Bytes payload) {
  PacketBytes bytes(headers.size());
  headers.encode(bytes);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.insert(bytes.end(), headers.bth.pad_count, u8{0});
  return bytes;
}

inline PacketBytes encoded(const TxPacket& packet) {
  std::vector<u8> payload;
  for (u32 i = 0; i < packet.payload.count; ++i)
    payload.insert(payload.end(), packet.payload.parts[i].begin(), packet.payload.parts[i].end());
  CHECK(payload.size() == packet.payload.size_bytes);
  return encoded(packet.headers, payload);
}

inline PacketHeaders headers_of(const PacketBytes& packet) {
  const std::optional<PacketView> view = PacketView::decode(packet);
  CHECK(view.has_value());
  return view->headers;
}

// The same packet with other headers; `change` gets them by reference.
template <typename Change>
PacketBytes altered(const PacketBytes& packet, Change change) {
  const std::optional<PacketView> view = PacketView::decode(packet);
  CHECK(view.has_value());
  PacketHeaders headers = view->headers;
  change(headers);
  return encoded(headers, view->payload);
}

struct PeerOptions {
  u64 memory_bytes = 64 * 1024;
  AccessFlags access = Access::kLocalWrite | Access::kRemoteWrite;
  bool shared_receive_queue = false;
  SendQueueLimits sends{.depth = 16, .max_sge = 4, .max_inline_bytes = 128};
  ReceiveQueueLimits receives{.depth = 16, .max_sge = 4};
};

template <typename EngineType>
class TestPeer {
 public:
  static constexpr u64 kIova = 0x1'0000'0000;
  static constexpr Time kNow = Time::from_ns(1);

  TestPeer(QPType type, QPN qpn, QPN peer, const PeerOptions& options = {})
      : receives(options.receives),
        buffer(options.memory_bytes),
        keys(memory.register_mr(kPD, buffer.data(), buffer.size(), kIova, options.access).value()) {
    qp.type = type;
    qp.qpn = qpn;
    qp.pd = kPD;
    qp.dest_qp = peer;
    qp.path_mtu = MTU::k256;
    qp.sq_psn = qp.rq_psn = PSN{0xfffffe};  // wraps early
    qp.remote_access = Access::kRemoteWrite;
    engine = std::make_unique<EngineType>(
        EngineParts{.attributes = qp,
                    .memory = memory,
                    .receive_queue = receives,
                    .shared_receive_queue = options.shared_receive_queue,
                    .send_limits = options.sends});
  }

  void to(QPState state) {
    const QPState from = qp.state;
    qp.state = state;
    engine->on_state(from, kNow);
  }
  void to_rts() {
    for (const QPState state : {QPState::kInit, QPState::kRTR, QPState::kRTS}) to(state);
  }

  SGE sge(u64 offset, u64 length) const {
    return {kIova + offset, static_cast<u32>(length), keys.l_key};
  }
  PostError post(SendWR wr, const std::vector<SGE>& list) {
    wr.sg_list = list;
    return engine->post_send(wr, kNow);
  }
  void post_receive(u64 wr_id, const std::vector<SGE>& list) {
    CHECK(receives.push({.wr_id = wr_id, .sg_list = list}) == PostError::kOk);
    (void)engine->on_receive_posted(kNow);
  }
  void deliver(const PacketBytes& packet, const RxContext& context = {}) {
    const std::optional<PacketView> view = PacketView::decode(packet);
    CHECK(view.has_value());
    engine->on_packet(*view, context, kNow);
  }
  void deliver(const std::vector<PacketBytes>& packets) {
    for (const PacketBytes& packet : packets) deliver(packet);
  }

  std::vector<PacketBytes> sent() {
    std::vector<PacketBytes> packets;
    for (TxPacket packet; engine->poll_packet(kNow, MaySend::kAnything, packet);)
      packets.push_back(encoded(packet));
    return packets;
  }
  std::vector<CQE> send_cqes() {
    std::vector<CQE> cqes;
    for (CQE cqe; engine->poll_send_cqe(cqe); engine->free_sends(cqe.entries)) cqes.push_back(cqe);
    return cqes;
  }
  std::vector<CQE> receive_cqes() {
    std::vector<CQE> cqes;
    for (CQE cqe; engine->poll_receive_cqe(cqe); receives.free_entries(cqe.entries))
      cqes.push_back(cqe);
    return cqes;
  }
  std::vector<EngineEvent> events() {
    std::vector<EngineEvent> events;
    while (const std::optional<EngineEvent> event = engine->poll_event()) events.push_back(*event);
    return events;
  }
  const EngineCounters& counters() const { return engine->counters(); }
  std::vector<u8> bytes_at(u64 offset, u64 length) const {
    const auto from = buffer.begin() + static_cast<std::ptrdiff_t>(offset);
    return {from, from + static_cast<std::ptrdiff_t>(length)};
  }
  bool untouched() const {
    return std::ranges::all_of(buffer, [](u8 b) { return b == 0; });
  }

  static constexpr PDId kPD{1};
  QPAttributes qp;
  ProtectionTable memory{64, PRNG(1)};
  ReceiveQueue receives;
  std::vector<u8> buffer;
  MRKeys keys;
  std::unique_ptr<EngineType> engine;
};

// {wr_id, status} of each, for short comparisons.

}  // namespace verbena::test
