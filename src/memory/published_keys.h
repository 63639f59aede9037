// PublishedKeys: the regions and protection domains of one device, for other processes of the host
// to read: for peers that do without packets (transport/local/published_device.h), and for those
// that import them (ibv_import_mr(3)). A copy: the device itself looks only at its ProtectionTable.
// KeyPublisher is the device's side of it. IBTA Vol 1, 10.6.
//
// Of a region whose pages peers can map, the table also has where they are.
// A table of fixed size, by the index part of the key. What finds no place is not published: peers
// then send packets, and it cannot be imported. Windows are never published.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "base/shared_record.h"
#include "memory/key_table.h"
#include "memory/shared_span.h"

namespace verbena {

struct PublishedKey {
  u32 key = 0;  // 0: a free place
  PDId pd{};
  AccessFlags access{};
  u32 for_peers = 0;          // 1: they may do without packets
  u64 start = 0, length = 0;  // as in KeyEntry
  u64 base = 0;               // an address of the process that has published it
  u64 span = 0;               // which PublishedSpan; 0: none

  // Where that process has [address, address + bytes); nullopt: not all of it is inside.
  [[nodiscard]] std::optional<u64> locate(u64 address, u64 bytes) const;
};

// Of a key. Each has a number that no other of the device has, before or after it.
struct PublishedSpan {
  u64 number = 0;
  SharedSpan span{};
};

class PublishedKeys {
 public:
  static constexpr u32 kPlaces = 1u << 13;
  static constexpr u32 kProbes = 8;  // places in a row where a key may be

  // What its owner's peers may use so; nullopt: not published, not for peers, of another domain, or
  // without that right. locate() makes the last of the checks of IBTA 9.7.4.1.5.
  [[nodiscard]] std::optional<PublishedKey> find(PDId pd, RKey key, Access need) const;
  // Of the key's pages that can be mapped; nullopt: there are none, or not as number `span`.
  [[nodiscard]] std::optional<SharedSpan> span_of(RKey key, u64 span) const;

  // --- for those who import
  [[nodiscard]] std::optional<PublishedKey> find(u32 key) const;
  [[nodiscard]] bool has(PDId pd) const;

 private:
  friend class KeyPublisher;
  using Place = SharedRecord<PublishedKey>;
  static constexpr u32 kPDs = 1u << 16;  // ids beyond are not published
  static u32 place_of(u32 key, u32 probe) { return ((key >> kKeyVariantBits) + probe) % kPlaces; }

  std::array<Place, kPlaces> places_;
  std::array<SharedRecord<PublishedSpan>, kPlaces> spans_;  // by the same place
  std::array<std::atomic<u64>, kPDs / 64> pds_;             // a bit each
};

class KeyPublisher {
 public:
  explicit KeyPublisher(PublishedKeys& keys) : keys_(keys) {}

  enum class Audience : u8 { kAll, kImporters };
  void publish(const KeyEntry& region, Audience audience);
  // Of a key that is published, until it is withdrawn.
  void share(u32 key, const SharedSpan& span);
  void withdraw(u32 key);
  void publish(PDId pd);
  void withdraw(PDId pd);
  // Whether anything was withdrawn since the last call: peers may still be at it.
  [[nodiscard]] bool take_withdrawn() { return std::exchange(withdrawn_, false); }
  // The same of keys that had a span: peers may still have it mapped.
  [[nodiscard]] bool take_unshared() { return std::exchange(unshared_, false); }

 private:
  [[nodiscard]] std::optional<u32> place_of(u32 key) const;

  PublishedKeys& keys_;
  std::array<u32, PublishedKeys::kPlaces> taken_{};  // by which key; 0: free
  u64 last_span_ = 0;
  bool withdrawn_ = false, unshared_ = false;
};

}  // namespace verbena
