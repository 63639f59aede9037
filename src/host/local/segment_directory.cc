#include "host/local/segment_directory.h"

#include <unistd.h>

#include <cerrno>

#include "host/sharing/directory.h"

namespace verbena::host {
namespace {

constexpr ssize_t kRecordSize = sizeof(SegmentPlace);

off_t place_of(u32 slot) { return static_cast<off_t>(slot) * kRecordSize; }

}  // namespace

Expected<SegmentDirectory> SegmentDirectory::open() {
  for (const std::string& path : shared_file_paths())
    if (Expected<Descriptor> file = open_shared_file(path + "-segments"))
      return SegmentDirectory(std::move(*file));
  return failure(EACCES, "no place for a file that processes share");
}

bool SegmentDirectory::set(u32 slot, const SegmentPlace& place) {
  return ::pwrite(file_.get(), &place, kRecordSize, place_of(slot)) == kRecordSize;
}

std::optional<SegmentPlace> SegmentDirectory::find(u32 slot) const {
  SegmentPlace place;
  if (::pread(file_.get(), &place, kRecordSize, place_of(slot)) != kRecordSize || place.pid == 0)
    return std::nullopt;
  return place;
}

}  // namespace verbena::host
