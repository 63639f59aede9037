// Findings: the findings that are not yet reported; each kind at most once for each call site.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "check/finding.h"

namespace verbena::check {

class Findings {
 public:
  void add(Finding finding) {
    const void* const place = finding.calls.empty() ? nullptr : finding.calls[0].site.call();
    if (seen_.emplace(finding.kind, place).second) waiting_.push_back(std::move(finding));
  }
  [[nodiscard]] std::optional<Finding> poll() {
    if (waiting_.empty()) return std::nullopt;
    Finding next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

 private:
  std::set<std::pair<Kind, const void*>> seen_;
  std::deque<Finding> waiting_;
};

}  // namespace verbena::check
