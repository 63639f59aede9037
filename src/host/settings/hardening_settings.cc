#include "host/settings/hardening_settings.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>

namespace verbena::host {
namespace {

constexpr u32 kDefaultRefusals = 100;

bool apply_hardening(std::string_view word, HardeningSettings& out) {
  constexpr std::string_view kRefusals = "refusals=";
  if (word == "qpn") return out.device.random_qpns = true;
  if (word == "zero") return out.zeroes_memory = true;
  if (word == "refusals") return (out.device.refusals_per_second = kDefaultRefusals) != 0;
  if (!word.starts_with(kRefusals)) return false;
  const std::string_view number = word.substr(kRefusals.size());
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, out.device.refusals_per_second);
  return error == std::errc() && at == end && out.device.refusals_per_second != 0;
}

}  // namespace

Expected<HardeningSettings> hardening_settings(std::string_view text) {
  HardeningSettings settings;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!apply_hardening(word, settings))
      return failure(EINVAL, std::string(kHardenVariable) + ": \"" + std::string(word) +
                                 "\" is none of qpn, zero, refusals, refusals=N");
  }
  return settings;
}

Expected<HardeningSettings> hardening_from_environment() {
  const char* const text = std::getenv(kHardenVariable);
  return hardening_settings(text == nullptr ? "" : text);
}

}  // namespace verbena::host
