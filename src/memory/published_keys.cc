#include "memory/published_keys.h"

namespace verbena {
namespace {

bool is_for_peers(AccessFlags access) {
  return access.has(Access::kRemoteRead) || access.has(Access::kRemoteWrite);
}

}  // namespace

std::optional<u64> PublishedKeys::find(PDId pd, RKey key, u64 address, u64 length,
                                       Access need) const {
  for (u32 probe = 0; probe < kProbes; ++probe) {
    PublishedKey found;
    if (!places_[place_of(key.value, probe)].load(found) || found.key != key.value) continue;
    const KeyEntry entry{.start = found.start, .length = found.length, .base = found.base};
    if (found.pd != pd || !found.access.has(need) || !entry.covers(address, length))
      return std::nullopt;
    return entry.base_of(address);
  }
  return std::nullopt;
}

void KeyPublisher::publish(const KeyEntry& entry) {
  if (!is_for_peers(entry.access)) return;
  for (u32 probe = 0; probe < PublishedKeys::kProbes; ++probe) {
    const u32 place = PublishedKeys::place_of(entry.key, probe);
    if (taken_[place] != 0) continue;
    taken_[place] = entry.key;
    return keys_.places_[place].store({.key = entry.key,
                                       .pd = entry.pd,
                                       .access = entry.access,
                                       .start = entry.start,
                                       .length = entry.length,
                                       .base = entry.base});
  }
}

void KeyPublisher::withdraw(u32 key) {
  for (u32 probe = 0; probe < PublishedKeys::kProbes; ++probe) {
    const u32 place = PublishedKeys::place_of(key, probe);
    if (taken_[place] != key) continue;
    taken_[place] = 0;
    withdrawn_ = true;
    return keys_.places_[place].store({});
  }
}

}  // namespace verbena
