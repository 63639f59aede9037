// Explainer: of one adapter: keeps the packet history, and says on standard error why the work of a
// QP ended in error. Asked for by VERBENA_EXPLAIN=1, which `verbena run` sets. One paragraph for
// each QP, and kMaxParagraphs for each process.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_set>

#include "device/device.h"
#include "explain/facts.h"

namespace verbena::host {

inline constexpr const char* kExplainVariable = "VERBENA_EXPLAIN";

class Explainer {
 public:
  static constexpr u32 kMaxParagraphs = 10;

  // Returns nullptr if the user wants no explanations.
  [[nodiscard]] static std::unique_ptr<Explainer> from_environment();

  // Whether any of them is in error.
  [[nodiscard]] static bool concerns(std::span<const CQE> cqes);

  // --- with the adapter's lock held
  [[nodiscard]] explain::PacketHistory& history() { return history_; }
  void on_qp_broken_by_rule(QPN qpn) { broken_by_rule_.insert(qpn); }
  void on_cq_overrun_by_rule(const CompletionQueue* cq) { overrun_by_rule_ = cq; }
  // Call it when the program gets them. Returns nullopt if there is nothing to explain; otherwise
  // pass the result to tell().
  [[nodiscard]] std::optional<explain::Facts> on_completions(Device& device,
                                                             std::span<const CQE> cqes);
  void on_event(Device& device, const AsyncEvent& event, Time now);

  // --- without it: takes some milliseconds
  static void tell(explain::Facts facts);

 private:
  [[nodiscard]] std::optional<explain::Facts> on_error(Device& device, const CQE& cqe);
  void on_qp_event(Device& device, const AsyncEvent& event, Time now);
  [[nodiscard]] explain::Facts facts_of(Device& device, const QueuePair* qp, Time at) const;

  explain::PacketHistory history_;
  std::unordered_set<QPN> explained_, broken_by_rule_;
  const CompletionQueue* overrun_by_rule_ = nullptr;
};

}  // namespace verbena::host
