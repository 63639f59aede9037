// HostileWorld: a device whose QPs are in every state, and bytes that say what happens to it. Used
// by device_hostile_test.cc with random bytes and by tests/fuzz/fuzz_device.cc.
//
// The QPs are connected among themselves; what the device sends comes back to it or is lost. Memory
// is
//   | guard | open to all | guard | READ only | guard | local only | guard |
// and check() ends the process when a byte has changed that no key allows to: the guards and what
// is registered for READ only. (Addresses and lengths come from the bytes, so all of it is aimed
// at.)
//
// The bytes: records of one control byte, a few operands, and for a frame its length (2 bytes) and
// content. Missing operands are 0.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/bytes.h"
#include "congestion/presets.h"
#include "device/testing.h"

namespace verbena::test {

// Takes the input apart; 0 when it is used up.
class InputBytes {
 public:
  explicit InputBytes(Bytes bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  u8 next() {
    if (left_.empty()) return 0;
    const u8 byte = left_[0];
    left_ = left_.subspan(1);
    return byte;
  }
  u32 below(u32 bound) { return next() % bound; }
  u16 next16() {
    const u8 high = next();
    return static_cast<u16>(high << 8 | next());
  }
  Bytes take(std::size_t count) {
    const Bytes taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  Bytes left_;
};

class HostileWorld {
 public:
  HostileWorld() {
    pd_ = device_.alloc_pd().value();
    cq_ = device_.create_cq(64, nullptr).value();
    std::fill(memory_.begin(), memory_.end(), kGuardByte);
    open_ = enroll(kOpenAt, Node::kAllAccess);
    read_only_ = enroll(kReadOnlyAt, Access::kRemoteRead);
    local_ = enroll(kLocalAt, Access::kLocalWrite);
    srq_ = device_.create_srq({.pd = pd_, .limits = {.depth = 16, .max_sge = 2}}).value();
    create_qps();
  }

  void run(Bytes input) {
    InputBytes in(input);
    while (!in.empty()) step(in);
    drain(Outgoing::kLost);
    check();
  }

  const Counters& counters() const { return device_.counters(); }

  void check() const {
    for (std::size_t at = 0; at < memory_.size(); ++at) {
      const bool writable = (at >= kOpenAt && at < kOpenAt + kRegionSize) ||
                            (at >= kLocalAt && at < kLocalAt + kRegionSize);
      CHECK(writable || memory_[at] == kGuardByte);
    }
  }

 private:
  enum class Outgoing { kReturned, kLost };
  struct Member {
    QueuePair* qp;
    QPN peer;
    PSN expected;  // by its responder, as far as can be guessed from outside
  };
  static constexpr std::size_t kGuardSize = 256;
  static constexpr std::size_t kRegionSize = 1024;
  static constexpr std::size_t kOpenAt = kGuardSize;
  static constexpr std::size_t kReadOnlyAt = kOpenAt + kRegionSize + kGuardSize;
  static constexpr std::size_t kLocalAt = kReadOnlyAt + kRegionSize + kGuardSize;
  static constexpr std::size_t kMemorySize = kLocalAt + kRegionSize + kGuardSize;
  static constexpr u8 kGuardByte = 0xc5;
  static constexpr u32 kMaxFramesPerDrain = 4096;
  static constexpr u32 kLengthMask = 0x7ff;  // up to twice a region
  static constexpr MTU kMTU = MTU::k256;

  static DeviceConfig config() {
    DeviceConfig config = config_at(kGIDA, QPN{0x100});
    config.active_mtu = kMTU;
    config.path.window_packets = 16;
    config.path.window_bytes = 4096;
    config.retransmission = Retransmission::kSelectiveRepeat;  // for QPs that ask for it
    config.limits.max_mr = config.limits.max_mw = 64;
    config.congestion = *congestion_named("dcqcn", gbps(1));
    config.congestion.window = {
        .kind = WindowParameters::Kind::kByRate, .bytes = 8192, .line_rate = gbps(1)};
    return config;
  }
  MRKeys enroll(std::size_t at, AccessFlags access) {
    u8* const base = memory_.data() + at;
    return device_.memory()
        .register_mr(pd_->id, base, kRegionSize, reinterpret_cast<u64>(base), access)
        .value();
  }

  // Connected pairs, and QPs in the states short of RTS and beyond it.
  void create_qps() {
    create_pair(QPType::kRC, nullptr);
    create_pair(QPType::kRC, srq_);
    create_pair(QPType::kUC, nullptr);
    create_pair(QPType::kUD, nullptr);
    for (const QPState state :
         {QPState::kReset, QPState::kInit, QPState::kRTR, QPState::kSQD, QPState::kError})
      create_in(QPType::kRC, state);
    create_in(QPType::kUC, QPState::kRTR);
    create_in(QPType::kUC, QPState::kSQD);
    create_in(QPType::kUD, QPState::kRTR);
  }
  Member& create(QPType type, SharedReceiveQueue* srq) {
    const QPInit init{.type = type,
                      .pd = pd_,
                      .send_cq = cq_,
                      .receive_cq = cq_,
                      .srq = srq,
                      .send = {.depth = 8, .max_sge = 2, .max_inline_bytes = 32},
                      .receive = {.depth = 8, .max_sge = 2}};
    return members_.emplace_back(Member{device_.create_qp(init).value(), {}, {}});
  }
  const QPAttributes& attributes(const Member& m) const { return device_.attributes_of(m.qp); }
  QPN number(const Member& m) const { return attributes(m).qpn; }
  void create_pair(QPType type, SharedReceiveQueue* srq) {
    create(type, srq);
    create(type, srq);
    Member& a = members_[members_.size() - 2];
    Member& b = members_.back();
    a.peer = number(b);
    b.peer = number(a);
    bring_to(a, QPState::kRTS);
    bring_to(b, QPState::kRTS);
  }
  void create_in(QPType type, QPState state) {
    Member& m = create(type, nullptr);
    m.peer = number(members_.front());
    bring_to(m, state);
  }
  // From Reset on, as far as `state`.
  void bring_to(Member& m, QPState state) {
    const QPType type = attributes(m).type;
    if (state == QPState::kReset) return;
    modify(m, to_init(type));
    if (state == QPState::kInit) return;
    modify(m, to_rtr(type, kGIDA, m.peer));
    if (state == QPState::kRTR) return;
    modify(m, to_rts(type));
    if (state != QPState::kRTS) modify(m, to_state(state));
  }
  void modify(Member& m, QPModify change) {
    change.path_mtu = kMTU;
    if (device_.modify_qp(m.qp, change, now_) == Status::kOk && change.state == QPState::kReset)
      m.expected = PSN(0);
  }

  void step(InputBytes& in) {
    switch (in.below(8)) {
      case 0: return on_raw_frame(in);
      case 1:
      case 2: return on_repaired_frame(in);
      case 3: return post_send(in);
      case 4: return post_receive(in);
      case 5: return drain((in.next() & 1) != 0 ? Outgoing::kReturned : Outgoing::kLost);
      case 6: return pass_time(in);
      case 7: return change_state(in);
    }
  }

  Member& any_qp(InputBytes& in) { return members_[in.below(static_cast<u32>(members_.size()))]; }
  struct Target {
    u64 address;
    LKey key;
  };
  // Mostly inside a region and with its key; sometimes across its ends, sometimes with another key.
  Target any_target(InputBytes& in) {
    constexpr u32 kBeyond = 32;
    const std::array starts = {kOpenAt, kOpenAt, kReadOnlyAt, kLocalAt};
    const std::array keys = {open_.l_key, open_.l_key, read_only_.l_key, local_.l_key};
    const u32 region = in.below(starts.size());
    const u32 other = in.below(16);
    const u64 start = reinterpret_cast<u64>(memory_.data()) + starts[region];
    const u64 address = start - kBeyond + in.next16() % (kRegionSize + kBeyond);
    return {address, other < keys.size() ? keys[other] : other == 15 ? LKey{0} : keys[region]};
  }
  SGE any_sge(InputBytes& in) {
    const Target target = any_target(in);
    return {target.address, in.next16() % 1200u, target.key};
  }

  void on_raw_frame(InputBytes& in) {
    const u8 traffic_class = in.next();
    on_frame(traffic_class, in.take(in.next16() % 1500));
  }
  void on_frame(u8 traffic_class, Bytes transport) {
    IngressFrame frame;
    frame.source = frame.destination = kGIDA;
    frame.traffic_class = traffic_class;
    frame.identification_known = (frame.traffic_class & 4) != 0;
    frame.udp_source_port = 50000;
    frame.transport = transport;
    device_.on_frame(frame, now_);
  }
  // A frame from the input with what random bytes never hit put right: ICRC, DestQP, service,
  // P_Key, keys, PSN, lengths; each unless a bit says to leave it.
  void on_repaired_frame(InputBytes& in) {
    Member& m = any_qp(in);
    const Target target = any_target(in);
    const u8 traffic_class = in.next();
    const u8 kept = in.next();
    std::optional<PacketView> packet = PacketView::decode(in.take(in.next() * 2u));
    if (!packet.has_value()) return;
    PacketHeaders& h = packet->headers;
    h.bth.dest_qp = number(m);
    if ((kept & 1) == 0) repair_service(attributes(m).type, h.bth.opcode);
    if ((kept & 2) == 0) h.bth.p_key = kDefaultPKey;
    if ((kept & 4) == 0) h.bth.psn = repaired_psn(m, h);
    if ((kept & 8) == 0) packet->payload = repaired_payload(h.bth.opcode, packet->payload);
    if ((kept & 16) == 0)
      h.reth = {target.address, RKey(target.key.value), repaired_length(*packet)};
    if ((kept & 32) == 0) h.atomic.virtual_address = target.address & ~u64{7};
    if ((kept & 64) == 0) h.atomic.r_key = RKey(target.key.value);
    if ((kept & 128) == 0) h.deth.q_key = kTestQKey;
    if (!traits_of(h.bth.opcode).payload) packet->payload = {};
    on_frame(traffic_class, seal(h, packet->payload));
  }
  static void repair_service(QPType type, Opcode& opcode) {
    const Service service = type == QPType::kRC   ? Service::kRC
                            : type == QPType::kUC ? Service::kUC
                                                  : Service::kUD;
    const Opcode repaired{service, opcode.op};
    if (traits_of(repaired).valid) opcode = repaired;
  }
  // Mostly the one expected, if it has been guessed right so far; sometimes a near one.
  static PSN repaired_psn(Member& m, const PacketHeaders& h) {
    const u32 choice = h.bth.psn.value();
    switch (choice & 7) {
      case 0: return m.expected.next();
      case 1: return m.expected.previous();
      case 2: return m.expected = PSN(choice >> 3 & 0xf);
      default: break;
    }
    const PSN psn = m.expected;
    const bool read = h.bth.opcode.op == Op::kRDMAReadRequest;
    const u32 length = h.reth.dma_length & kLengthMask;
    m.expected = psn.advanced(read ? std::max(1u, (length + bytes(kMTU) - 1) / bytes(kMTU)) : 1);
    return psn;
  }
  static Bytes repaired_payload(Opcode opcode, Bytes payload) {
    static constexpr std::array<u8, bytes(kMTU)> kFull{};
    if (!traits_of(opcode).last) return kFull;
    return payload.first(std::min<std::size_t>(payload.size(), bytes(kMTU)));
  }
  static u32 repaired_length(const PacketView& packet) {
    const OpcodeTraits& traits = traits_of(packet.headers.bth.opcode);
    if (traits.payload && traits.first && traits.last)
      return static_cast<u32>(packet.payload.size());
    return packet.headers.reth.dma_length & kLengthMask;
  }
  Bytes seal(PacketHeaders& headers, Bytes payload) {
    EgressFrame frame;
    headers.bth.pad_count = static_cast<u8>(-payload.size() & 3);
    headers.encode(frame.headers);
    frame.headers_size = static_cast<u8>(headers.size());
    frame.source = frame.destination = kGIDA;
    frame.udp_source_port = 50000;
    frame.pad_count = headers.bth.pad_count;
    frame.payload.add(payload);
    sealed_ = on_the_wire(frame);
    return sealed_;
  }

  void post_send(InputBytes& in) {
    const Member& m = any_qp(in);
    const SGE sge = any_sge(in);
    SendWR wr;
    wr.op = static_cast<SendOp>(in.below(10));
    const u8 flags = in.next();
    wr.signaled = (flags & 1) != 0;
    wr.fence = (flags & 2) != 0;
    wr.solicited = (flags & 4) != 0;
    wr.sg_list = {&sge, 1};
    const Target target = any_target(in);
    wr.remote_address = target.address;
    wr.r_key = wr.invalidate = wr.mw = wr.mw_new = RKey(target.key.value);
    wr.destination = path_to(kGIDA);
    wr.dest_qp = number(any_qp(in));
    wr.q_key = kTestQKey;
    static_cast<void>(device_.post_send(m.qp, wr, now_));
  }
  void post_receive(InputBytes& in) {
    const Member& m = any_qp(in);
    const SGE sge = any_sge(in);
    const RecvWR wr{.wr_id = 0, .sg_list = {&sge, 1}};
    static_cast<void>(device_.post_receive(m.qp, wr, now_));
    static_cast<void>(device_.post_srq_receive(srq_, wr, now_));
  }
  void drain(Outgoing outgoing) {
    EgressFrame frame;
    for (u32 left = kMaxFramesPerDrain; left != 0 && device_.poll_frame(now_, frame); --left) {
      if (outgoing == Outgoing::kLost) continue;
      const std::vector<u8> bytes = on_the_wire(frame);
      device_.on_frame(received(frame, bytes), now_);
    }
    std::array<CQE, 32> cqes;
    while (device_.poll_cq(cq_, cqes) != 0) continue;
    while (device_.poll_async_event().has_value()) continue;
    while (device_.poll_completion_event().has_value()) continue;
  }
  void pass_time(InputBytes& in) {
    now_ = now_ + us(in.next16());
    const Time next = std::min(device_.next_timer(), device_.next_send());
    if ((in.next() & 1) != 0 && next != Time::never()) now_ = std::max(now_, next);
    device_.on_timer(now_);
  }
  // One step of the state machine, legal or not; or all the way from Reset to RTS.
  void change_state(InputBytes& in) {
    constexpr u32 kStates = 7;
    Member& m = any_qp(in);
    const QPType type = attributes(m).type;
    const u32 choice = in.below(2 * kStates);
    const bool with_attributes = (in.next() & 1) != 0;
    if (choice >= kStates) {
      modify(m, to_state(QPState::kReset));
      return bring_to(m, QPState::kRTS);
    }
    const QPState state = static_cast<QPState>(choice);
    QPModify change = to_state(state);
    if (state == QPState::kInit) change = to_init(type);
    if (state == QPState::kRTR) change = to_rtr(type, kGIDA, m.peer);
    if (state == QPState::kRTS && with_attributes) change = to_rts(type);
    modify(m, change);
  }

  Device device_{config()};
  Time now_ = kStart;
  alignas(8) std::array<u8, kMemorySize> memory_;
  ProtectionDomain* pd_ = nullptr;
  CompletionQueue* cq_ = nullptr;
  SharedReceiveQueue* srq_ = nullptr;
  MRKeys open_, read_only_, local_;
  std::vector<Member> members_;
  std::vector<u8> sealed_;
};

}  // namespace verbena::test
