#include "nvmf/subsystem.h"

namespace verbena::nvmf {
namespace {

u64 fnv1a_64(std::string_view text, u64 hash) {
  for (const char c : text) hash = (hash ^ static_cast<u8>(c)) * 0x100000001b3;
  return hash;
}
constexpr u64 kFNVBasis = 0xcbf29ce484222325;

}  // namespace

std::string Subsystem::serial() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  u64 hash = fnv1a_64(nqn_, kFNVBasis);
  std::string serial;
  for (int i = 0; i < 16; ++i, hash >>= 4) serial += kDigits[hash & 0xf];
  return serial;
}

u32 Subsystem::add_namespace(BlockStore& store) {
  const u32 nsid = namespaces_.empty() ? 1 : namespaces_.rbegin()->first + 1;
  Namespace added{.store = &store};
  const std::string name = nqn_ + "#" + std::to_string(nsid);
  store_le<u64>(added.uuid.data(), fnv1a_64(name, kFNVBasis));
  store_le<u64>(added.uuid.data() + 8, fnv1a_64(name, ~kFNVBasis));
  added.uuid[6] = static_cast<u8>((added.uuid[6] & 0x0f) | 0x80);  // version 8. RFC 9562, 5.8
  added.uuid[8] = static_cast<u8>((added.uuid[8] & 0x3f) | 0x80);
  namespaces_.emplace(nsid, added);
  return nsid;
}

}  // namespace verbena::nvmf
