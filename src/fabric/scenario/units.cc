#include "fabric/scenario/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace verbena::fabric {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array kRateUnits = {
    Unit{"Tbps", 1e12}, Unit{"Gbps", 1e9},   Unit{"Mbps", 1e6},   Unit{"kbps", 1e3},
    Unit{"Kbps", 1e3},  Unit{"Tb/s", 1e12},  Unit{"Gb/s", 1e9},   Unit{"Mb/s", 1e6},
    Unit{"kb/s", 1e3},  Unit{"Gbit/s", 1e9}, Unit{"Mbit/s", 1e6}, Unit{"bps", 1},
    Unit{"b/s", 1},     Unit{"T", 1e12},     Unit{"G", 1e9},      Unit{"M", 1e6}};
// InfiniBand's, of four lanes, without what coding takes. IBTA Vol 2, 5.
constexpr std::array kRateNames = {Unit{"SDR", 8e9},      Unit{"DDR", 16e9},     Unit{"QDR", 32e9},
                                   Unit{"FDR10", 40e9},   Unit{"FDR", 54.5e9},   Unit{"EDR", 100e9},
                                   Unit{"HDR", 200e9},    Unit{"HDR100", 100e9}, Unit{"NDR", 400e9},
                                   Unit{"NDR200", 200e9}, Unit{"XDR", 800e9}};
constexpr std::array kTimeUnits = {Unit{"ps", 1},   Unit{"ns", 1e3}, Unit{"us", 1e6},
                                   Unit{"µs", 1e6}, Unit{"ms", 1e9}, Unit{"s", 1e12}};
constexpr std::array kSizeUnits = {
    Unit{"", 1},         Unit{"B", 1},       Unit{"k", 1e3},      Unit{"K", 1e3},
    Unit{"M", 1e6},      Unit{"G", 1e9},     Unit{"kB", 1e3},     Unit{"KB", 1e3},
    Unit{"MB", 1e6},     Unit{"GB", 1e9},    Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20},
    Unit{"GiB", 0x1p30}, Unit{"Ki", 0x1p10}, Unit{"Mi", 0x1p20},  Unit{"Gi", 0x1p30}};

struct Split {
  double value = 0;
  std::string_view unit;
};

std::optional<Split> split(std::string_view text) {
  Split parts;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, parts.value);
  if (error != std::errc() || !std::isfinite(parts.value) || parts.value < 0) return std::nullopt;
  parts.unit = std::string_view(rest, static_cast<std::size_t>(end - rest));
  while (parts.unit.starts_with(' ')) parts.unit.remove_prefix(1);
  return parts;
}

// In the smallest unit, rounded to a whole.
std::optional<i64> quantity(std::string_view text, std::span<const Unit> units) {
  const std::optional<Split> parts = split(text);
  if (!parts) return std::nullopt;
  const auto unit = std::ranges::find(units, parts->unit, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  const double value = parts->value * unit->factor;
  if (value >= 0x1p62) return std::nullopt;
  return std::llround(value);
}

std::string with_prefix(double value, std::span<const std::string_view> units) {
  std::size_t i = 0;
  for (; i + 1 < units.size() && std::abs(value) >= 999.95; ++i) value /= 1000;
  return fmt::format("{:.4g} {}", value, units[i]);
}

}  // namespace

std::optional<Rate> rate_of(std::string_view text) {
  if (const auto name = std::ranges::find(kRateNames, text, &Unit::name); name != kRateNames.end())
    return Rate::from_bps(static_cast<u64>(name->factor));
  const std::optional<i64> bps = quantity(text, kRateUnits);
  if (!bps) return std::nullopt;
  return Rate::from_bps(static_cast<u64>(*bps));
}

std::optional<Duration> duration_of(std::string_view text) {
  if (text == "0") return Duration();
  const std::optional<i64> picoseconds = quantity(text, kTimeUnits);
  if (!picoseconds) return std::nullopt;
  return ps(*picoseconds);
}

std::optional<u64> bytes_of(std::string_view text) {
  const std::optional<i64> bytes = quantity(text, kSizeUnits);
  if (!bytes) return std::nullopt;
  return static_cast<u64>(*bytes);
}

std::optional<double> number_of(std::string_view text) {
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::optional<Split> over = split(text.substr(0, slash)),
                               under = split(text.substr(slash + 1));
    if (!over || !under || !over->unit.empty() || !under->unit.empty() || under->value == 0)
      return std::nullopt;
    return over->value / under->value;
  }
  const std::optional<Split> parts = split(text);
  if (!parts || (!parts->unit.empty() && parts->unit != "%")) return std::nullopt;
  return parts->unit.empty() ? parts->value : parts->value / 100;
}

std::string rate_text(double bits_per_second) {
  static constexpr std::array<std::string_view, 5> kUnits = {"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"};
  return with_prefix(bits_per_second, kUnits);
}

std::string duration_text(Duration duration) {
  static constexpr std::array<std::string_view, 5> kUnits = {"ps", "ns", "us", "ms", "s"};
  return with_prefix(static_cast<double>(duration.ps()), kUnits);
}

std::string bytes_text(double bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  return with_prefix(bytes, kUnits);
}

}  // namespace verbena::fabric
