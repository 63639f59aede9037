#include "wire/eth/ethernet.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {
namespace {

constexpr std::size_t kSourceAt = 6;
constexpr int kPriorityShift = 13;
constexpr u8 kMaxPriority = 7;
constexpr u16 kDropEligible = 0x1000;
constexpr u16 kMaxVLAN = 0xfff;

MAC mac_at(const u8* p) {
  MAC mac;
  std::copy_n(p, mac.bytes.size(), mac.bytes.begin());
  return mac;
}

}  // namespace

std::optional<EthernetHeader> EthernetHeader::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return EthernetHeader{.destination = mac_at(in.data()),
                        .source = mac_at(in.data() + kSourceAt),
                        .ether_type = EtherType{r.get16<12>()}};
}

void EthernetHeader::encode(std::span<u8, kSize> out) const {
  std::ranges::copy(destination.bytes, out.begin());
  std::ranges::copy(source.bytes, out.begin() + kSourceAt);
  Writer<kSize>(out).put16<12>(static_cast<u16>(ether_type));
}

std::optional<VLANTag> VLANTag::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u16 control = r.get16<0>();
  return VLANTag{.priority = static_cast<u8>(control >> kPriorityShift),
                 .drop_eligible = (control & kDropEligible) != 0,
                 .vlan_id = static_cast<u16>(control & kMaxVLAN),
                 .ether_type = EtherType{r.get16<2>()}};
}

void VLANTag::encode(std::span<u8, kSize> out) const {
  CHECK(priority <= kMaxPriority && vlan_id <= kMaxVLAN);
  Writer<kSize> w(out);
  w.put16<0>(static_cast<u16>((priority << kPriorityShift) |
                              (drop_eligible ? kDropEligible : u16{0}) | vlan_id));
  w.put16<2>(static_cast<u16>(ether_type));
}

}  // namespace verbena
