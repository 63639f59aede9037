#include "host/settings/mpa_settings.h"

#include <cerrno>
#include <cstdlib>
#include <string>

namespace verbena::host {
namespace {

// Returns false if there is no such word.
bool apply(std::string_view word, MPAConfig& config) {
  if (word == "crc=on" || word == "crc=off")
    config.crc = word == "crc=on";
  else if (word == "mpa=1" || word == "mpa=2")
    config.revision = word == "mpa=1" ? 1 : 2;
  else if (word == "markers=on" || word == "markers=off")
    config.markers = word == "markers=on";
  else if (word == "p2p=on" || word == "p2p=off")
    config.peer_to_peer = word == "p2p=on";
  else
    return false;
  return true;
}

}  // namespace

Expected<MPAConfig> mpa_settings(std::string_view text) {
  MPAConfig config;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!apply(word, config))
      return failure(EINVAL, std::string(kIWARPVariable) + ": \"" + std::string(word) +
                                 "\" is none of crc=on, crc=off, mpa=1, mpa=2, p2p=on, p2p=off, "
                                 "markers=on, markers=off");
  }
  return config;
}

Expected<MPAConfig> mpa_settings_from_environment() {
  const char* const text = std::getenv(kIWARPVariable);
  return mpa_settings(text == nullptr ? "" : text);
}

}  // namespace verbena::host
