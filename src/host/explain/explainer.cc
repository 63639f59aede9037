#include "host/explain/explainer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "explain/paragraph.h"
#include "host/explain/peer_probe.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

using explain::Facts;
using explain::PeerFacts;
using explain::Told;

std::atomic<u32> paragraphs_told{0};  // of this process

bool enough_told() { return paragraphs_told.load() > Explainer::kMaxParagraphs; }

// One write: what several threads and processes say stays apart.
void say(const std::string& words) {
  const u32 before = paragraphs_told.fetch_add(1);
  if (before > Explainer::kMaxParagraphs) return;
  const std::string last =
      "verbena: more errors are not explained in this process (VERBENA_EXPLAIN=0 explains none)\n";
  const std::string& out = before < Explainer::kMaxParagraphs ? words : last;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, out.data(), out.size());
}

Told told_by(const CQE& cqe) {
  const bool received =
      cqe.op == CompletionOp::kReceive || cqe.op == CompletionOp::kReceiveRDMAWithImmediate;
  return received ? Told::kByReceiveCompletion : Told::kBySendCompletion;
}

bool is_of_device(const Device& device, const GID& gid) {
  const auto& gids = device.config().gids;
  return std::any_of(gids.begin(), gids.end(),
                     [&gid](const GIDEntry& entry) { return entry.gid == gid; });
}

PeerFacts peer_on_device(Device& device, const QPAttributes& qp) {
  PeerFacts facts;
  if (!is_of_device(device, qp.path.destination)) return facts;
  if (slot_of(qp.dest_qp.value) != slot_of(device.config().first_qpn.value)) return facts;
  facts.place = PeerFacts::Place::kThisDevice;
  const QueuePair* const peer = device.find_qp(qp.dest_qp);
  if (peer == nullptr) return facts;
  const QPAttributes& attributes = device.attributes_of(peer);
  facts.qp = {.state = attributes.state,
              .dest_qp = attributes.dest_qp,
              .p_key = attributes.p_key,
              .source = attributes.path.source,
              .destination = attributes.path.destination,
              .has_srq = device.init_of(peer).srq != nullptr,
              .fault = device.fault_of(peer).responder};
  return facts;
}

// Returns false for a request that was posted to a QP already in Error. Programs post an empty
// message to wait for the flushes before it.
bool is_worth_telling(const RequesterFault& fault, const CQE& cqe) {
  return cqe.status != WQEStatus::kFlushed ||
         (fault.status == WQEStatus::kFlushed && fault.wr_id == cqe.wr_id &&
          fault.length_bytes != 0 && told_by(cqe) == Told::kBySendCompletion);
}

}  // namespace

std::unique_ptr<Explainer> Explainer::from_environment() {
  const char* const wanted = std::getenv(kExplainVariable);
  if (wanted == nullptr || std::string_view(wanted) != "1") return nullptr;
  return std::make_unique<Explainer>();
}

bool Explainer::concerns(std::span<const CQE> cqes) {
  return std::any_of(cqes.begin(), cqes.end(),
                     [](const CQE& cqe) { return cqe.status != WQEStatus::kSuccess; });
}

std::optional<Facts> Explainer::on_completions(Device& device, std::span<const CQE> cqes) {
  for (const CQE& cqe : cqes) {
    if (cqe.status == WQEStatus::kSuccess) continue;
    if (std::optional<Facts> facts = on_error(device, cqe)) return facts;
  }
  return std::nullopt;
}

std::optional<Facts> Explainer::on_error(Device& device, const CQE& cqe) {
  const QueuePair* const qp = device.find_qp(cqe.qp);
  if (qp == nullptr || enough_told() || explained_.contains(cqe.qp)) return std::nullopt;
  if (!is_worth_telling(device.fault_of(qp).requester, cqe)) return std::nullopt;
  explained_.insert(cqe.qp);
  Facts facts = facts_of(device, qp, cqe.completed_at);
  facts.told = told_by(cqe);
  facts.status = cqe.status;
  facts.wr_id = cqe.wr_id;
  return facts;
}

void Explainer::on_event(Device& device, const AsyncEvent& event, Time now) {
  switch (event.type) {
    case AsyncEventType::kQPFatal:
    case AsyncEventType::kQPRequestError:
    case AsyncEventType::kQPAccessError: return on_qp_event(device, event, now);
    case AsyncEventType::kCQError:
      if (!enough_told())
        say(explain::overrun_paragraph(device.capacity_of(event.cq), event.cq == overrun_by_rule_));
      return;
    case AsyncEventType::kCommunicationEstablished:
    case AsyncEventType::kSQDrained:
    case AsyncEventType::kQPLastWQEReached:
    case AsyncEventType::kSRQError:
    case AsyncEventType::kSRQLimitReached:
    case AsyncEventType::kPortActive:
    case AsyncEventType::kPortError:
    case AsyncEventType::kGIDChange:
    case AsyncEventType::kLIDChange:
    case AsyncEventType::kPKeyChange:
    case AsyncEventType::kSMChange:
    case AsyncEventType::kClientReregister: return;
  }
}

void Explainer::on_qp_event(Device& device, const AsyncEvent& event, Time now) {
  const QPN qpn = device.attributes_of(event.qp).qpn;
  if (enough_told() || !explained_.insert(qpn).second) return;
  const QPInit& init = device.init_of(event.qp);
  for (const CompletionQueue* cq : {init.send_cq, init.receive_cq})
    if (cq != nullptr && device.overrun(cq)) return;  // the CQ's paragraph has told it
  Facts facts = facts_of(device, event.qp, now);
  facts.told = Told::kByEvent;
  facts.event = event.type;
  facts.injected = broken_by_rule_.contains(qpn);
  say(explain::paragraph(facts));
}

Facts Explainer::facts_of(Device& device, const QueuePair* qp, Time at) const {
  Facts facts;
  facts.qp = device.attributes_of(qp);
  facts.at = at;
  facts.fault = device.fault_of(qp);
  facts.packets = history_.of(facts.qp.qpn);
  std::erase_if(facts.packets,
                [at](const explain::PacketRecord& packet) { return packet.at > at; });
  facts.rules = history_.rules();
  facts.peer = peer_on_device(device, facts.qp);
  return facts;
}

void Explainer::tell(Facts facts) {
  if (facts.status == WQEStatus::kRetryExceeded &&
      facts.peer.place != PeerFacts::Place::kThisDevice)
    probe_peer(facts.qp.path, facts.qp.dest_qp, facts.peer);
  say(explain::paragraph(facts));
}

}  // namespace verbena::host
