#include "cli/finding.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace verbena::cli {
namespace {

std::string_view text_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kWarning: return "warning";
    case Verdict::kProblem: return "problem";
  }
  CHECK_UNREACHABLE();
}

}  // namespace

Verdict worst_of(const Findings& findings) {
  Verdict worst = Verdict::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.verdict);
  return worst;
}

std::string to_text(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {:<11} {}", text_of(finding.verdict), finding.subject, finding.text);
    if (!finding.fix.empty()) text += fmt::format("; fix: {}", finding.fix);
    text += "\n";
  }
  return text;
}

std::string to_json(const Findings& findings) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    nlohmann::ordered_json json = {{"verdict", text_of(finding.verdict)},
                                   {"subject", finding.subject},
                                   {"text", finding.text}};
    if (!finding.fix.empty()) json["fix"] = finding.fix;
    array.push_back(std::move(json));
  }
  const nlohmann::ordered_json whole = {{"verdict", text_of(worst_of(findings))},
                                        {"findings", array}};
  return whole.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace verbena::cli
