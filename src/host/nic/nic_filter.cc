#include "host/nic/nic_filter.h"

#include <algorithm>

#include "device/port/p_key_match.h"
#include "host/sharing/qpn_slot.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/deth.h"
#include "wire/ib/mad.h"
#include "wire/ib/opcode.h"

namespace verbena::host {
namespace {

constexpr std::size_t kMADPlace = BTH::kSize + DETH::kSize;
constexpr std::size_t kAttributePlace = kMADPlace + 16;

// QP 1 belongs to all programs: it speaks for the function, whose address it has.
bool is_own_qpn(QPN qpn, u32 slot) { return qpn == kGSIQPN || slot_of(qpn.value) == slot; }

}  // namespace

const char* name_of(NICRefusal refusal) {
  switch (refusal) {
    case NICRefusal::kNone: return "passed";
    case NICRefusal::kMalformed: return "refused_malformed";
    case NICRefusal::kSource: return "refused_source";
    case NICRefusal::kDestination: return "refused_destination";
    case NICRefusal::kPKey: return "refused_p_key";
    case NICRefusal::kQPN: return "refused_qpn";
    case NICRefusal::kICRC: return "refused_icrc";
    case NICRefusal::kTrafficClass: return "refused_traffic_class";
  }
  CHECK_UNREACHABLE();
}

NICRefusal NICFilter::check_sent(const GID& source, const GID& destination,
                                 std::span<const u8> transport, u32 slot) const {
  const std::optional<PacketView> packet = PacketView::decode(transport);
  if (!packet) return NICRefusal::kMalformed;
  if (std::ranges::find(addresses_, source) == addresses_.end()) return NICRefusal::kSource;
  const BTH& bth = packet->headers.bth;
  if (destination.is_ipv4() != source.is_ipv4() || !may_go_to(destination, bth))
    return NICRefusal::kDestination;
  if (std::ranges::find(p_keys_, bth.p_key) == p_keys_.end()) return NICRefusal::kPKey;
  if (traits_of(bth.opcode).deth && !is_own_qpn(packet->headers.deth.source_qp, slot))
    return NICRefusal::kQPN;
  return NICRefusal::kNone;
}

// Only datagrams go to groups, and to QP 0xffffff (IBTA 9.4.1).
bool NICFilter::may_go_to(const GID& destination, const BTH& bth) const {
  if (!destination.is_multicast()) return true;
  return groups_ == NICGroups::kAll && bth.opcode.service == Service::kUD &&
         bth.dest_qp == kMulticastQPN;
}

NICRefusal NICFilter::check_received(const IngressFrame& frame, SeenFrames& seen) const {
  if (frame.type != GIDType::kRoCEv2) return NICRefusal::kMalformed;
  switch (check_frame(frame, seen)) {
    case FrameFault::kNone: break;
    case FrameFault::kICRC: return NICRefusal::kICRC;
    case FrameFault::kSize:
    case FrameFault::kAddresses: return NICRefusal::kMalformed;
  }
  const auto bth = BTH::decode(frame.transport);
  if (!bth) return NICRefusal::kMalformed;
  const bool matches =
      std::ranges::any_of(p_keys_, [&](PKey ours) { return p_keys_match(ours, bth->p_key); });
  return matches ? NICRefusal::kNone : NICRefusal::kPKey;
}

bool asks_for_connection(std::span<const u8> transport) {
  if (transport.size() < kMADPlace + MADHeader::kSize) return false;
  if (load_be24(transport.data() + BTH::kDestQPAt) != kGSIQPN.value) return false;
  const u16 attribute = load_be16(transport.data() + kAttributePlace);
  return attribute == static_cast<u16>(cm::Attribute::kREQ) ||
         attribute == static_cast<u16>(cm::Attribute::kSIDRREQ);
}

}  // namespace verbena::host
