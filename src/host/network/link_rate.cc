#include "host/network/link_rate.h"

#include <algorithm>
#include <iterator>

namespace verbena::host {
namespace {

constexpr u8 kWidth1X = 1, kWidth4X = 2;
constexpr u8 kSDR = 1, kFDR10 = 8, kEDR = 32, kHDR = 64, kNDR = 128;
constexpr u64 kUnknownSpeedMbps = 10'000;

struct Row {
  u64 up_to_mbps;
  LinkRate rate;
  const char* text;
};
constexpr Row kRows[] = {
    {1'000, {kWidth1X, kSDR}, "2.5 Gb/sec (1X SDR)"},
    {10'000, {kWidth1X, kFDR10}, "10 Gb/sec (1X FDR10)"},
    {25'000, {kWidth1X, kEDR}, "25 Gb/sec (1X EDR)"},
    {40'000, {kWidth4X, kFDR10}, "40 Gb/sec (4X FDR10)"},
    {50'000, {kWidth1X, kHDR}, "50 Gb/sec (1X HDR)"},
    {100'000, {kWidth4X, kEDR}, "100 Gb/sec (4X EDR)"},
    {200'000, {kWidth4X, kHDR}, "200 Gb/sec (4X HDR)"},
    {~u64{0}, {kWidth4X, kNDR}, "400 Gb/sec (4X NDR)"},
};

}  // namespace

std::string LinkRate::to_string() const {
  const auto* row = std::ranges::find(kRows, *this, &Row::rate);
  return row == std::end(kRows) ? "" : row->text;
}

u64 speed_or_default_mbps(u64 link_speed_mbps) {
  return link_speed_mbps == 0 ? kUnknownSpeedMbps : link_speed_mbps;
}

LinkRate rate_for(u64 link_speed_mbps) {
  const u64 mbps = speed_or_default_mbps(link_speed_mbps);
  return std::ranges::find_if(kRows, [mbps](const Row& row) { return mbps <= row.up_to_mbps; })
      ->rate;
}

}  // namespace verbena::host
