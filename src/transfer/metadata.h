// Metadata: what an agent tells others, so that they can reach it and its memory. Programs carry it
// as opaque bytes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/list.h"

namespace verbena::transfer {

inline constexpr u32 kMaxRails = 4;
inline constexpr std::size_t kMaxNameBytes = 255;
inline constexpr u32 kMaxRegions = 65536;

enum RegionRights : u8 { kRemoteRead = 1, kRemoteWrite = 2 };

struct RemoteRegion {
  u64 id = 0;  // the owner's; never used again
  u64 address = 0, length = 0;
  u8 rights = 0;
  std::array<u32, kMaxRails> rkeys{};
  friend bool operator==(const RemoteRegion&, const RemoteRegion&) = default;
};

struct Metadata {
  std::string name{};
  u64 incarnation = 0;  // random: another one is another process, or a later one
  std::string host{};   // where the agent accepts connections
  u16 port = 0;
  u8 rails = 0;
  std::vector<RemoteRegion> regions{};

  [[nodiscard]] std::string encode() const;
  // Fails on bytes that encode() does not produce.
  [[nodiscard]] static Expected<Metadata> decode(std::string_view bytes);
  friend bool operator==(const Metadata&, const Metadata&) = default;
};

// 1 to 255 printable bytes without space.
[[nodiscard]] bool is_agent_name(std::string_view name);

// The index of the region that holds the bytes with the right; `id` 0: any region. Fails with the
// reason. `whose`: as in "of agent b".
[[nodiscard]] Expected<u32> find_region(const std::vector<RemoteRegion>& regions, u64 id,
                                        u64 address, u64 length, u8 right, std::string_view whose);

}  // namespace verbena::transfer
