#include "host/local/address_space.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace verbena::host {
namespace {

constexpr const char* kMaps = "/proc/self/maps";
constexpr u32 kMaxName = 4096;  // PATH_MAX

// struct procmap_query of linux/fs.h, which older headers lack.
struct Query {
  u64 size = sizeof(Query);
  u64 flags = 0x10;  // PROCMAP_QUERY_COVERING_OR_NEXT_VMA
  u64 address = 0;   // asked
  u64 begin = 0, end = 0, area_flags = 0, page_size = 0, offset = 0, inode = 0;
  u32 major = 0, minor = 0;
  u32 name_size = 0, build_id_size = 0;  // room, then what there is
  u64 name = 0, build_id = 0;            // where to
};
static_assert(sizeof(Query) == 104);
constexpr unsigned long kQueryArea = _IOWR('f', 17, Query);  // PROCMAP_QUERY
enum : u64 { kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8 };

}  // namespace

AddressSpace::AddressSpace(Look look) : look_(look), maps_(::open(kMaps, O_RDONLY | O_CLOEXEC)) {}

std::optional<MappedArea> AddressSpace::at(u64 address) const {
  std::optional<MappedArea> area = from(address);
  return area && area->begin <= address ? area : std::nullopt;
}

std::optional<MappedArea> AddressSpace::from(u64 address) const {
  if (!maps_.is_open()) return std::nullopt;
  const std::optional<MappedArea> told = ask(address);
  if (told || errno != ENOTTY || look_ == Look::kQuickly) return told;
  std::ifstream text(kMaps);
  for (std::string line; std::getline(text, line);) {
    const std::optional<MappedArea> area = parse_mapped_area(line);
    if (area && address < area->end) return area;
  }
  return std::nullopt;
}

std::optional<MappedArea> AddressSpace::ask(u64 address) const {
  std::array<char, kMaxName> name{};
  Query query;
  query.address = address;
  query.name_size = kMaxName;
  query.name = reinterpret_cast<u64>(name.data());
  if (::ioctl(maps_.get(), kQueryArea, &query) != 0) return std::nullopt;
  const auto has = [&query](u64 flag) { return (query.area_flags & flag) != 0; };
  return MappedArea{.begin = query.begin,
                    .end = query.end,
                    .offset = query.offset,
                    .device = makedev(query.major, query.minor),
                    .inode = query.inode,
                    .is_readable = has(kReadable),
                    .is_writable = has(kWritable),
                    .is_executable = has(kExecutable),
                    .is_shared = has(kShared),
                    .name = name.data()};
}

std::optional<MappedArea> parse_mapped_area(const std::string& line) {
  MappedArea area;
  std::array<char, 5> rights{};
  unsigned major = 0, minor = 0;
  int name_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
                  &area.begin, &area.end, rights.data(), &area.offset, &major, &minor, &area.inode,
                  &name_at) != 7)
    return std::nullopt;
  area.device = makedev(major, minor);
  area.is_readable = rights[0] == 'r';
  area.is_writable = rights[1] == 'w';
  area.is_executable = rights[2] == 'x';
  area.is_shared = rights[3] == 's';
  area.name = line.substr(static_cast<std::size_t>(name_at));
  return area;
}

}  // namespace verbena::host
