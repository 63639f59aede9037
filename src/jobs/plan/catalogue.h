// NICs and switches that clusters are built of: what their makers publish, with where. Numbers that
// no source was found for are not here. Prices are asked for from sellers, and are not data.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/rate.h"

namespace verbena::jobs {

struct NICModel {
  std::string_view name;
  Rate rate;  // of all ports together
  std::string_view ports;
  std::string_view host;  // interface
  std::string_view technologies;
  std::optional<u32> most_watts;  // without optics
  std::string_view source;
};

struct SwitchModel {
  std::string_view name;
  u32 ports = 0;
  Rate port_rate;
  u64 buffer_octets = 0;  // shared packet memory; 0: flow control by credits, or not published
  std::string_view technologies;
  std::string_view source;
};

[[nodiscard]] std::span<const NICModel> nic_models();
[[nodiscard]] std::span<const SwitchModel> switch_models();

}  // namespace verbena::jobs
