#include "host/local/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "host/os/random.h"

namespace verbena::host {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

tl::unexpected<Error> segment_failure(const char* what) {
  const int error = errno;
  return failure(error, std::string(what) + ": " + std::strerror(error));
}

std::string path_of(const std::string& process, u64 fd) {
  return "/proc/" + process + "/fd/" + std::to_string(fd);
}

// Opens the file only if its type is the expected one: opening a device or a pipe may have effects.
Descriptor open_segment(const SegmentPlace& place) {
  const Descriptor found(
      ::open(path_of(std::to_string(place.pid), place.fd).c_str(), O_PATH | O_CLOEXEC));
  struct stat file {};
  if (!found.is_open() || ::fstat(found.get(), &file) != 0 || !S_ISREG(file.st_mode) ||
      file.st_size != kSegmentBytes)
    return {};
  Descriptor opened(
      ::open(path_of("self", static_cast<u64>(found.get())).c_str(), O_RDWR | O_CLOEXEC));
  if (!opened.is_open() || (::fcntl(opened.get(), F_GET_SEALS) & kSeals) != kSeals) return {};
  return opened;
}

}  // namespace

Expected<OwnSegment> OwnSegment::create(u32 slot, std::span<const GIDEntry> gids) {
  OwnSegment segment;
  segment.file_ = Descriptor(::memfd_create("verbena-device", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.file_.is_open()) return segment_failure("memfd_create");
  if (::ftruncate(segment.fd(), kSegmentBytes) != 0) return segment_failure("ftruncate");
  if (::fcntl(segment.fd(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0)
    return segment_failure("F_ADD_SEALS");
  Expected<Mapping> mapping =
      Mapping::of_file(segment.fd(), 0, sizeof(SegmentLayout), MapAccess::kReadWrite);
  if (!mapping) return tl::unexpected(mapping.error());
  segment.mapping_ = std::move(*mapping);

  SegmentHeader& header = segment.layout().header;
  header.magic = SegmentHeader::kMagic;
  header.nonce = random_u64();
  header.slot = slot;
  for (const GIDEntry& entry : gids.first(std::min<std::size_t>(gids.size(), header.kMaxGIDs)))
    header.gids[header.gid_count++] = entry.gid;
  header.life.prepare();
  return segment;
}

void OwnSegment::keep_copy() {
  (void)::mmap(mapping_.data(), sizeof(SegmentLayout), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_FIXED, fd(), 0);
}

Expected<Mapping> map_ring(int segment, u32 ring) {
  return Mapping::of_file(segment, sizeof(SegmentLayout) + u64{ring} * sizeof(SegmentRing),
                          sizeof(SegmentRing), MapAccess::kReadWrite);
}

Expected<PeerSegment> PeerSegment::open(const SegmentPlace& place, u32 slot) {
  Descriptor file = open_segment(place);
  if (!file.is_open()) return failure(ESTALE, "no shared memory of a Verbena device");
  Expected<Mapping> mapping =
      Mapping::of_file(file.get(), 0, sizeof(SegmentLayout), MapAccess::kRead);
  Expected<Mapping> shared = Mapping::of_file(file.get(), offsetof(SegmentLayout, shared),
                                              sizeof(SegmentLayout::Shared), MapAccess::kReadWrite);
  if (!mapping || !shared) return segment_failure("mmap");
  PeerSegment segment;
  segment.file_ = std::move(file);
  segment.mapping_ = std::move(*mapping);
  segment.shared_ = std::move(*shared);
  const SegmentHeader& header = segment.header();
  if (header.magic != SegmentHeader::kMagic || header.nonce != place.nonce || header.slot != slot)
    return failure(ESTALE, "the shared memory of another Verbena device");
  return segment;
}

}  // namespace verbena::host
