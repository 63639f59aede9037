#include "host/local/peer_mappings.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <string>

#include "host/os/descriptor.h"

namespace verbena::host {
namespace {

bool is_file_of(const SharedSpan& span, int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_dev == span.device &&
         file.st_ino == span.inode;
}

// Opens the file only if its type is the expected one: opening a device or a pipe may have effects.
Descriptor open_file(u32 pid, const SharedSpan& span, MapAccess access) {
  const std::string path =
      "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(span.descriptor);
  const Descriptor found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!found.is_open() || !is_file_of(span, found.get())) return {};
  const std::string again = "/proc/self/fd/" + std::to_string(found.get());
  const int mode = access == MapAccess::kReadWrite ? O_RDWR : O_RDONLY;
  Descriptor opened(::open(again.c_str(), mode | O_CLOEXEC));
  struct statfs system {};
  const bool is_in_memory =
      opened.is_open() && ::fstatfs(opened.get(), &system) == 0 && system.f_type == TMPFS_MAGIC;
  return is_in_memory ? std::move(opened) : Descriptor();
}

MapAccess access_by(const PublishedKey& key) {
  const bool writes = key.access.has(Access::kRemoteWrite) || key.access.has(Access::kRemoteAtomic);
  return writes ? MapAccess::kReadWrite : MapAccess::kRead;
}

}  // namespace

void PeerMappings::map(const PublishedKeys& keys, const PublishedKey& key, Place& place) const {
  place = {};
  place.number = key.span;
  place.key = key.key;
  const std::optional<SharedSpan> span = keys.span_of(RKey{key.key}, key.span);
  if (!span || span->length == 0) return;
  const MapAccess access = access_by(key);
  const Descriptor file = open_file(pid_, *span, access);
  if (!file.is_open()) return;
  mappers_.add(own_slot_);
  Expected<Mapping> mapping = Mapping::of_file(file.get(), span->offset, span->length, access);
  if (!mapping) return;
  place.span = *span;
  place.mapping = std::move(*mapping);
  (void)::madvise(place.mapping.data(), place.mapping.size(), MADV_DONTFORK);  // not our children's
}

// Not to is believed no longer than the copy that asks: the kernel then copies, and looks itself.
bool PeerMappings::may(Access need, Place& place) {
  Time& until = need == Access::kRemoteWrite ? place.writable_until : place.readable_until;
  const Time asked = clock_.now();
  if (asked < until) return true;
  if (!peer_may(need, place.span)) return false;
  const Time told = clock_.exactly_now();
  until = told + std::clamp((told - asked) * kTimesQuestion, kTrust, kMaxTrust);
  return true;
}

bool PeerMappings::peer_may(Access need, const SharedSpan& span) {
  if (!peer_) peer_.emplace(AddressSpace::Look::kThoroughly, pid_);
  const auto is_right = [need, &span](const MappedArea& area) {
    const u64 offset = area.offset + (span.address - area.begin);  // of the span, modulo 2^64
    return (need == Access::kRemoteWrite ? area.is_writable : area.is_readable) && area.is_shared &&
           area.device == span.device && area.inode == span.inode && offset == span.offset;
  };
  return peer_->covers(span.address, span.address + span.length, is_right).value_or(false);
}

void PeerMappings::drop_withdrawn(const PublishedKeys& keys) {
  for (Place& place : places_) {
    if (place.number == 0) continue;
    const std::optional<PublishedKey> published = keys.find(place.key);
    if (!published || published->span != place.number) place = {};
  }
}

u32 PeerMappings::count() const {
  return static_cast<u32>(std::ranges::count_if(
      places_, [](const Place& place) { return place.mapping.data() != nullptr; }));
}

}  // namespace verbena::host
