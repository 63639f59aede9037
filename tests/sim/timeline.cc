#include "tests/sim/timeline.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "wire/ib/packet.h"
#include "wire/roce/icrc.h"

namespace verbena::sim {
namespace {

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

const char* name_of(Fate fate) {
  switch (fate) {
    case Fate::kSent: return "";
    case Fate::kLost: return " LOST";
    case Fate::kLate: return " LATE";
    case Fate::kCopied: return " TWICE";
    case Fate::kCorrupted: return " CORRUPTED";
    case Fate::kMarked: return " MARKED";
  }
  CHECK_UNREACHABLE();
}

std::string describe(const AETH& aeth) {
  switch (aeth.kind) {
    case AETHKind::kACK: return format(" ACK credits %u msn %u", aeth.value, aeth.msn.value());
    case AETHKind::kRNRNAK: return format(" RNR NAK timer %u msn %u", aeth.value, aeth.msn.value());
    case AETHKind::kNAK: return format(" NAK code %u msn %u", aeth.value, aeth.msn.value());
    case AETHKind::kReserved: return " reserved AETH";
  }
  CHECK_UNREACHABLE();
}

}  // namespace

const char* name_of(WQEStatus status) {
  switch (status) {
    case WQEStatus::kSuccess: return "success";
    case WQEStatus::kLocalLength: return "local length error";
    case WQEStatus::kLocalQPOperation: return "local QP operation error";
    case WQEStatus::kLocalProtection: return "local protection error";
    case WQEStatus::kFlushed: return "flushed";
    case WQEStatus::kMWBind: return "memory window bind error";
    case WQEStatus::kBadResponse: return "bad response";
    case WQEStatus::kLocalAccess: return "local access error";
    case WQEStatus::kRemoteInvalidRequest: return "remote invalid request";
    case WQEStatus::kRemoteAccess: return "remote access error";
    case WQEStatus::kRemoteOperational: return "remote operational error";
    case WQEStatus::kRetryExceeded: return "retry exceeded";
    case WQEStatus::kRNRRetryExceeded: return "RNR retry exceeded";
  }
  CHECK_UNREACHABLE();
}

const char* name_of(CompletionOp op) {
  switch (op) {
    case CompletionOp::kSend: return "SEND";
    case CompletionOp::kRDMAWrite: return "WRITE";
    case CompletionOp::kRDMARead: return "READ";
    case CompletionOp::kCompareSwap: return "CMP_SWAP";
    case CompletionOp::kFetchAdd: return "FETCH_ADD";
    case CompletionOp::kFlush: return "FLUSH";
    case CompletionOp::kAtomicWrite: return "ATOMIC_WRITE";
    case CompletionOp::kBindMW: return "BIND_MW";
    case CompletionOp::kLocalInvalidate: return "LOCAL_INV";
    case CompletionOp::kReceive: return "RECV";
    case CompletionOp::kReceiveRDMAWithImmediate: return "RECV_WRITE_IMM";
  }
  CHECK_UNREACHABLE();
}

const char* name_of(AsyncEventType type) {
  switch (type) {
    case AsyncEventType::kQPFatal: return "QP fatal";
    case AsyncEventType::kQPRequestError: return "QP request error";
    case AsyncEventType::kQPAccessError: return "QP access error";
    case AsyncEventType::kCommunicationEstablished: return "communication established";
    case AsyncEventType::kSQDrained: return "SQ drained";
    case AsyncEventType::kQPLastWQEReached: return "last WQE reached";
    case AsyncEventType::kCQError: return "CQ error";
    case AsyncEventType::kSRQError: return "SRQ error";
    case AsyncEventType::kSRQLimitReached: return "SRQ limit reached";
    case AsyncEventType::kPortActive: return "port active";
    case AsyncEventType::kPortError: return "port error";
    case AsyncEventType::kGIDChange: return "GID change";
    case AsyncEventType::kLIDChange: return "LID change";
    case AsyncEventType::kPKeyChange: return "P_Key change";
    case AsyncEventType::kSMChange: return "SM change";
    case AsyncEventType::kClientReregister: return "client reregister";
  }
  CHECK_UNREACHABLE();
}

std::string to_string(const CQE& cqe) {
  return format("%s wr_id %llx qp 0x%x: %s, %u bytes", name_of(cqe.op),
                static_cast<unsigned long long>(cqe.wr_id), cqe.qp.value, name_of(cqe.status),
                cqe.byte_length);
}

std::string describe(Bytes transport) {
  const std::optional<BTH> bth = BTH::decode(transport);
  if (!bth || !traits_of(bth->opcode).valid ||
      transport.size() < traits_of(bth->opcode).headers_size)
    return "not a packet";
  const OpcodeTraits& traits = traits_of(bth->opcode);
  std::string text =
      format("%s psn %u qp 0x%x%s%s", verbena::name_of(bth->opcode), bth->psn.value(),
             bth->dest_qp.value, bth->ack_req ? " A" : "", bth->solicited_event ? " S" : "");
  const Bytes body = transport.subspan(BTH::kSize);
  if (traits.reth)
    if (const std::optional<RETH> reth = RETH::decode(body))
      text +=
          format(" va %llx key %08x len %u", static_cast<unsigned long long>(reth->virtual_address),
                 reth->r_key.value, reth->dma_length);
  if (traits.aeth)
    if (const std::optional<AETH> aeth = AETH::decode(body)) text += describe(*aeth);
  return text;
}

Timeline::Entry& Timeline::add(Time at, u32 node, Kind kind) {
  if (entries_.size() == kKept) entries_.pop_front();
  Entry& entry = entries_.emplace_back();
  entry.at = at;
  entry.node = node;
  entry.kind = kind;
  mix(static_cast<u64>(at.ps()));
  mix(node << 8 | static_cast<u32>(kind));
  return entry;
}

void Timeline::mix(u64 value) {
  hash_ = (hash_ ^ value) * 0x9fb21c651e98df25;
  hash_ ^= hash_ >> 29;
}

void Timeline::sent(Time at, u32 node, const IngressFrame& frame, Fate fate) {
  Entry& entry = add(at, node, Kind::kFrame);
  entry.fate = fate;
  entry.frame_bytes = frame.transport.size();
  const std::size_t kept = std::min(frame.transport.size(), kHeadersKept);
  entry.headers.assign(frame.transport.begin(),
                       frame.transport.begin() + static_cast<std::ptrdiff_t>(kept));
  // The ICRC stands for all of the bytes.
  mix(load_icrc(frame.transport.last<kICRCSize>()));
  mix(frame.transport.size() << 32 | u32{frame.udp_source_port} << 16 | frame.traffic_class);
}

void Timeline::completed(Time at, u32 node, const CQE& cqe) {
  add(at, node, Kind::kCQE).cqe = cqe;
  mix(cqe.wr_id);
  mix(u64{cqe.byte_length} << 32 | static_cast<u32>(cqe.status) << 8 | static_cast<u32>(cqe.op));
  mix(u64{cqe.immediate} << 32 | cqe.qp.value);
}

void Timeline::event(Time at, u32 node, AsyncEventType type) {
  add(at, node, Kind::kEvent).event = type;
  mix(static_cast<u64>(type));
}

void Timeline::note(Time at, u32 node, const std::string& text) {
  add(at, node, Kind::kNote).text = text;
}

std::string Timeline::to_string(const Entry& e) {
  std::string text = format("%14.3f us  node %u  ", static_cast<double>(e.at.ps()) * 1e-6, e.node);
  switch (e.kind) {
    case Kind::kFrame:
      return text + "-> " + describe(e.headers) + format(" [%zu]", e.frame_bytes) + name_of(e.fate);
    case Kind::kCQE: return text + "   CQE " + sim::to_string(e.cqe);
    case Kind::kEvent: return text + "   EVENT " + sim::name_of(e.event);
    case Kind::kNote: return text + "   " + e.text;
  }
  CHECK_UNREACHABLE();
}

std::string Timeline::last(std::size_t entries) const {
  std::string text;
  const std::size_t skip = entries_.size() - std::min(entries, entries_.size());
  for (std::size_t i = skip; i < entries_.size(); ++i) text += to_string(entries_[i]) + "\n";
  return text;
}

}  // namespace verbena::sim
