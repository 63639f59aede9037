#include "cli/sim_result.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace verbena::cli {
namespace {

using Json = nlohmann::ordered_json;

Json object_of(const SimResult& result) {
  Json metrics = Json::object(), summary = Json::object();
  for (const fabric::Metric& metric : result.metrics) {
    if (!metric.word.empty())
      metrics[metric.name] = metric.word;
    else if (std::isnan(metric.value))
      metrics[metric.name] = nullptr;
    else
      metrics[metric.name] = metric.value;
  }
  for (const fabric::SummaryLine& line : result.lines) summary[line.name] = line.value;
  return {{"run", result.title},
          {"metrics", metrics},
          {"summary", summary},
          {"notes", result.notes},
          {"unmet", result.unmet}};
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// "drops == 0: it is 525" of "drops == 0".
const std::string* failure_of(const SimResult& result, const std::string& expected) {
  const auto at = std::ranges::find_if(
      result.unmet, [&](const std::string& unmet) { return unmet.starts_with(expected + ": "); });
  return at == result.unmet.end() ? nullptr : &*at;
}

std::string cases_of(const SimResult& result) {
  if (result.expected.empty())
    return fmt::format("  <testcase classname=\"{}\" name=\"runs\"/>\n", escaped(result.title));
  std::string text;
  for (const std::string& expected : result.expected) {
    const std::string* const unmet = failure_of(result, expected);
    text += fmt::format("  <testcase classname=\"{}\" name=\"{}\"", escaped(result.title),
                        escaped(expected));
    text += unmet == nullptr
                ? "/>\n"
                : fmt::format("><failure message=\"{}\"/></testcase>\n", escaped(*unmet));
  }
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

Expected<std::vector<fabric::Expectation>> expectations_of(const std::vector<std::string>& texts) {
  std::vector<fabric::Expectation> expectations;
  for (const std::string& text : texts) {
    fabric::Parsed<fabric::Expectation> expectation = fabric::parse_expectation(text);
    if (!expectation) return cannot("--expect " + expectation.error().message);
    expectations.push_back(*std::move(expectation));
  }
  return expectations;
}

Expected<void> check_names(std::span<const fabric::Expectation> expectations,
                           std::span<const fabric::Metric> metrics) {
  if (const std::string unknown = fabric::unknown_names(expectations, metrics); !unknown.empty())
    return cannot(unknown);
  return {};
}

void judge(std::span<const fabric::Expectation> expectations, SimResult& result) {
  for (const fabric::Expectation& expectation : expectations) {
    result.expected.push_back(expectation.text);
    if (std::string unmet = fabric::unmet(expectation, result.metrics); !unmet.empty())
      result.unmet.push_back(std::move(unmet));
  }
}

std::string json_of(const SimResult& result) { return json_text(object_of(result)); }

std::string json_of(const std::vector<SimResult>& results) {
  Json runs = Json::array();
  for (const SimResult& result : results) runs.push_back(object_of(result));
  return json_text({{"runs", runs}});
}

std::string junit_of(const std::string& suite, const std::vector<SimResult>& results) {
  std::size_t cases = 0, failures = 0;
  for (const SimResult& result : results) {
    cases += std::max<std::size_t>(1, result.expected.size());
    failures += result.unmet.size();
  }
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n",
      escaped(suite), cases, failures);
  for (const SimResult& result : results) text += cases_of(result);
  return text + "</testsuite>\n";
}

}  // namespace verbena::cli
