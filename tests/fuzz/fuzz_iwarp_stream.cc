// Input: two bytes that choose how the rest is cut and whether CRCs are used, then bytes that
// come to an iWARP engine on its stream. Memory of the engine's region only may change, only while
// it is open, and what the engine sends is whole FPDUs.
#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "transport/iwarp/engine.h"

namespace verbena::fuzz {
namespace {

constexpr PDId kPD{1};
constexpr u64 kIova = 0x1000;
constexpr std::size_t kRegion = 16 << 10, kGuard = 64;
constexpr Time kNow = Time::from_ns(1);

class FuzzedEnd {
 public:
  explicit FuzzedEnd(bool crc) {
    qp_.qpn = QPN{0x11};
    qp_.pd = kPD;
    qp_.state = QPState::kInit;
    qp_.remote_access = Access::kRemoteWrite | AccessFlags(Access::kRemoteRead);
    keys_ = *memory_.register_mr(kPD, buffer_.data() + kGuard, kRegion, kIova,
                                 Access::kLocalWrite | qp_.remote_access);
    engine_.begin({.crc = crc, .atomics_and_immediate = true, .ird = 4, .ord = 4}, kNow);
    to(QPState::kRTS);
    const SGE sge{kIova, 1000, keys_.l_key};
    for (u64 id = 0; id < 4; ++id)
      CHECK(receives_.push({.wr_id = id, .sg_list = {&sge, 1}}) == PostError::kOk);
    SendWR read;
    read.op = SendOp::kRDMARead;
    read.r_key = RKey{7};  // the peer's
    read.signaled = true;
    read.sg_list = {&sge, 1};
    CHECK(engine_.post_send(read, kNow) == PostError::kOk);
    send();
  }
  void take(std::span<const u8> bytes, std::size_t piece) {
    while (!bytes.empty()) {
      std::span<const u8> part = bytes.first(std::min(piece, bytes.size()));
      bytes = bytes.subspan(part.size());
      const MutableBytes place = engine_.direct_place();
      const std::size_t direct = std::min(place.size(), part.size());
      if (direct != 0) {
        std::copy_n(part.begin(), direct, place.begin());
        engine_.on_placed(static_cast<u32>(direct), kNow);
        part = part.subspan(direct);
      }
      while (!part.empty()) {
        part = engine_.on_bytes(part, kNow);
        drain();
      }
      send();
    }
    engine_.on_end(StreamEnd::kFinished, kNow);
    drain();
    send();
    CHECK(qp_.state == QPState::kError && engine_.wants_end());
    const auto is_zero = [](u8 byte) { return byte == 0; };
    CHECK(std::all_of(buffer_.begin(), buffer_.begin() + kGuard, is_zero));
    CHECK(std::all_of(buffer_.end() - kGuard, buffer_.end(), is_zero));
  }

 private:
  void to(QPState state) {
    const QPState from = qp_.state;
    qp_.state = state;
    engine_.on_state(from, kNow);
  }
  void drain() {
    for (CQE cqe; engine_.poll_send_cqe(cqe);) engine_.free_sends(cqe.entries);
    for (CQE cqe; engine_.poll_receive_cqe(cqe);) receives_.free_entries(cqe.entries);
    bool fails = false;
    while (const std::optional<EngineEvent> event = engine_.poll_event())
      fails |= *event == EngineEvent::kFatal || *event == EngineEvent::kEnded;
    if (!fails || qp_.state == QPState::kError) return;
    to(QPState::kError);
    drain();
  }
  void send() {
    gather_.clear();
    engine_.gather(gather_, kNow);
    engine_.on_sent(gather_, gather_.bytes(), kNow);
    drain();
  }

  QPAttributes qp_;
  ProtectionTable memory_{64, PRNG(1)};
  std::vector<u8> buffer_ = std::vector<u8>(kRegion + 2 * kGuard);
  MRKeys keys_;
  ReceiveQueue receives_{{.depth = 8, .max_sge = 1}};
  iwarp::IWARPEngine engine_{EngineParts{.attributes = qp_,
                                         .memory = memory_,
                                         .receive_queue = receives_,
                                         .send_limits = {.depth = 8, .max_sge = 1}},
                             iwarp::IWARPLimits{}};
  StreamGather gather_;
};

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbena;
  if (size < 2) return 0;
  fuzz::FuzzedEnd end(data[1] % 2 != 0);
  end.take(std::span(data, size).subspan(2), 1 + data[0] * 64u);
  return 0;
}
