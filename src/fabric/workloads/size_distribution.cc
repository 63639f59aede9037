#include "fabric/workloads/size_distribution.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace verbena::fabric {
namespace {

using Point = SizeDistribution::Point;

constexpr double kMostBytes = 1e15;

constexpr std::array<Point, 12> kWebSearch = {{{0, 0},
                                               {10'000, 15},
                                               {20'000, 20},
                                               {30'000, 30},
                                               {50'000, 40},
                                               {80'000, 53},
                                               {200'000, 60},
                                               {1'000'000, 70},
                                               {2'000'000, 80},
                                               {5'000'000, 90},
                                               {10'000'000, 97},
                                               {30'000'000, 100}}};
constexpr std::array<Point, 20> kHadoop = {
    {{0, 0},        {100, 1},      {200, 2},          {300, 5},        {350, 15},
     {400, 20},     {500, 30},     {600, 40},         {700, 50},       {1'000, 60},
     {2'000, 67},   {7'000, 70},   {30'000, 72},      {50'000, 82},    {80'000, 87},
     {120'000, 90}, {300'000, 95}, {1'000'000, 97.5}, {2'000'000, 99}, {10'000'000, 100}}};

struct Named {
  std::string_view name;
  std::span<const Point> points;
};
constexpr std::array<Named, 2> kNamed = {{{"websearch", kWebSearch}, {"hadoop", kHadoop}}};

}  // namespace

std::span<const std::string_view> SizeDistribution::names() {
  static constexpr std::array<std::string_view, kNamed.size()> kNames = {kNamed[0].name,
                                                                         kNamed[1].name};
  return kNames;
}

std::optional<SizeDistribution> SizeDistribution::named(std::string_view name) {
  const auto* const found = std::ranges::find(kNamed, name, &Named::name);
  if (found == kNamed.end()) return std::nullopt;
  return SizeDistribution({found->points.begin(), found->points.end()});
}

SizeDistribution SizeDistribution::always(u64 bytes) {
  const double size = static_cast<double>(bytes);
  return SizeDistribution({{size, 0}, {size, 100}});
}

Parsed<SizeDistribution> SizeDistribution::parse(std::string_view name, std::string_view text) {
  Words words(name, text);
  std::vector<Point> points;
  while (const std::optional<std::string_view> word = words.next()) {
    if (word->starts_with('#')) {
      (void)words.rest_of_line();
      continue;
    }
    Point point;
    const auto [end, error] =
        std::from_chars(word->data(), word->data() + word->size(), point.bytes);
    const std::optional<double> percent = words.next_number<double>();
    if (error != std::errc() || end != word->data() + word->size() || !percent)
      return words.error("expected a size in bytes, and how many percent are no larger");
    point.percent = *percent;
    const Point before = points.empty() ? Point{} : points.back();
    if (!(point.bytes >= before.bytes && point.bytes <= kMostBytes &&
          point.percent >= before.percent && point.percent <= 100))
      return words.error("sizes and percents must not fall, and 100 percent is the end");
    points.push_back(point);
  }
  if (points.size() < 2 || points.back().percent != 100 || points.back().bytes < 1)
    return words.error("the last line must have 100 percent");
  if (points.front().percent != 0) points.insert(points.begin(), {points.front().bytes, 0});
  return SizeDistribution(std::move(points));
}

u64 SizeDistribution::draw(PRNG& prng) const {
  const double percent = static_cast<double>(prng.next() >> 11) * 0x1.0p-53 * 100;
  const auto above = std::ranges::upper_bound(points_.begin() + 1, points_.end() - 1, percent, {},
                                              &Point::percent);
  const Point low = *(above - 1), high = *above;
  const double part =
      high.percent > low.percent ? (percent - low.percent) / (high.percent - low.percent) : 1;
  return std::max<u64>(1, static_cast<u64>(std::llround(
                              low.bytes + (high.bytes - low.bytes) * std::clamp(part, 0.0, 1.0))));
}

double SizeDistribution::mean() const {
  double sum = 0;
  for (std::size_t i = 1; i < points_.size(); ++i)
    sum += (points_[i].percent - points_[i - 1].percent) / 100 *
           (points_[i].bytes + points_[i - 1].bytes) / 2;
  return std::max(sum, 1.0);
}

}  // namespace verbena::fabric
