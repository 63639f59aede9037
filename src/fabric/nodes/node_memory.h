// NodeMemory: the regions of one simulated node, with and without contents, by key.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "application/node.h"

namespace verbena::fabric {

class NodeMemory {
 public:
  [[nodiscard]] application::Region add(std::span<u8> bytes, application::Access access);
  [[nodiscard]] application::Region allocate(u64 length, application::Content content,
                                             application::Access access);
  void remove(u32 key) { regions_.erase(key); }

  enum class Use : u8 { kLocal, kRead, kWrite };  // the others are a peer's
  // Returns false unless the key's region has these length and allows the use.
  [[nodiscard]] bool allows(u32 key, u64 address, u64 length, Use use) const;
  // Precondition of both: allowed. Counted memory reads as nothing and ignores what is written.
  void append(u32 key, u64 address, u64 length, std::vector<u8>& to) const;
  void copy_in(u32 key, u64 address, std::span<const u8> bytes);
  void invalidate(u32 key);  // no peer may use it from now on

 private:
  struct Entry {
    application::Region region;
    application::Access access;
    std::unique_ptr<u8[]> owned;
  };
  application::Region enter(application::Region region, application::Access access,
                            std::unique_ptr<u8[]> owned);

  std::map<u32, Entry> regions_;
  u32 next_key_ = 1;
  u64 next_counted_ = u64{1} << 62;  // no pointer is there
};

}  // namespace verbena::fabric
