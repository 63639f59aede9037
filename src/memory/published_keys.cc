#include "memory/published_keys.h"

namespace verbena {

std::optional<u64> PublishedKey::locate(u64 address, u64 bytes) const {
  const KeyEntry entry{.start = start, .length = length, .base = base};
  return entry.covers(address, bytes) ? std::optional(entry.base_of(address)) : std::nullopt;
}

std::optional<PublishedKey> PublishedKeys::find(u32 key) const {
  if (key == 0) return std::nullopt;
  for (u32 probe = 0; probe < kProbes; ++probe) {
    PublishedKey found;
    if (places_[place_of(key, probe)].load(found) && found.key == key) return found;
  }
  return std::nullopt;
}

std::optional<PublishedKey> PublishedKeys::find(PDId pd, RKey key, Access need) const {
  std::optional<PublishedKey> found = find(key.value);
  if (found && (found->for_peers != 1 || found->pd != pd || !found->access.has(need)))
    return std::nullopt;
  return found;
}

std::optional<SharedSpan> PublishedKeys::span_of(RKey key, u64 span) const {
  for (u32 probe = 0; probe < kProbes && span != 0; ++probe) {
    PublishedSpan found;
    if (spans_[place_of(key.value, probe)].load(found) && found.number == span) return found.span;
  }
  return std::nullopt;
}

std::optional<FarHandle> PublishedKeys::handle_of(RKey key, u64 number) const {
  for (u32 probe = 0; probe < kProbes && number != 0; ++probe) {
    PublishedHandle found;
    if (handles_[place_of(key.value, probe)].load(found) && found.number == number)
      return found.handle;
  }
  return std::nullopt;
}

bool PublishedKeys::has(PDId pd) const {
  return pd.value < kPDs &&
         (pds_[pd.value / 64].load(std::memory_order_acquire) >> pd.value % 64 & 1) != 0;
}

void KeyPublisher::publish(const KeyEntry& entry, Audience audience) {
  for (u32 probe = 0; probe < PublishedKeys::kProbes; ++probe) {
    const u32 place = PublishedKeys::place_of(entry.key, probe);
    if (taken_[place] != 0) continue;
    taken_[place] = entry.key;
    return keys_.places_[place].store({.key = entry.key,
                                       .pd = entry.pd,
                                       .access = entry.access,
                                       .for_peers = audience == Audience::kAll ? 1u : 0u,
                                       .start = entry.start,
                                       .length = entry.length,
                                       .base = entry.base});
  }
}

std::optional<u32> KeyPublisher::place_of(u32 key) const {
  for (u32 probe = 0; probe < PublishedKeys::kProbes; ++probe)
    if (const u32 place = PublishedKeys::place_of(key, probe); taken_[place] == key) return place;
  return std::nullopt;
}

template <typename Record>
void KeyPublisher::store(u32 key, PublishedKeys::Records<Record>& records, Record record) {
  const std::optional<u32> place = place_of(key);
  PublishedKey published;
  if (!place || !keys_.places_[*place].load(published)) return;
  published.span = record.number = ++last_span_;
  records[*place].store(record);
  keys_.places_[*place].store(published);
}

void KeyPublisher::share(u32 key, const SharedSpan& span) {
  store(key, keys_.spans_, PublishedSpan{.span = span});
}

void KeyPublisher::share(u32 key, const FarHandle& handle) {
  store(key, keys_.handles_, PublishedHandle{.handle = handle});
}

void KeyPublisher::withdraw(u32 key) {
  const std::optional<u32> place = place_of(key);
  if (!place) return;
  taken_[*place] = 0;
  withdrawn_ = true;
  PublishedKey published;
  unshared_ |= keys_.places_[*place].load(published) && published.span != 0;
  const bool is_far = published.is_far();
  keys_.places_[*place].store({});
  is_far ? keys_.handles_[*place].store({}) : keys_.spans_[*place].store({});
}

void KeyPublisher::publish(PDId pd) {
  if (pd.value < PublishedKeys::kPDs)
    keys_.pds_[pd.value / 64].fetch_or(u64{1} << pd.value % 64, std::memory_order_release);
}

void KeyPublisher::withdraw(PDId pd) {
  if (pd.value < PublishedKeys::kPDs)
    keys_.pds_[pd.value / 64].fetch_and(~(u64{1} << pd.value % 64), std::memory_order_release);
}

}  // namespace verbena
