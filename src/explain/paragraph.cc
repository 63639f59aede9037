#include "explain/paragraph.h"

#include <algorithm>

#include "explain/names.h"
#include "explain/text.h"

namespace verbena::explain {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kRunsShown = 6;

bool has_peer(QPType type) { return type != QPType::kUD && type != QPType::kRawPacket; }

std::string subject(const Facts& facts) {
  std::string out = text("verbena: QP 0x%06x (%s, %s)", facts.qp.qpn.value, name_of(facts.qp.type),
                         name_of(facts.qp.state));
  if (!has_peer(facts.qp.type)) return out;
  return out + text(" to QP 0x%06x at %s", facts.qp.dest_qp.value,
                    facts.qp.path.destination.to_string().c_str());
}

std::string send_work(const Facts& facts) {
  const RequesterFault& fault = facts.fault.requester;
  std::string out = text("%s of %u bytes (wr_id 0x%llx", name_of(fault.op), fault.length_bytes,
                         static_cast<unsigned long long>(fault.wr_id));
  if (needed_flag(fault.op) != nullptr)
    out += text(", remote address 0x%llx, R_Key 0x%08x",
                static_cast<unsigned long long>(fault.remote_address), fault.r_key.value);
  return out + text(") ended with %s %s after it was posted.", name_of(facts.status),
                    text_of(facts.at - fault.posted).c_str());
}

std::string work(const Facts& facts) {
  switch (facts.told) {
    case Told::kBySendCompletion: return send_work(facts);
    case Told::kByReceiveCompletion:
      return text("the receive with wr_id 0x%llx ended with %s.",
                  static_cast<unsigned long long>(facts.wr_id), name_of(facts.status));
    case Told::kByEvent: return text("asynchronous event %s.", name_of(facts.event));
  }
  CHECK_UNREACHABLE();
}

const char* drop_name(Reception reception) {
  switch (reception) {
    case Reception::kAccepted: return nullptr;
    case Reception::kMalformed: return "malformed";
    case Reception::kBadICRC: return "wrong ICRC";
    case Reception::kUnknownQP: return "unknown QP";
    case Reception::kService: return "wrong service";
    case Reception::kState: return "QP state";
    case Reception::kPKey: return "P_Key";
    case Reception::kSource: return "not the peer's address";
  }
  CHECK_UNREACHABLE();
}

// Consecutive packets of one message, or one packet that is repeated.
struct Run {
  const PacketRecord* first;
  const PacketRecord* last;
  u16 largest_bytes;
  u32 times = 1;
};

bool alike(const PacketRecord& a, const PacketRecord& b) {
  return a.direction == b.direction && a.rule == b.rule && a.reception == b.reception &&
         a.syndrome == b.syndrome;
}

bool extend(Run& run, const PacketRecord& packet) {
  if (!alike(*run.last, packet)) return false;
  const bool is_one = run.first->psn == run.last->psn;
  const bool again = is_one && packet.psn == run.last->psn && packet.opcode == run.last->opcode;
  if (!again && (run.times != 1 || run.last->psn.next() != packet.psn)) return false;
  run.times += again;
  run.last = &packet;
  run.largest_bytes = std::max(run.largest_bytes, packet.transport_bytes);
  return true;
}

std::vector<Run> runs_of(const std::vector<PacketRecord>& packets) {
  std::vector<Run> runs;
  for (const PacketRecord& packet : packets)
    if (runs.empty() || !extend(runs.back(), packet))
      runs.push_back({&packet, &packet, packet.transport_bytes});
  return runs;
}

// Returns "SEND Only": without the service, which the QP names.
std::string operation_name(const PacketRecord& packet) {
  const std::string_view name = verbena::name_of(Opcode::from_byte(packet.opcode));
  return std::string(name.substr(std::min(name.find(' ') + 1, name.size())));
}

// "-1.5 s", "now"
std::string time_text(const PacketRecord& packet, Time now) {
  const Duration age = now - packet.at;
  return age > Duration() ? text("-%s", text_of(age).c_str()) : "now";
}

// "sent SEND First .. SEND Last PSN 5-8"
std::string run_text(const Run& run, Time now) {
  const PacketRecord& packet = *run.first;
  const bool is_many = run.first->psn != run.last->psn;
  const bool aeth = packet.syndrome != PacketRecord::kNoSyndrome;
  const std::string syndrome = aeth ? syndrome_name(packet.syndrome) : "";
  std::string out = packet.direction == Direction::kSent ? "sent " : "got ";
  out += syndrome.empty() ? operation_name(packet) : syndrome;
  if (is_many && syndrome.empty()) out += " .. " + operation_name(*run.last);
  out += text(" PSN %u", packet.psn.value());
  if (is_many) out += text("-%u", run.last->psn.value());
  if (!aeth) out += text(is_many ? ", at most %u bytes each" : ", %u bytes", run.largest_bytes);
  if (run.times != 1)
    out += text(", %s%u times, last %s", run.times < PacketHistory::kDepth ? "" : "at least ",
                run.times, time_text(*run.last, now).c_str());
  if (packet.rule != 0) out += " (lost by a fault)";
  if (const char* const drop = drop_name(packet.reception)) out += text(" (dropped: %s)", drop);
  return out;
}

std::string packets(const Facts& facts) {
  const std::vector<Run> runs = runs_of(facts.packets);
  std::string out;
  for (std::size_t i = runs.size() - std::min(runs.size(), kRunsShown); i < runs.size(); ++i)
    out += text("%s %s %s", out.empty() ? " Packets before:" : ";",
                time_text(*runs[i].first, facts.at).c_str(), run_text(runs[i], facts.at).c_str());
  if (!out.empty()) out.push_back('.');
  return out;
}

}  // namespace

std::string paragraph(const Facts& facts) {
  const Advice advice = advice_for(diagnose(facts), facts);
  std::string out = subject(facts) + ": " + work(facts) + packets(facts);
  out += " Likely cause: " + advice.cause;
  if (!advice.remedy.empty()) out += " Try: " + advice.remedy;
  return wrapped(out, kColumns);
}

std::string overrun_paragraph(u32 capacity, bool injected) {
  std::string out = text("verbena: a CQ of %u entries: asynchronous event %s; its QPs go to Error.",
                         capacity, name_of(AsyncEventType::kCQError));
  out += injected ? " Likely cause: the fault rule cq-overrun of this process."
                  : " Likely cause: the CQ overran: more completions came than it has entries "
                    "before the program polled it. Try: a larger cqe in ibv_create_cq (as many as "
                    "the work requests that can complete at once, of all QPs that use the CQ), or "
                    "poll it more often.";
  return wrapped(out, kColumns);
}

}  // namespace verbena::explain
