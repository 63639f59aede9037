// PublishedKeys: the regions and protection domains of one device, for other processes of the host
// to read: for peers that do without packets (transport/local/published_device.h), and for those
// that import them (ibv_import_mr(3)). A copy: the device itself looks only at its ProtectionTable.
// KeyPublisher is the device's side of it. IBTA Vol 1, 10.6.
//
// A table of fixed size, by the index part of the key. What finds no place is not published: peers
// then send packets, and it cannot be imported. Windows are never published.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "base/shared_record.h"
#include "memory/key_table.h"

namespace verbena {

struct PublishedKey {
  u32 key = 0;  // 0: a free place
  PDId pd{};
  AccessFlags access{};
  u32 for_peers = 0;          // 1: they may do without packets
  u64 start = 0, length = 0;  // as in KeyEntry
  u64 base = 0;               // an address of the process that has published it

  // Where that process has [address, address + bytes); nullopt: not all of it is inside.
  [[nodiscard]] std::optional<u64> locate(u64 address, u64 bytes) const;
};

class PublishedKeys {
 public:
  static constexpr u32 kPlaces = 1u << 13;
  static constexpr u32 kProbes = 8;  // places in a row where a key may be

  // Where the peer's process has [address, address + length); nullopt: not published, not for
  // peers, or one of the checks of IBTA 9.7.4.1.5 fails.
  [[nodiscard]] std::optional<u64> find(PDId pd, RKey key, u64 address, u64 length,
                                        Access need) const;

  // --- for those who import
  [[nodiscard]] std::optional<PublishedKey> find(u32 key) const;
  [[nodiscard]] bool has(PDId pd) const;

 private:
  friend class KeyPublisher;
  using Place = SharedRecord<PublishedKey>;
  static constexpr u32 kPDs = 1u << 16;  // ids beyond are not published
  static u32 place_of(u32 key, u32 probe) { return ((key >> kKeyVariantBits) + probe) % kPlaces; }

  std::array<Place, kPlaces> places_;
  std::array<std::atomic<u64>, kPDs / 64> pds_;  // a bit each
};

class KeyPublisher {
 public:
  explicit KeyPublisher(PublishedKeys& keys) : keys_(keys) {}

  enum class Audience : u8 { kAll, kImporters };
  void publish(const KeyEntry& region, Audience audience);
  void withdraw(u32 key);
  void publish(PDId pd);
  void withdraw(PDId pd);
  // Whether anything was withdrawn since the last call: peers may still be at it.
  [[nodiscard]] bool take_withdrawn() { return std::exchange(withdrawn_, false); }

 private:
  PublishedKeys& keys_;
  std::array<u32, PublishedKeys::kPlaces> taken_{};  // by which key; 0: free
  bool withdrawn_ = false;
};

}  // namespace verbena
