// From a received UD message to an address for the reply. ibv_init_ah_from_wc(3).
#include <algorithm>
#include <optional>
#include <span>

#include "abi/ibverbs/address.h"
#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/translate.h"
#include "wire/eth/ipv4.h"
#include "wire/ib/grh.h"

namespace verbena::abi {
namespace {

// Arrival: the fields of the 40 bytes before the payload. IBTA A17.4.5.1: an IPv6 header, or 20
// undefined bytes and an IPv4 header.
struct Arrival {
  GID source, destination;
  GIDType type = GIDType::kRoCEv2;
  u32 flow_label = 0;
  u8 traffic_class = 0;
  u8 hop_limit = 0;
};

Arrival from_ipv4(const IPv4Header& header) {
  return {.source = GID::from_ipv4(header.source),
          .destination = GID::from_ipv4(header.destination),
          .traffic_class = static_cast<u8>(header.dscp << 2 | static_cast<u8>(header.ecn)),
          .hop_limit = header.ttl};
}

std::optional<Arrival> from_grh(const GRH& header) {
  if (header.next_header != kProtocolUDP && header.next_header != kNextHeaderIBA)
    return std::nullopt;
  return Arrival{.source = header.sgid,
                 .destination = header.dgid,
                 .type = header.next_header == kProtocolUDP ? GIDType::kRoCEv2 : GIDType::kRoCEv1,
                 .flow_label = header.flow_label,
                 .traffic_class = header.traffic_class,
                 .hop_limit = header.hop_limit};
}

// A correct IPv4 checksum tells the two forms apart.
std::optional<Arrival> parse(std::span<const u8, GRH::kSize> bytes) {
  if (const auto ipv4 = IPv4Header::decode(bytes.last<IPv4Header::kSize>()))
    return from_ipv4(*ipv4);
  if (const auto grh = GRH::decode(bytes)) return from_grh(*grh);
  return std::nullopt;
}

std::optional<u8> index_of(const DeviceConfig& config, const GID& gid, GIDType type) {
  const auto found = std::ranges::find_if(
      config.gids, [&](const GIDEntry& entry) { return entry.gid == gid && entry.type == type; });
  if (found == config.gids.end()) return std::nullopt;
  return static_cast<u8>(found - config.gids.begin());
}

// Returns 0, or the errno.
int set_reply_route(ContextObject& context, const ibv_grh& received, ibv_global_route& route) {
  const std::span<const u8, GRH::kSize> bytes(reinterpret_cast<const u8*>(&received), GRH::kSize);
  const std::optional<Arrival> arrival = parse(bytes);
  if (!arrival) return EPROTONOSUPPORT;
  const auto index = index_of(context.config(), arrival->destination, arrival->type);
  if (!index) return EINVAL;
  route = {.dgid = to_ibv(arrival->source),
           .flow_label = arrival->flow_label,
           .sgid_index = *index,
           .hop_limit = arrival->hop_limit,
           .traffic_class = arrival->traffic_class};
  return 0;
}

}  // namespace

static_assert(sizeof(ibv_grh) == GRH::kSize);

}  // namespace verbena::abi

using namespace verbena::abi;

int ibv_init_ah_from_wc(ibv_context* context, uint8_t port_num, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* attr) try {
  *attr = {};  // no service level: in a completion from Ethernet, wc->sl is the kind of packet
  if (is_infiniband(ContextObject::of(context).config())) attr->sl = wc->sl;
  attr->dlid = wc->slid;
  attr->src_path_bits = wc->dlid_path_bits;
  attr->port_num = port_num;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;
  attr->is_global = 1;
  const int error = set_reply_route(ContextObject::of(context), *grh, attr->grh);
  return error == 0 ? 0 : fail_with_minus_one(error);
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}
