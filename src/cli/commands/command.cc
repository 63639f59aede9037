#include "cli/commands/command.h"

#include <fmt/format.h>

#include "cli/option_values.h"
#include "faults/values.h"

namespace verbena::cli {

tl::unexpected<Failure> Command::wrong_usage(std::string_view what) const {
  return failure(kExitCannot, fmt::format("{}; verbena {} --help explains", what, name_));
}

std::optional<tl::unexpected<Failure>> Command::check_filled(const char* option,
                                                             const std::string& value) const {
  if (!has(option) || !value.empty()) return std::nullopt;
  return wrong_usage(fmt::format("{} is empty", option));
}

Expected<std::vector<fabric::Setting>> Command::read_settings(const std::vector<std::string>& texts,
                                                              std::string_view example) const {
  std::vector<fabric::Setting> settings;
  for (const std::string& text : texts) {
    const std::optional<fabric::Setting> setting = parse_setting(text);
    if (!setting) return wrong_usage(fmt::format("--set {}: write it as {}", text, example));
    settings.push_back(*setting);
  }
  return settings;
}

Expected<void> Command::read_number(const char* option, const std::string& text, u64 most,
                                    u32& out) const {
  if (!has(option)) return {};
  const std::optional<u64> number = faults::parse_number(text);
  if (!number || *number == 0 || *number > most)
    return wrong_usage(fmt::format("{} {}: it is 1 to {}", option, text, most));
  out = static_cast<u32>(*number);
  return {};
}

OutputFormat format_of(bool json) { return json ? OutputFormat::kJSON : OutputFormat::kText; }

}  // namespace verbena::cli
