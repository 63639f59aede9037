// NICs, switches and cables that clusters are built of: what their makers publish, with where, and
// what they cost and draw.
//
// Prices are ranges in US dollars of the year that stands beside them, for what is bought singly or
// in small numbers: check your quote. Makers of these parts publish no list; where a page names a
// figure it is the source, and where it says "estimate" the range is ours, wide on purpose. Watts
// are of the part without optics, which are cables' here; "estimate" likewise.
#pragma once

#include <span>
#include <string_view>

#include "base/rate.h"
#include "fabric/technology.h"

namespace verbena::jobs {

// Range: from low to high. Sums of ranges are ranges.
struct Range {
  double low = 0, high = 0;

  [[nodiscard]] double middle() const { return (low + high) / 2; }
  friend Range operator*(Range range, double n) { return {range.low * n, range.high * n}; }
  Range& operator+=(Range other) {
    low += other.low;
    high += other.high;
    return *this;
  }
};

// Technologies, a bit each.
using Technologies = u8;
[[nodiscard]] constexpr Technologies bit(fabric::Technology technology) {
  return static_cast<Technologies>(1u << static_cast<u32>(technology));
}

struct NICModel {
  std::string_view name;
  Rate rate;  // of all ports together
  std::string_view ports;
  std::string_view host;  // interface
  std::string_view technologies;
  Technologies speaks = 0;
  std::string_view source;
  Range watts;
  std::string_view watts_source;
  Range dollars;
  u32 year = 0;  // of the prices
  std::string_view dollars_source;
};

struct SwitchModel {
  std::string_view name;
  u32 ports = 0;
  Rate port_rate;
  u32 most_ports = 0;    // with ports split
  u64 buffer_bytes = 0;  // shared packet memory; 0: flow control by credits, or not published
  std::string_view technologies;
  Technologies speaks = 0;
  std::string_view source;
  Range watts;
  std::string_view watts_source;
  Range dollars;
  u32 year = 0;
  std::string_view dollars_source;
};

// CableModel: a cable with the parts at both ends.
struct CableModel {
  std::string_view name;
  Rate rate;
  u32 most_metres = 0;
  Technologies speaks = 0;
  Range watts, dollars;
  u32 year = 0;
  std::string_view source;  // of both
};

// GPUPrice: the price of a GPU, which idles while the network is slow.
struct GPUPrice {
  std::string_view name;  // as jobs name it: steps/gpu.h
  Range dollars;
  u32 year = 0;
  std::string_view source;
};

[[nodiscard]] std::span<const NICModel> nic_models();
[[nodiscard]] std::span<const SwitchModel> switch_models();
[[nodiscard]] std::span<const CableModel> cable_models();
// Returns the price of the named GPU, or of the first GPU if none has that name.
[[nodiscard]] const GPUPrice& price_of_gpu(std::string_view name);
// Returns nullptr if no model has that name.
[[nodiscard]] const NICModel* nic_named(std::string_view name);
[[nodiscard]] const SwitchModel* switch_named(std::string_view name);

}  // namespace verbena::jobs
