// PublishedKeys: the regions of one device that peers may access, for other processes of the host
// to read (transport/local/published_device.h). A copy: the device itself looks only at its
// ProtectionTable. KeyPublisher is the device's side of it. IBTA Vol 1, 10.6.
//
// A table of fixed size, by the index part of the key. What finds no place is not published; peers
// then send packets. Windows are never published.
#pragma once

#include <array>
#include <optional>

#include "base/shared_record.h"
#include "memory/key_table.h"

namespace verbena {

struct PublishedKey {
  u32 key = 0;
  PDId pd{};
  AccessFlags access{};  // no remote right: a free place
  u32 reserved = 0;
  u64 start = 0, length = 0;  // as in KeyEntry
  u64 base = 0;               // an address of the process that has published it
};

class PublishedKeys {
 public:
  static constexpr u32 kPlaces = 1u << 13;
  static constexpr u32 kProbes = 8;  // places in a row where a key may be

  // Where the peer's process has [address, address + length); nullopt: not published, or one of the
  // checks of IBTA 9.7.4.1.5 fails.
  [[nodiscard]] std::optional<u64> find(PDId pd, RKey key, u64 address, u64 length,
                                        Access need) const;

 private:
  friend class KeyPublisher;
  using Place = SharedRecord<PublishedKey>;
  static u32 place_of(u32 key, u32 probe) { return ((key >> kKeyVariantBits) + probe) % kPlaces; }

  std::array<Place, kPlaces> places_;
};

class KeyPublisher {
 public:
  explicit KeyPublisher(PublishedKeys& keys) : keys_(keys) {}

  void publish(const KeyEntry& entry);  // a region
  void withdraw(u32 key);
  // Whether anything was withdrawn since the last call: peers may still be at it.
  [[nodiscard]] bool take_withdrawn() { return std::exchange(withdrawn_, false); }

 private:
  PublishedKeys& keys_;
  std::array<u32, PublishedKeys::kPlaces> taken_{};  // by which key; 0: free
  bool withdrawn_ = false;
};

}  // namespace verbena
