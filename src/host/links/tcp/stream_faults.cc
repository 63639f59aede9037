#include "host/links/tcp/stream_faults.h"

#include <cerrno>

namespace verbena::host {

Expected<void> StreamFaults::set_rules(std::vector<faults::Rule> rules, u64 seed, Time now) {
  if (const auto mistake = faults::mistake_on_streams(rules)) return failure(EINVAL, *mistake);
  faults::fit_to_streams(rules);
  filter_ =
      rules.empty() ? nullptr : std::make_unique<faults::FaultFilter>(std::move(rules), seed, now);
  return {};
}

std::unique_ptr<FaultyStream> StreamFaults::begin(QPN qpn, const GID& peer,
                                                  const StreamAgreement& agreement) const {
  if (filter_ == nullptr) return nullptr;
  auto faulty = std::make_unique<FaultyStream>(qpn, peer);
  if (agreement.sends_markers) faulty->out.expect_markers();
  if (agreement.receives_markers) faulty->in.expect_markers();
  return faulty;
}

void StreamFaults::note_objects(FaultyStream& stream) {
  for (faults::FPDUQueue* const queue : {&stream.out, &stream.in}) {
    if (queue->take_broken_qp())
      object_faults_.push_back({ObjectFault::Kind::kBreakQP, stream.qpn});
    if (queue->take_overrun_cq())
      object_faults_.push_back({ObjectFault::Kind::kOverrunCQ, stream.qpn});
  }
}

std::optional<ObjectFault> StreamFaults::poll_object_fault() {
  if (object_faults_.empty()) return std::nullopt;
  const ObjectFault fault = object_faults_.back();
  object_faults_.pop_back();
  return fault;
}

}  // namespace verbena::host
