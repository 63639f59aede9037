#include "nvmf/target_stats.h"

#include <array>
#include <charconv>

#include "wire/nvme/fabrics.h"

namespace verbena::nvmf {
namespace {

constexpr std::string_view kStatsHeader = "verbena-nvmf 1\n";

// The numbers of a line, in its order.
auto stats_numbers(auto& stats) {
  return std::array{&stats.counts.reads,         &stats.counts.writes, &stats.counts.bytes_read,
                    &stats.counts.bytes_written, &stats.counts.errors, &stats.hosts};
}

std::optional<SubsystemStats> parse_stats_line(std::string_view line) {
  SubsystemStats stats;
  for (u64* const number : stats_numbers(stats)) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), *number);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (error != std::errc() || !line.starts_with(' ')) return std::nullopt;
    line.remove_prefix(1);
  }
  if (!nvme::is_nqn(line)) return std::nullopt;
  stats.nqn = line;
  return stats;
}

}  // namespace

CommandCounts& CommandCounts::operator+=(const CommandCounts& other) {
  reads += other.reads;
  writes += other.writes;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  errors += other.errors;
  return *this;
}

std::string stats_socket_name(int pid) { return "verbena-nvmf-" + std::to_string(pid); }

std::string to_text(std::span<const SubsystemStats> subsystems) {
  std::string text(kStatsHeader);
  for (const SubsystemStats& stats : subsystems) {
    std::string line;
    for (const u64* const number : stats_numbers(stats)) line += std::to_string(*number) + " ";
    line += stats.nqn + "\n";
    if (text.size() + line.size() > kMaxStatsText) break;
    text += line;
  }
  return text;
}

std::optional<std::vector<SubsystemStats>> parse_stats(std::string_view text) {
  if (!text.starts_with(kStatsHeader) || text.size() > kMaxStatsText) return std::nullopt;
  text.remove_prefix(kStatsHeader.size());
  std::vector<SubsystemStats> all;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    auto stats = parse_stats_line(text.substr(0, end));
    if (!stats) return std::nullopt;
    all.push_back(std::move(*stats));
    text.remove_prefix(end + 1);
  }
  return all;
}

}  // namespace verbena::nvmf
