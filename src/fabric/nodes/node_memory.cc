#include "fabric/nodes/node_memory.h"

#include <algorithm>

namespace verbena::fabric {

using application::Access;
using application::Content;
using application::Region;

Region NodeMemory::enter(Region region, Access access, std::unique_ptr<u8[]> owned) {
  region.l_key = region.r_key = next_key_++;
  regions_.emplace(region.l_key, Entry{region, access, std::move(owned)});
  return region;
}

Region NodeMemory::add(std::span<u8> bytes, Access access) {
  return enter(
      {.address = reinterpret_cast<u64>(bytes.data()), .length = bytes.size(), .bytes = bytes},
      access, nullptr);
}

Region NodeMemory::allocate(u64 length, Content content, Access access) {
  if (content == Content::kCounted) {
    const u64 address = next_counted_;
    next_counted_ += length + 4096;  // neighbours do not touch
    return enter({.address = address, .length = length}, access, nullptr);
  }
  auto owned = std::make_unique<u8[]>(length);
  const std::span<u8> bytes(owned.get(), length);
  return enter({.address = reinterpret_cast<u64>(bytes.data()), .length = length, .bytes = bytes},
               access, std::move(owned));
}

bool NodeMemory::allows(u32 key, u64 address, u64 length, Use use) const {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return false;
  const auto& [region, access, owned] = found->second;
  if (address < region.address || length > region.length ||
      address - region.address > region.length - length)
    return false;
  switch (use) {
    case Use::kLocal: return true;
    case Use::kRead: return access == Access::kRemoteRead || access == Access::kRemoteReadWrite;
    case Use::kWrite: return access == Access::kRemoteWrite || access == Access::kRemoteReadWrite;
  }
  return false;
}

void NodeMemory::append(u32 key, u64 address, u64 length, std::vector<u8>& to) const {
  const Region& region = regions_.at(key).region;
  if (region.bytes.empty()) return;
  const auto part = region.bytes.subspan(address - region.address, length);
  to.insert(to.end(), part.begin(), part.end());
}

void NodeMemory::copy_in(u32 key, u64 address, std::span<const u8> bytes) {
  const Region& region = regions_.at(key).region;
  if (region.bytes.empty()) return;
  std::ranges::copy(bytes,
                    region.bytes.begin() + static_cast<std::ptrdiff_t>(address - region.address));
}

void NodeMemory::invalidate(u32 key) {
  if (const auto found = regions_.find(key); found != regions_.end())
    found->second.access = Access::kLocal;
}

}  // namespace verbena::fabric
