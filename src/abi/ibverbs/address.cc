#include "abi/ibverbs/address.h"

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/translate.h"

namespace verbena::abi {

std::optional<AddressVector> to_address_vector(const ibv_ah_attr& attr,
                                               const DeviceConfig& config) {
  if (attr.is_global == 0 || attr.port_num != kPort) return std::nullopt;
  const ibv_global_route& grh = attr.grh;
  if (grh.sgid_index >= config.gids.size()) return std::nullopt;
  const AddressVector path{.source = config.gids[grh.sgid_index].gid,
                           .destination = to_gid(grh.dgid),
                           .source_gid_index = grh.sgid_index,
                           .traffic_class = grh.traffic_class,
                           .hop_limit = grh.hop_limit,
                           .flow_label = grh.flow_label & 0xfffff,
                           .service_level = attr.sl,
                           .static_rate = attr.static_rate};
  if (path.source.is_zero() || path.destination.is_zero()) return std::nullopt;
  return path;
}

ibv_ah_attr to_ibv(const AddressVector& path) {
  ibv_ah_attr attr{};
  attr.grh.dgid = to_ibv(path.destination);
  attr.grh.flow_label = path.flow_label;
  attr.grh.sgid_index = path.source_gid_index;
  attr.grh.hop_limit = path.hop_limit;
  attr.grh.traffic_class = path.traffic_class;
  attr.sl = path.service_level;
  attr.static_rate = path.static_rate;
  attr.is_global = 1;
  attr.port_num = kPort;
  return attr;
}

}  // namespace verbena::abi
