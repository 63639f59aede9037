#include "host/local/common_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <mutex>
#include <string_view>

#include "host/local/address_space.h"
#include "host/local/replaced_memory.h"

namespace verbena::host {
namespace {

constexpr const char* kName = "verbena-share";
constexpr const char* kNameInMaps = "/memfd:verbena-share (deleted)";
constexpr std::size_t kMaxFiles = 256;  // descriptors that we hold of a program's limit
constexpr u64 kPage = 4096;

struct Range {  // [begin, end)
  u64 begin = 0, end = 0;
  [[nodiscard]] bool empty() const { return begin >= end; }
};
Range whole_pages_in(const Range& range) {
  return {(range.begin + kPage - 1) & ~(kPage - 1), range.end & ~(kPage - 1)};
}
Range pages_around(const Range& range) {
  return {range.begin & ~(kPage - 1), (range.end + kPage - 1) & ~(kPage - 1)};
}
Range common(const Range& a, const Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

using FileIdentity = std::pair<u64, u64>;  // device, inode

// Files: the shared files of this process, by identity. Never destroyed: a region may outlive
// everything.
struct Files {
  std::recursive_mutex mutex;  // the last owner of a file may be one that holds it
  std::map<FileIdentity, std::weak_ptr<const SharedFile>> open;
};

Files& files() {
  static Files* const instance = new Files;
  return *instance;
}

std::optional<FileIdentity> identity_of(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  return FileIdentity(file.st_dev, file.st_ino);
}

bool is_in_memory(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

// --- the file behind a mapping

Descriptor open_if(const char* path, const MappedArea& area) {
  const int mode = area.is_writable ? O_RDWR : O_RDONLY;
  const Descriptor found(::open(path, O_PATH | O_CLOEXEC));
  if (!found.is_open() || identity_of(found.get()) != FileIdentity(area.device, area.inode))
    return {};
  const std::string again = "/proc/self/fd/" + std::to_string(found.get());
  Descriptor opened(::open(again.c_str(), mode | O_CLOEXEC));
  return opened.is_open() && is_in_memory(opened.get()) ? std::move(opened) : Descriptor();
}

// Opens the kernel's own entry of the mapping, which not every user may open. proc_pid_map_files(5)
Descriptor open_by_mapping(const MappedArea& area) {
  std::array<char, 80> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, area.begin,
                area.end);
  return open_if(path.data(), area);
}

Descriptor open_by_name(const MappedArea& area) {
  return area.name.starts_with('/') ? open_if(area.name.c_str(), area) : Descriptor();
}

// Opens the file by a descriptor that the program has of it.
Descriptor open_by_descriptor(const MappedArea& area) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc/self/fd"), ::closedir);
  while (const dirent* const entry = all != nullptr ? ::readdir(all.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec != std::errc()) continue;
    if (identity_of(fd) == FileIdentity(area.device, area.inode))
      return open_if(("/proc/self/fd/" + std::to_string(fd)).c_str(), area);
  }
  return {};
}

Descriptor open_file_of(const MappedArea& area) {
  for (const auto open : {open_by_mapping, open_by_name, open_by_descriptor})
    if (Descriptor file = open(area); file.is_open()) return file;
  return {};
}

// Turns the part of the range that still maps the file into private memory again, unless the file
// was found anew meanwhile.
void give_back(const Range& range, const FileIdentity& identity) {
  const std::lock_guard lock(files().mutex);
  const auto known = files().open.find(identity);
  if (known != files().open.end() && !known->second.expired()) return;
  const AddressSpace space(AddressSpace::Look::kThoroughly);
  for (u64 at = range.begin; at < range.end;) {
    const std::optional<MappedArea> area = space.from(at);
    if (!area) return;
    const Range part = common({std::max(at, area->begin), area->end}, range);
    if (!part.empty() && FileIdentity(area->device, area->inode) == identity)
      (void)give_back_memory(part.begin, part.end - part.begin);
    at = area->end;
  }
}

// With the lock held. A range that is not empty is replaced memory.
std::shared_ptr<const SharedFile> keep(const FileIdentity& identity, Descriptor file,
                                       const Range& replaced) {
  std::erase_if(files().open, [](const auto& known) { return known.second.expired(); });
  if (!file.is_open() || files().open.size() >= kMaxFiles) return nullptr;
  const auto end = [replaced, identity](const SharedFile* ended) {
    delete ended;
    if (!replaced.empty()) give_back(replaced, identity);
  };
  std::shared_ptr<const SharedFile> shared(new SharedFile(std::move(file)), end);
  files().open[identity] = shared;
  return shared;
}

// Call it with the lock held. Returns nullptr if the area has no file that others could map and
// write.
std::shared_ptr<const SharedFile> file_of(const MappedArea& area) {
  if (!area.is_shared || !area.is_writable || area.inode == 0) return nullptr;
  const FileIdentity identity(area.device, area.inode);
  const auto known = files().open.find(identity);
  if (known != files().open.end())
    if (std::shared_ptr<const SharedFile> file = known->second.lock()) return file;
  const bool was_replaced = area.name == kNameInMaps;
  return keep(identity, open_file_of(area), was_replaced ? Range{area.begin, area.end} : Range());
}

std::optional<CommonMemory> find_in(const MappedArea& area, const Range& memory) {
  std::shared_ptr<const SharedFile> file = file_of(area);
  if (file == nullptr) return std::nullopt;
  const Range part = common(pages_around(memory), {area.begin, area.end});
  return CommonMemory{.span = {.address = part.begin,
                               .length = part.end - part.begin,
                               .offset = area.offset + (part.begin - area.begin),
                               .device = area.device,
                               .inode = area.inode,
                               .descriptor = static_cast<u32>(file->fd())},
                      .file = std::move(file)};
}

// --- replacement

// Returns true for memory that no other process has, or has only through keys of ours that are
// gone.
bool is_replaceable(const MappedArea& area) {
  if (!area.is_readable || !area.is_writable || area.is_executable) return false;
  if (area.is_shared) return area.name == kNameInMaps;
  return area.inode == 0 &&
         (area.name.empty() || area.name == "[heap]" || area.name.starts_with("[anon:"));
}

// From where it begins on. Nothing with our own stack in it: we could not go on meanwhile.
Range replaceable_part(const AddressSpace& space, const Range& pages) {
  Range part{pages.begin, pages.begin};
  while (part.end < pages.end) {
    const std::optional<MappedArea> area = space.at(part.end);
    if (!area || !is_replaceable(*area)) break;
    part.end = std::min(area->end, pages.end);
  }
  const u64 stack = reinterpret_cast<u64>(__builtin_frame_address(0));
  return part.begin <= stack && stack < part.end ? Range() : part;
}

// With the lock held.
std::optional<CommonMemory> replace_in(const AddressSpace& space, const Range& pages) {
  const Range part = replaceable_part(space, pages);
  if (part.empty()) return std::nullopt;
  const u64 length = part.end - part.begin;
  Descriptor memory(::memfd_create(kName, MFD_CLOEXEC));
  if (!memory.is_open() || ::ftruncate(memory.get(), static_cast<off_t>(length)) != 0)
    return std::nullopt;
  const std::optional<FileIdentity> identity = identity_of(memory.get());
  std::shared_ptr<const SharedFile> file =
      identity ? keep(*identity, std::move(memory), part) : nullptr;
  if (file == nullptr || !replace_memory(part.begin, length, file->fd())) return std::nullopt;
  return CommonMemory{.span = {.address = part.begin,
                               .length = length,
                               .offset = 0,
                               .device = identity->first,
                               .inode = identity->second,
                               .descriptor = static_cast<u32>(file->fd())},
                      .file = std::move(file)};
}

}  // namespace

std::optional<CommonMemory> common_memory_of(std::span<const u8> memory, Sharing sharing) {
  const u64 address = reinterpret_cast<u64>(memory.data());
  const Range range{address, address + memory.size()};
  const Range pages = whole_pages_in(range);
  const bool replaces = sharing == Sharing::kReplace;
  const AddressSpace space(replaces ? AddressSpace::Look::kThoroughly
                                    : AddressSpace::Look::kQuickly);
  const std::lock_guard lock(files().mutex);
  for (const u64 at : {range.begin, pages.begin}) {
    if (at >= range.end) break;
    const std::optional<MappedArea> area = space.at(at);
    if (!area) continue;
    if (std::optional<CommonMemory> found = find_in(*area, range)) return found;
  }
  return replaces && !pages.empty() ? replace_in(space, pages) : std::nullopt;
}

}  // namespace verbena::host
