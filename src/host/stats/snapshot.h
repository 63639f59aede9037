// Snapshot: the state that an adapter reports to observers (`verbena stats`), and the two messages
// that
// carry it between processes of one host, over a Unix datagram socket (stats_port.h): a question,
// and its answer. A question is about the QPs or about objects of another kind. An answer holds the
// device's counters and these objects from the place on that was asked for, as many as fit. The
// reader asks for the rest next. Numbers are in the host's order. Another version
// or another size of a part is another build of Verbena, which is not understood.
// Invariant: decode(encode(m)) == m. What is decoded is untrusted: every size is checked, every
// enumerator is one, every name is printable.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/objects/object_info.h"
#include "device/port/counters.h"
#include "device/qp/qp_traffic.h"
#include "host/links/link.h"
#include "transport/qp_attributes.h"

namespace verbena::host {

// One QP. Of a datagram QP there is no peer: zeros.
struct QPSnapshot {
  QPN qpn, dest_qpn;
  PSN sq_psn, rq_psn;  // as ibv_query_qp() returns them
  QPType type = QPType::kRC;
  QPState state = QPState::kReset;
  std::array<u8, 2> reserved{};  // 0
  u32 pd = kNoPD;
  static constexpr u32 kNoPD = ~u32{0};  // an XRC target
  GID source{}, peer{};
  QPTraffic traffic;
  EngineCounters transport;
};

// The adapter as a whole.
struct AdapterSnapshot {
  using Name = std::array<char, 16>;  // NUL-terminated, of printable ASCII
  Name device{}, interface {};
  GID ipv4{}, ipv6{};  // zeros: none
  u32 qp_count = 0;
  std::array<u32, kObjectKinds> object_counts{};  // by ObjectKind
  u32 context_count = 0;                          // of ibv_open_device()
  u32 slot = 0;                                   // qpn_slot.h
  u32 next = 0;      // where the objects of the next answer begin; 0: these are the last
  i64 taken_ns = 0;  // CLOCK_MONOTONIC
  Counters counters;
  LinkCounters link;
};

[[nodiscard]] AdapterSnapshot::Name snapshot_name(std::string_view name);  // cut where too long

// The objects that a question is about.
enum class StatsSubject : u32 { kQPs, kPDs, kCQs, kMRs, kSRQs };
inline constexpr u32 kStatsSubjects = 1 + kObjectKinds;
constexpr StatsSubject subject_of(ObjectKind kind) {
  return static_cast<StatsSubject>(1 + static_cast<u32>(kind));
}

struct StatsQuestion {
  static constexpr std::size_t kSize = 24;
  u64 nonce = 0;
  u32 first = 0;  // QPs: the least number that is wanted. Others: AdapterSnapshot::next, or 0
  StatsSubject subject = StatsSubject::kQPs;
  [[nodiscard]] static std::optional<StatsQuestion> decode(std::span<const u8> in);
  [[nodiscard]] std::array<u8, kSize> encode() const;
  friend bool operator==(const StatsQuestion&, const StatsQuestion&) = default;
};

struct StatsAnswer {
  static constexpr u32 kMaxQPs = 128, kMaxObjects = 512;
  u64 nonce = 0;  // the question's
  AdapterSnapshot adapter;
  StatsSubject subject = StatsSubject::kQPs;
  std::vector<QPSnapshot> qps;      // by number; at most kMaxQPs
  std::vector<ObjectInfo> objects;  // of another subject; at most kMaxObjects
  [[nodiscard]] static std::optional<StatsAnswer> decode(std::span<const u8> in);
  // Returns the nonce of an answer of any version, or nullopt if it is no answer.
  [[nodiscard]] static std::optional<u64> nonce_of(std::span<const u8> in);
  [[nodiscard]] std::vector<u8> encode() const;
};
inline constexpr std::size_t kMaxStatsAnswerSize =
    64 + sizeof(AdapterSnapshot) + StatsAnswer::kMaxQPs * sizeof(QPSnapshot);
static_assert(StatsAnswer::kMaxObjects * sizeof(ObjectInfo) <=
              StatsAnswer::kMaxQPs * sizeof(QPSnapshot));

}  // namespace verbena::host
