// Quantities as people write them in scenarios, and as they are printed for people.
//   rates      100Gbps, 100Gb/s, 400G, 25.5Mbps      bits per second, powers of 1000
//              EDR, HDR, NDR, XDR, ...                InfiniBand's, of four lanes
//   times      250ns, 1.5us, 3ms, 1s, 800ps, 0
//   sizes      1500, 64KB, 50k (powers of 1000), 64KiB (of 1024)      bytes
//   numbers    0.125, 1/8, 12.5%
// Readers return nullopt if the text is no such quantity, or if the type cannot hold it.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "base/rate.h"

namespace verbena::fabric {

[[nodiscard]] std::optional<Rate> rate_of(std::string_view text);
[[nodiscard]] std::optional<Duration> duration_of(std::string_view text);
[[nodiscard]] std::optional<u64> bytes_of(std::string_view text);
[[nodiscard]] std::optional<double> number_of(std::string_view text);

// Three or four digits and a unit: "100 Gb/s", "12.5 us", "1.25 MB".
[[nodiscard]] std::string rate_text(double bits_per_second);
[[nodiscard]] std::string duration_text(Duration duration);
[[nodiscard]] std::string bytes_text(double bytes);
[[nodiscard]] std::string bytes_text(std::integral auto bytes) {
  return bytes_text(static_cast<double>(bytes));
}

}  // namespace verbena::fabric
