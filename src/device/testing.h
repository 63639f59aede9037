// Helpers of this folder's tests and of tests/fuzz/fuzz_device.cc: a configuration, the changes
// that bring a QP up, frames put together as a link does, and two devices on a perfect wire.
#pragma once

#include <optional>
#include <vector>

#include "base/check.h"
#include "device/device.h"
#include "tests/support/clock.h"
#include "tests/support/software_path.h"
#include "wire/roce/icrc.h"

namespace verbena::test {

inline constexpr GID kGIDA = GID::from_ipv4(0x0a000001);
inline constexpr GID kGIDB = GID::from_ipv4(0x0a000002);
inline constexpr QKey kTestQKey{0x1234567};

inline DeviceConfig config_at(const GID& gid, QPN first_qpn) {
  DeviceConfig config;
  config.gids = {{gid, GIDType::kRoCEv2}};
  config.first_qpn = first_qpn;
  config.limits.max_qp = 64;
  config.path = software_path(1024, us(50));
  return config;
}

inline AddressVector path_to(const GID& destination) {
  AddressVector path;
  path.destination = destination;
  return path;
}

inline QPModify to_state(QPState state) {
  QPModify change;
  change.state = state;
  change.set(QPField::kState);
  return change;
}

inline QPModify to_init(QPType type) {
  QPModify change = to_state(QPState::kInit);
  change.set(QPField::kPKeyIndex).set(QPField::kPort);
  if (type == QPType::kUD) {
    change.q_key = kTestQKey;
    return change.set(QPField::kQKey);
  }
  change.remote_access =
      Access::kRemoteRead | Access::kRemoteWrite | AccessFlags(Access::kRemoteAtomic);
  return change.set(QPField::kAccessFlags);
}

inline QPModify to_rtr(QPType type, const GID& peer, QPN dest_qp) {
  QPModify change = to_state(QPState::kRTR);
  if (type == QPType::kUD) return change;
  change.path = path_to(peer);
  change.dest_qp = dest_qp;
  change.set(QPField::kAddressVector).set(QPField::kPathMTU);
  change.set(QPField::kDestQPN).set(QPField::kRQPSN);
  if (type == QPType::kUC) return change;
  change.max_dest_rd_atomic = 4;
  change.min_rnr_timer = 1;
  return change.set(QPField::kMaxDestRdAtomic).set(QPField::kMinRNRTimer);
}

inline QPModify to_rts(QPType type) {
  QPModify change = to_state(QPState::kRTS);
  change.set(QPField::kSQPSN);
  if (type == QPType::kUC || type == QPType::kUD) return change;
  change.ack_timeout = 14;
  change.retry_count = change.rnr_retry_count = 7;
  change.max_rd_atomic = 4;
  change.set(QPField::kTimeout).set(QPField::kRetryCount).set(QPField::kRNRRetry);
  return change.set(QPField::kMaxRdAtomic);
}

// The transport bytes of a frame with the ICRC a link would add.
inline std::vector<u8> on_the_wire(const EgressFrame& frame, u16 identification = 0) {
  std::vector<u8> bytes(frame.headers.begin(), frame.headers.begin() + frame.headers_size);
  for (u32 i = 0; i < frame.payload.count; ++i)
    bytes.insert(bytes.end(), frame.payload.parts[i].begin(), frame.payload.parts[i].end());
  bytes.resize(bytes.size() + frame.pad_count);
  const u32 icrc = icrc_of({.source = frame.source,
                            .destination = frame.destination,
                            .udp_source_port = frame.udp_source_port,
                            .identification = identification},
                           bytes);
  bytes.resize(bytes.size() + kICRCSize);
  store_icrc(icrc, std::span(bytes).last<kICRCSize>());
  return bytes;
}

// As the other end receives it. `bytes` must outlive the result.
inline IngressFrame received(const EgressFrame& frame, std::span<const u8> bytes) {
  return {.source = frame.source,
          .destination = frame.destination,
          .udp_source_port = frame.udp_source_port,
          .traffic_class = frame.traffic_class,
          .hop_limit = frame.hop_limit,
          .transport = bytes};
}

// One device with a PD, a CQ, and memory that is registered for everything.
struct Node {
  explicit Node(const DeviceConfig& config) : device(config) {
    pd = device.alloc_pd().value();
    cq = device.create_cq(256, nullptr).value();
    keys = device.memory()
               .register_mr(pd->id, memory.data(), memory.size(), address(), kAllAccess)
               .value();
  }
  u64 address() const { return reinterpret_cast<u64>(memory.data()); }
  SGE sge(u32 offset, u32 length) const { return {address() + offset, length, keys.l_key}; }

  QPInit init(QPType type) {
    return {.type = type,
            .pd = pd,
            .send_cq = cq,
            .receive_cq = cq,
            .send = {.depth = 64, .max_sge = 2, .max_inline_bytes = 64},
            .receive = {.depth = 64, .max_sge = 2}};
  }
  QueuePair* create(QPType type) { return device.create_qp(init(type)).value(); }
  QPN number(const QueuePair* qp) const { return device.attributes_of(qp).qpn; }
  QPState state(const QueuePair* qp) const { return device.attributes_of(qp).state; }

  // The QP's state afterwards; RTS when all went well.
  QPState bring_up(QueuePair* qp, const GID& peer, QPN dest_qp) {
    const QPType type = device.attributes_of(qp).type;
    for (const QPModify& change : {to_init(type), to_rtr(type, peer, dest_qp), to_rts(type)})
      if (device.modify_qp(qp, change, kStart) != Status::kOk) break;
    return state(qp);
  }
  std::optional<CQE> completion() {
    CQE cqe;
    if (device.poll_cq(cq, {&cqe, 1}) == 0) return std::nullopt;
    return cqe;
  }

  static constexpr AccessFlags kAllAccess = Access::kLocalWrite | Access::kRemoteWrite |
                                            AccessFlags(Access::kRemoteRead) |
                                            Access::kRemoteAtomic;
  Device device;
  std::vector<u8> memory = std::vector<u8>(1 << 16);
  ProtectionDomain* pd = nullptr;
  CompletionQueue* cq = nullptr;
  MRKeys keys;
};

// Two nodes; what one sends the other has at once.
struct Wire {
  Node a{config_at(kGIDA, QPN{0x100})};
  Node b{config_at(kGIDB, QPN{0x200})};
  Time now = kStart;

  struct Ends {
    QueuePair* a;
    QueuePair* b;
  };
  Ends connect(QPType type) {
    const Ends ends{a.create(type), b.create(type)};
    a.bring_up(ends.a, kGIDB, b.number(ends.b));
    b.bring_up(ends.b, kGIDA, a.number(ends.a));
    return ends;
  }
  // Moves frames until no device has any. Returns how many it moved.
  u32 run() {
    u32 moved = 0, before = 0;
    do {
      before = moved;
      moved += carry(a, b) + carry(b, a);
    } while (moved != before);
    return moved;
  }
  bool may_send(const Node& from) const {
    return from.device.has_frames() || now >= from.device.next_send();
  }
  u32 carry(Node& from, Node& to) {
    EgressFrame frame;
    u32 moved = 0;
    for (bool expected = may_send(from); from.device.poll_frame(now, frame);
         ++moved, expected = may_send(from)) {
      CHECK(expected);  // what has_frames() rules out must not come
      const std::vector<u8> bytes = on_the_wire(frame);
      to.device.on_frame(received(frame, bytes), now);
    }
    return moved;
  }
};

}  // namespace verbena::test
