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

// Walks the areas of a range, in order of address.
class RangeWalk {
 public:
  RangeWalk(u64 begin, u64 end, const AddressSpace::IsRight& is_right)
      : at_(begin), end_(end), is_right_(is_right) {}

  [[nodiscard]] u64 at() const { return at_; }  // everything before is right
  [[nodiscard]] bool is_done() const { return at_ >= end_; }
  // `area` is the first that ends after at(). Returns false if it is not right there.
  [[nodiscard]] bool take(const MappedArea& area) {
    if (at_ < area.begin || !is_right_(area)) return false;
    at_ = area.end;
    return true;
  }

 private:
  u64 at_, end_;
  const AddressSpace::IsRight& is_right_;
};

bool walk_text(const std::string& path, RangeWalk& walk) {
  std::ifstream text(path);
  for (std::string line; !walk.is_done() && std::getline(text, line);) {
    const std::optional<MappedArea> area = parse_mapped_area(line);
    if (area && walk.at() < area->end && !walk.take(*area)) return false;
  }
  return walk.is_done();
}

}  // namespace

AddressSpace::AddressSpace(Look look) : AddressSpace(look, "/proc/self/maps") {}

AddressSpace::AddressSpace(Look look, u32 pid)
    : AddressSpace(look, "/proc/" + std::to_string(pid) + "/maps") {}

AddressSpace::AddressSpace(Look look, std::string path)
    : look_(look), path_(std::move(path)), maps_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}

std::optional<MappedArea> AddressSpace::at(u64 address) const {
  std::optional<MappedArea> area = from(address);
  return area && area->begin <= address ? area : std::nullopt;
}

std::optional<MappedArea> AddressSpace::from(u64 address) const {
  if (!maps_.is_open()) return std::nullopt;
  std::array<char, kMaxName> name{};
  const std::optional<MappedArea> told = ask(address, name);
  if (told || errno != ENOTTY || look_ == Look::kQuickly) return told;
  std::ifstream text(path_);
  for (std::string line; std::getline(text, line);) {
    const std::optional<MappedArea> area = parse_mapped_area(line);
    if (area && address < area->end) return area;
  }
  return std::nullopt;
}

std::optional<bool> AddressSpace::covers(u64 begin, u64 end, const IsRight& is_right) const {
  if (!maps_.is_open()) return std::nullopt;
  RangeWalk walk(begin, end, is_right);
  while (!walk.is_done()) {
    const std::optional<MappedArea> area = ask(walk.at(), {});
    if (!area && errno == ENOTTY && look_ == Look::kThoroughly) return walk_text(path_, walk);
    if (!area && errno != ENOENT) return std::nullopt;
    if (!area || !walk.take(*area)) return false;
  }
  return true;
}

std::optional<MappedArea> AddressSpace::ask(u64 address, std::span<char> name) const {
  Query query;
  query.address = address;
  query.name_size = static_cast<u32>(name.size());
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
                    .name = name.empty() ? std::string() : std::string(name.data())};
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
