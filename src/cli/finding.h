// Finding: one line of `verbena doctor`.
#pragma once

#include <string>
#include <vector>

namespace verbena::cli {

enum class Verdict { kOk, kWarning, kProblem };

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;  // one word
  std::string text;     // what is so
  std::string fix{};    // what to do, a command where there is one; "": nothing
};
using Findings = std::vector<Finding>;

[[nodiscard]] Verdict worst_of(const Findings& findings);
[[nodiscard]] std::string to_text(const Findings& findings);
[[nodiscard]] std::string to_json(const Findings& findings);

}  // namespace verbena::cli
