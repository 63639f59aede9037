#include "cli/fault_options.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "faults/spec.h"

namespace verbena::cli {
namespace {

Expected<std::string> checked(std::string text, const std::string& source) {
  if (auto rules = faults::parse_rules(text); !rules)
    return failure(kExitCannot, fmt::format("{}: {}", source, rules.error()));
  return text;
}

Expected<std::string> read_file(const std::string& file) {
  std::ifstream in(file);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad())
    return failure(kExitCannot, fmt::format("cannot read {}: {}", file, std::strerror(errno)));
  return checked(std::move(text), file);
}

}  // namespace

Expected<std::string> read_faults(const std::vector<std::string>& rules,
                                  const std::vector<std::string>& files) {
  std::string all;
  for (const std::string& rule : rules) {
    auto text = checked(rule, "--fault");
    if (!text) return text;
    all.append(*text).append("\n");
  }
  for (const std::string& file : files) {
    auto text = read_file(file);
    if (!text) return text;
    all.append(*text).append("\n");
  }
  return all;
}

}  // namespace verbena::cli
