#include "faults/fpdu_queue.h"

#include <algorithm>
#include <variant>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "wire/iwarp/ddp.h"
#include "wire/iwarp/markers.h"
#include "wire/iwarp/rdmap.h"

namespace verbena::faults {
namespace {

using iwarp::RDMAPOpcode;

// An FPDU's length, and the control bytes of DDP and RDMAP.
constexpr std::size_t kControlBytes = iwarp::kMPALengthBytes + 2;
constexpr u8 kTagged = 0x80, kLast = 0x40;  // RFC 5041, 4.1

// `only`, `first`, `middle`, `last`: of operations that have several packets.
struct Places {
  Op only, first, middle, last;
};
constexpr Places kSend{Op::kSendOnly, Op::kSendFirst, Op::kSendMiddle, Op::kSendLast};
constexpr Places kSendInvalidate{Op::kSendOnlyWithInvalidate, Op::kSendFirst, Op::kSendMiddle,
                                 Op::kSendLastWithInvalidate};
constexpr Places kWrite{Op::kRDMAWriteOnly, Op::kRDMAWriteFirst, Op::kRDMAWriteMiddle,
                        Op::kRDMAWriteLast};
constexpr Places kRead{Op::kRDMAReadResponseOnly, Op::kRDMAReadResponseFirst,
                       Op::kRDMAReadResponseMiddle, Op::kRDMAReadResponseLast};

constexpr Op at(const Places& places, bool first, bool last) {
  return first ? last ? places.only : places.first : last ? places.last : places.middle;
}

// The OpCode by which rules know it. TERMINATE stands for a NAK; immediate data ends a WRITE.
Op op_of(RDMAPOpcode opcode, bool first, bool last) {
  switch (opcode) {
    case RDMAPOpcode::kWrite: return at(kWrite, first, last);
    case RDMAPOpcode::kReadRequest: return Op::kRDMAReadRequest;
    case RDMAPOpcode::kReadResponse: return at(kRead, first, last);
    case RDMAPOpcode::kSend:
    case RDMAPOpcode::kSendSolicited: return at(kSend, first, last);
    case RDMAPOpcode::kSendInvalidate:
    case RDMAPOpcode::kSendSolicitedInvalidate: return at(kSendInvalidate, first, last);
    case RDMAPOpcode::kTerminate: return Op::kAcknowledge;
    case RDMAPOpcode::kImmediateData:
    case RDMAPOpcode::kImmediateDataSolicited: return Op::kRDMAWriteOnlyWithImmediate;
    case RDMAPOpcode::kAtomicRequest: return Op::kFetchAdd;
    case RDMAPOpcode::kAtomicResponse: return Op::kAtomicAcknowledge;
  }
  CHECK_UNREACHABLE();
}

// MistakeOf: returns why an effect has no meaning here, or nullopt if it has one.
struct MistakeOf {
  std::optional<std::string_view> operator()(const Mark&) const {
    return "TCP answers marks itself, in the kernel";
  }
  std::optional<std::string_view> operator()(const Duplicate&) const {
    return "a TCP receiver discards what comes twice";
  }
  std::optional<std::string_view> operator()(const Refuse&) const {
    return "iWARP has no acknowledgements";
  }
  std::optional<std::string_view> operator()(const Corrupt& corrupt) const {
    return corrupt.good_icrc ? std::optional<std::string_view>("iWARP has no ICRC") : std::nullopt;
  }
  template <typename Other>
  std::optional<std::string_view> operator()(const Other&) const {
    return std::nullopt;
  }
};

std::optional<std::string_view> mistake_of(const Rule& rule) {
  if (const auto mistake = std::visit(MistakeOf{}, rule.action)) return mistake;
  if (rule.selector.psns) return "iWARP has no PSNs";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> mistake_on_streams(std::span<const Rule> rules) {
  for (const Rule& rule : rules)
    if (const auto mistake = mistake_of(rule))
      return "fault '" + rule.text +
             "' has no meaning on an iWARP device: " + std::string(*mistake);
  return std::nullopt;
}

void fit_to_streams(std::vector<Rule>& rules) {
  for (Rule& rule : rules)
    if (auto* const rate = std::get_if<Rate>(&rule.action)) rate->queue = sec(3600);
}

FPDUQueue::FPDUQueue(Direction direction, QPN local_qp, const GID& peer)
    : direction_(direction), local_qp_(local_qp), peer_(peer) {}

void FPDUQueue::push(Bytes bytes, FaultFilter* filter, Time now) {
  held_ += bytes.size();
  while (!bytes.empty()) {
    if (fpdus_.empty() || fpdus_.back().bytes.size() == fpdus_.back().size) fpdus_.emplace_back();
    FPDU& fpdu = fpdus_.back();
    const std::size_t head = marker_before() + kControlBytes;
    const std::size_t wanted = (fpdu.size != 0 ? fpdu.size : head) - fpdu.bytes.size();
    const Bytes part = bytes.first(std::min(wanted, bytes.size()));
    append(fpdu, part);
    bytes = bytes.subspan(part.size());
    if (fpdu.size == 0 && fpdu.bytes.size() == head) begin(fpdu, filter, now);
  }
}

void FPDUQueue::append(FPDU& fpdu, Bytes bytes) {
  const u64 from = fpdu.bytes.size() * 8;
  fpdu.bytes.insert(fpdu.bytes.end(), bytes.begin(), bytes.end());
  for (const u64 bit : fpdu.flips)
    if (from <= bit && bit < fpdu.bytes.size() * 8)
      fpdu.bytes[bit / 8] ^= static_cast<u8>(1u << bit % 8);
}

// Bytes of the marker that stands before its length.
std::size_t FPDUQueue::marker_before() const {
  return has_markers_ && position_ % iwarp::kMarkerInterval == 0 ? iwarp::kMarkerBytes : 0;
}

// Its first bytes have come.
void FPDUQueue::begin(FPDU& fpdu, FaultFilter* filter, Time now) {
  const u32 plain = iwarp::fpdu_bytes(load_be16(fpdu.bytes.data() + marker_before()));
  fpdu.size = has_markers_ ? iwarp::marked_bytes(plain, position_) : plain;
  fpdu.size = std::max(fpdu.size, fpdu.bytes.size());
  fpdu.info = info_of(fpdu);
  position_ += fpdu.size;
  judge(fpdu, filter, now);
}

PacketInfo FPDUQueue::info_of(const FPDU& fpdu) {
  const std::size_t at = marker_before() + iwarp::kMPALengthBytes;
  const u8 ddp = fpdu.bytes[at];
  const bool is_last = (ddp & kLast) != 0;
  bool& in_message = (ddp & kTagged) != 0 ? in_tagged_message_ : in_untagged_message_;
  const bool is_first = !std::exchange(in_message, !is_last);
  const auto opcode = iwarp::opcode_of(fpdu.bytes[at + 1]);
  return {
      .direction = direction_,
      .opcode = {Service::kRC, op_of(opcode.value_or(RDMAPOpcode::kTerminate), is_first, is_last)},
      .local_qp = local_qp_,
      .peer = peer_,
      .size_bytes = fpdu.size};
}

void FPDUQueue::judge(FPDU& fpdu, FaultFilter* filter, Time now) {
  fpdu.due = now;
  fpdu.is_lost = false;
  if (filter == nullptr) return;
  const Verdict verdict = filter->judge(fpdu.info, now);
  breaks_qp_ |= verdict.breaks_qp;
  overruns_cq_ |= verdict.overruns_cq;
  if (verdict.dropped) {
    const i64 doubled = kFirstTimeout.ps() << std::min<u32>(fpdu.losses++, 16);
    fpdu.due = now + std::min(ps(doubled), kLongestTimeout);
    fpdu.is_lost = true;
    return;
  }
  fpdu.due = now + verdict.delay;
  if (!verdict.corruption) return;
  PRNG places(verdict.corruption->seed);
  for (u32 i = 0; i < verdict.corruption->bits; ++i)
    fpdu.flips.push_back(places.below(fpdu.size * 8));
  const std::vector<u8> so_far = std::exchange(fpdu.bytes, {});
  append(fpdu, so_far);
}

Bytes FPDUQueue::front(FaultFilter* filter, Time now) {
  if (fpdus_.empty() || fpdus_.front().size == 0 || fpdus_.front().due > now) return {};
  FPDU& fpdu = fpdus_.front();
  if (fpdu.is_lost) judge(fpdu, filter, now);
  if (fpdu.due > now) return {};
  return Bytes(fpdu.bytes).subspan(fpdu.taken);
}

void FPDUQueue::pop(std::size_t bytes) {
  FPDU& fpdu = fpdus_.front();
  fpdu.taken += bytes;
  held_ -= bytes;
  CHECK(fpdu.taken <= fpdu.bytes.size());
  if (fpdu.taken == fpdu.size) fpdus_.pop_front();
}

Time FPDUQueue::next_due() const {
  if (fpdus_.empty() || fpdus_.front().size == 0) return Time::never();
  const FPDU& fpdu = fpdus_.front();
  return fpdu.taken == fpdu.bytes.size() ? Time::never() : fpdu.due;
}

}  // namespace verbena::faults
