// PublishedKeys: the regions and protection domains of one device, for other processes of the host
// to read. Peers that need no packets use it (transport/local/published_device.h), and processes
// that import regions (ibv_import_mr(3)). It is a copy: the device itself reads only its
// ProtectionTable. KeyPublisher is the device's side of it. IBTA Vol 1, 10.6.
//
// If peers can map a region's pages, the table also says where they are, and for a far region how
// the driver opens it. The table has a fixed size and is indexed by the index part of the key. A
// region that finds no free place is not published: peers then send packets, and it cannot be
// imported. Windows are never published.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "base/shared_record.h"
#include "memory/far_memory.h"
#include "memory/key_table.h"
#include "memory/shared_span.h"

namespace verbena {

struct PublishedKey {
  u32 key = 0;  // 0: a free place
  PDId pd{};
  AccessFlags access{};
  u32 for_peers = 0;          // 1: peers may access it without packets
  u64 start = 0, length = 0;  // as in KeyEntry
  u64 base = 0;  // an address of the process that has published it, or as in memory/far_memory.h
  u64 span = 0;  // the number of its PublishedSpan or PublishedHandle; 0: none

  // Returns true for far memory: peers need its handle, and nobody can import it.
  [[nodiscard]] bool is_far() const { return FarRegions::is_far(base); }

  // Returns the address of [address, address + bytes) in that process; nullopt if not all of it is
  // inside.
  [[nodiscard]] std::optional<u64> locate(u64 address, u64 bytes) const;
};

// The span of a key. Its number is unique in the device's life.
struct PublishedSpan {
  u64 number = 0;
  SharedSpan span{};
};

// The same for a far region.
struct PublishedHandle {
  u64 number = 0;
  FarHandle handle{};
};

class PublishedKeys {
 public:
  static constexpr u32 kPlaces = 1u << 13;
  static constexpr u32 kProbes = 8;  // places in a row where a key may be

  // Returns the key's entry for a peer of its owner; nullopt if it is not published, not for peers,
  // of another domain, or without that right. locate() makes the last of the checks of IBTA
  // 9.7.4.1.5.
  [[nodiscard]] std::optional<PublishedKey> find(PDId pd, RKey key, Access need) const;
  // Returns the key's pages that can be mapped; nullopt if there are none, or if they are not
  // number `span`.
  [[nodiscard]] std::optional<SharedSpan> span_of(RKey key, u64 span) const;

  // The same for the handle of a far region.
  [[nodiscard]] std::optional<FarHandle> handle_of(RKey key, u64 number) const;

  // --- for processes that import
  [[nodiscard]] std::optional<PublishedKey> find(u32 key) const;
  [[nodiscard]] bool has(PDId pd) const;

 private:
  friend class KeyPublisher;
  using Place = SharedRecord<PublishedKey>;
  template <typename Record>
  using Records = std::array<SharedRecord<Record>, kPlaces>;  // by the same place as the key
  static constexpr u32 kPDs = 1u << 16;                       // ids beyond are not published
  static u32 place_of(u32 key, u32 probe) { return ((key >> kKeyVariantBits) + probe) % kPlaces; }

  std::array<Place, kPlaces> places_;
  Records<PublishedSpan> spans_;
  Records<PublishedHandle> handles_;
  std::array<std::atomic<u64>, kPDs / 64> pds_;  // a bit each
};

class KeyPublisher {
 public:
  explicit KeyPublisher(PublishedKeys& keys) : keys_(keys) {}

  enum class Audience : u8 { kAll, kImporters };
  void publish(const KeyEntry& region, Audience audience);
  // Adds the span of a published key, until the key is withdrawn.
  void share(u32 key, const SharedSpan& span);
  void share(u32 key, const FarHandle& handle);
  void withdraw(u32 key);
  void publish(PDId pd);
  void withdraw(PDId pd);
  // Returns whether anything was withdrawn since the last call: peers may still access it.
  [[nodiscard]] bool take_withdrawn() { return std::exchange(withdrawn_, false); }
  // The same for keys that had a span or a handle: peers may still have it mapped or open.
  [[nodiscard]] bool take_unshared() { return std::exchange(unshared_, false); }

 private:
  [[nodiscard]] std::optional<u32> place_of(u32 key) const;
  template <typename Record>
  void store(u32 key, PublishedKeys::Records<Record>& records, Record record);

  PublishedKeys& keys_;
  std::array<u32, PublishedKeys::kPlaces> taken_{};  // the key that takes the place; 0: free
  u64 last_span_ = 0;
  bool withdrawn_ = false, unshared_ = false;
};

}  // namespace verbena
