#include "transfer/metadata.h"

#include <algorithm>
#include <cstdio>

#include "transfer/fields.h"

namespace verbena::transfer {
namespace {

constexpr u32 kMetadataMagic = 0x31544256;  // "VBT1"

tl::unexpected<std::string> not_metadata(const char* why) {
  return tl::unexpected(std::string("this is no metadata of an agent: ") + why);
}

RemoteRegion read_region(FieldReader& reader) {
  RemoteRegion region;
  region.id = reader.get<u64>();
  region.address = reader.get<u64>();
  region.length = reader.get<u64>();
  region.rights = reader.get<u8>();
  for (u32& rkey : region.rkeys) rkey = reader.get<u32>();
  return region;
}

bool is_region(const RemoteRegion& region) {
  return region.id != 0 && region.length != 0 && region.rights != 0 &&
         region.rights <= (kRemoteRead | kRemoteWrite) &&
         region.address + region.length >= region.address;
}

bool holds(const RemoteRegion& region, u64 address, u64 length) {
  return address >= region.address && length <= region.length &&
         address - region.address <= region.length - length;
}

std::string range_text(u64 address, u64 length) {
  char text[64];
  std::snprintf(text, sizeof text, "%llu bytes at 0x%llx", static_cast<unsigned long long>(length),
                static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

bool is_agent_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string Metadata::encode() const {
  FieldWriter writer;
  writer.put(kMetadataMagic).put(name).put(incarnation).put(host).put(port).put(rails);
  writer.put(static_cast<u32>(regions.size()));
  for (const RemoteRegion& region : regions) {
    writer.put(region.id).put(region.address).put(region.length).put(region.rights);
    for (const u32 rkey : region.rkeys) writer.put(rkey);
  }
  return writer.bytes();
}

Expected<Metadata> Metadata::decode(std::string_view bytes) {
  FieldReader reader(bytes);
  if (reader.get<u32>() != kMetadataMagic) return not_metadata("it begins otherwise");
  Metadata metadata;
  metadata.name = reader.text();
  metadata.incarnation = reader.get<u64>();
  metadata.host = reader.text();
  metadata.port = reader.get<u16>();
  metadata.rails = reader.get<u8>();
  const u32 count = reader.get<u32>();
  if (!reader.is_good()) return not_metadata("it is cut short");
  if (!is_agent_name(metadata.name)) return not_metadata("it has no name");
  if (metadata.rails == 0 || metadata.rails > kMaxRails) return not_metadata("it has no device");
  if (count > kMaxRegions) return not_metadata("it has too many regions");
  for (u32 i = 0; i < count; ++i) {
    const RemoteRegion region = read_region(reader);
    if (!reader.is_good()) return not_metadata("it is cut short");
    if (!is_region(region)) return not_metadata("a region is not possible");
    metadata.regions.push_back(region);
  }
  if (!reader.is_at_end()) return not_metadata("more follows than belongs to it");
  return metadata;
}

Expected<u32> find_region(const std::vector<RemoteRegion>& regions, u64 id, u64 address, u64 length,
                          u8 right, std::string_view whose) {
  bool is_without_right = false;
  for (u32 i = 0; i < regions.size(); ++i) {
    if ((id != 0 && regions[i].id != id) || !holds(regions[i], address, length)) continue;
    if ((regions[i].rights & right) == right) return i;
    is_without_right = true;
  }
  const std::string where = range_text(address, length);
  if (is_without_right)
    return tl::unexpected(where + ": the region " + std::string(whose) + " does not allow remote " +
                          (right == kRemoteWrite ? "writes" : "reads"));
  return tl::unexpected(where + ": not in a registered region " + std::string(whose));
}

}  // namespace verbena::transfer
