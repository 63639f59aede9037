#include "host/stats/snapshot.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "host/stats/messages.h"

namespace verbena::host {
namespace {

static_assert(sizeof(StatsQuestionBytes) == StatsQuestion::kSize);

// They travel as they lie in memory: no padding, which would leak other data.
static_assert(std::is_trivially_copyable_v<QPSnapshot> &&
              sizeof(QPSnapshot) == 56 + sizeof(QPTraffic) + sizeof(EngineCounters));
static_assert(std::is_trivially_copyable_v<AdapterSnapshot> &&
              sizeof(AdapterSnapshot) == 104 + sizeof(Counters) + sizeof(LinkCounters));

static_assert(std::is_trivially_copyable_v<ObjectInfo> && sizeof(ObjectInfo) == 32);

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

bool has_valid_enumerators(const ObjectInfo&, const u8* at) {
  return at[offsetof(ObjectInfo, is_xrc)] <= 1;
}
bool has_valid_enumerators(const QPSnapshot&, const u8* at) { return has_valid_enumerators(at); }

template <typename Record>
bool is_size_of(const StatsAnswerHeader& header, std::size_t records_size, u32 max) {
  return header.record_size == sizeof(Record) && header.record_count <= max &&
         records_size == header.record_count * sizeof(Record);
}

// Returns false if a record holds what is no enumerator.
template <typename Record>
bool take_records(std::span<const u8> in, std::vector<Record>& out) {
  out.resize(in.size() / sizeof(Record));
  const u8* at = in.data();
  for (Record& record : out) {
    if (!has_valid_enumerators(record, at)) return false;
    std::memcpy(&record, at, sizeof(record));
    at += sizeof(record);
  }
  return true;
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
  if (bytes.magic != kStatsQuestionMagic || bytes.version != kStatsVersion ||
      bytes.subject >= kStatsSubjects)
    return std::nullopt;
  return StatsQuestion{.nonce = bytes.nonce,
                       .first = bytes.first,
                       .subject = static_cast<StatsSubject>(bytes.subject)};
}

std::array<u8, StatsQuestion::kSize> StatsQuestion::encode() const {
  std::array<u8, kSize> out{};
  put(out.data(),
      StatsQuestionBytes{.nonce = nonce, .first = first, .subject = static_cast<u32>(subject)});
  return out;
}

std::optional<StatsAnswer> StatsAnswer::decode(std::span<const u8> in) {
  StatsAnswerHeader header;
  if (in.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, in.data(), sizeof(header));
  in = in.subspan(sizeof(header));
  if (header.magic != kStatsAnswerMagic || header.version != kStatsVersion ||
      header.adapter_size != sizeof(AdapterSnapshot) || header.subject >= kStatsSubjects ||
      in.size() < sizeof(AdapterSnapshot))
    return std::nullopt;
  const std::span<const u8> records = in.subspan(sizeof(AdapterSnapshot));

  StatsAnswer answer{.nonce = header.nonce,
                     .adapter = {},
                     .subject = static_cast<StatsSubject>(header.subject),
                     .qps = {},
                     .objects = {}};
  std::memcpy(&answer.adapter, in.data(), sizeof(AdapterSnapshot));
  if (!is_name(answer.adapter.device) || !is_name(answer.adapter.interface)) return std::nullopt;
  const bool is_understood = answer.subject == StatsSubject::kQPs
                                 ? is_size_of<QPSnapshot>(header, records.size(), kMaxQPs) &&
                                       take_records(records, answer.qps)
                                 : is_size_of<ObjectInfo>(header, records.size(), kMaxObjects) &&
                                       take_records(records, answer.objects);
  if (!is_understood) return std::nullopt;
  return answer;
}

std::optional<u64> StatsAnswer::nonce_of(std::span<const u8> in) {
  StatsAnswerHeader header;
  if (in.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, in.data(), sizeof(header));
  return header.magic == kStatsAnswerMagic ? std::optional(header.nonce) : std::nullopt;
}

std::vector<u8> StatsAnswer::encode() const {
  CHECK(qps.size() <= kMaxQPs && objects.size() <= kMaxObjects);
  const bool is_of_qps = subject == StatsSubject::kQPs;
  CHECK(is_of_qps ? objects.empty() : qps.empty());
  std::vector<u8> out(sizeof(StatsAnswerHeader) + sizeof(adapter) +
                      qps.size() * sizeof(QPSnapshot) + objects.size() * sizeof(ObjectInfo));
  u8* at = put(out.data(),
               StatsAnswerHeader{
                   .adapter_size = sizeof(AdapterSnapshot),
                   .record_size = is_of_qps ? u32{sizeof(QPSnapshot)} : u32{sizeof(ObjectInfo)},
                   .nonce = nonce,
                   .record_count = static_cast<u32>(qps.size() + objects.size()),
                   .subject = static_cast<u32>(subject)});
  at = put(at, adapter);
  for (const QPSnapshot& qp : qps) at = put(at, qp);
  for (const ObjectInfo& object : objects) at = put(at, object);
  return out;
}

}  // namespace verbena::host
