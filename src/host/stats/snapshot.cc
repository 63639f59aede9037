#include "host/stats/snapshot.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "host/stats/messages.h"

namespace verbena::host {
namespace {

static_assert(sizeof(StatsQuestionBytes) == StatsQuestion::kSize);

// They travel as they lie in memory: no padding, which would tell of other things.
static_assert(std::is_trivially_copyable_v<QPSnapshot> &&
              sizeof(QPSnapshot) == 56 + sizeof(QPTraffic) + sizeof(EngineCounters));
static_assert(std::is_trivially_copyable_v<AdapterSnapshot> &&
              sizeof(AdapterSnapshot) == 80 + sizeof(Counters) + sizeof(LinkCounters));

template <typename T>
u8* put(u8* at, const T& value) {
  std::memcpy(at, &value, sizeof(value));
  return at + sizeof(value);
}

bool is_printable(char c) { return c > ' ' && c <= '~'; }

bool is_name(const AdapterSnapshot::Name& name) {
  const auto end = std::ranges::find(name, '\0');
  return end != name.end() && std::all_of(name.begin(), end, is_printable);
}

// Looked at as numbers: an enumeration must not hold another value.
bool has_valid_enumerators(const u8* qp) {
  return qp[offsetof(QPSnapshot, type)] <= static_cast<u8>(QPType::kRawPacket) &&
         qp[offsetof(QPSnapshot, state)] <= static_cast<u8>(QPState::kError);
}

}  // namespace

AdapterSnapshot::Name snapshot_name(std::string_view name) {
  AdapterSnapshot::Name out{};
  const std::string_view fits = name.substr(0, out.size() - 1);
  std::ranges::transform(fits, out.begin(), [](char c) { return is_printable(c) ? c : '?'; });
  return out;
}

std::optional<StatsQuestion> StatsQuestion::decode(std::span<const u8> in) {
  StatsQuestionBytes bytes;
  if (in.size() != sizeof(bytes)) return std::nullopt;
  std::memcpy(&bytes, in.data(), sizeof(bytes));
  if (bytes.magic != kStatsQuestionMagic || bytes.version != kStatsVersion) return std::nullopt;
  return StatsQuestion{.nonce = bytes.nonce, .first_qpn = bytes.first_qpn};
}

std::array<u8, StatsQuestion::kSize> StatsQuestion::encode() const {
  std::array<u8, kSize> out{};
  put(out.data(), StatsQuestionBytes{.nonce = nonce, .first_qpn = first_qpn});
  return out;
}

std::optional<StatsAnswer> StatsAnswer::decode(std::span<const u8> in) {
  StatsAnswerHeader header;
  if (in.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, in.data(), sizeof(header));
  if (header.magic != kStatsAnswerMagic || header.version != kStatsVersion ||
      header.adapter_size != sizeof(AdapterSnapshot) || header.qp_size != sizeof(QPSnapshot) ||
      header.qp_count > kMaxQPs)
    return std::nullopt;
  in = in.subspan(sizeof(header));
  if (in.size() != sizeof(AdapterSnapshot) + header.qp_count * sizeof(QPSnapshot))
    return std::nullopt;

  StatsAnswer answer{.nonce = header.nonce, .adapter = {}, .qps = {}};
  std::memcpy(&answer.adapter, in.data(), sizeof(AdapterSnapshot));
  if (!is_name(answer.adapter.device) || !is_name(answer.adapter.interface)) return std::nullopt;
  answer.qps.resize(header.qp_count);
  const u8* at = in.data() + sizeof(AdapterSnapshot);
  for (QPSnapshot& qp : answer.qps) {
    if (!has_valid_enumerators(at)) return std::nullopt;
    std::memcpy(&qp, at, sizeof(qp));
    at += sizeof(qp);
  }
  return answer;
}

std::optional<u64> StatsAnswer::nonce_of(std::span<const u8> in) {
  StatsAnswerHeader header;
  if (in.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, in.data(), sizeof(header));
  return header.magic == kStatsAnswerMagic ? std::optional(header.nonce) : std::nullopt;
}

std::vector<u8> StatsAnswer::encode() const {
  CHECK(qps.size() <= kMaxQPs);
  std::vector<u8> out(sizeof(StatsAnswerHeader) + sizeof(adapter) +
                      qps.size() * sizeof(QPSnapshot));
  u8* at = put(out.data(), StatsAnswerHeader{.adapter_size = sizeof(AdapterSnapshot),
                                             .qp_size = sizeof(QPSnapshot),
                                             .nonce = nonce,
                                             .qp_count = static_cast<u32>(qps.size())});
  at = put(at, adapter);
  for (const QPSnapshot& qp : qps) at = put(at, qp);
  return out;
}

}  // namespace verbena::host
