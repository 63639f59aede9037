#include "abi/ibverbs/address.h"

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/translate.h"
#include "wire/ib/lid_address.h"

namespace verbena::abi {
namespace {

constexpr u8 kMostServiceLevel = 15;

// Between the addresses of rdma_cm, which the fabric maps to LIDs.
bool is_by_ip(const ibv_ah_attr& attr, const DeviceConfig& config) {
  return attr.is_global != 0 && attr.dlid == 0 && attr.grh.sgid_index < config.gids.size() &&
         config.gids[attr.grh.sgid_index].type == GIDType::kRoCEv2;
}

std::optional<AddressVector> to_local_path(const ibv_ah_attr& attr, const DeviceConfig& config) {
  const bool has_gid = attr.is_global == 0 || attr.grh.sgid_index < config.gids.size();
  if (attr.port_num != kPort || attr.dlid == 0 || attr.dlid == 0xffff || !has_gid ||
      attr.sl > kMostServiceLevel)
    return std::nullopt;
  return AddressVector{.source = config.gids[0].gid,
                       .destination = address_of_lid(attr.dlid),
                       .traffic_class = traffic_class_of_sl(attr.sl),
                       .service_level = attr.sl,
                       .static_rate = attr.static_rate};
}

}  // namespace

bool is_infiniband(const DeviceConfig& config) {
  return !config.gids.empty() && config.gids[0].type == GIDType::kInfiniBand;
}

std::optional<AddressVector> to_address_vector(const ibv_ah_attr& attr,
                                               const DeviceConfig& config) {
  if (is_infiniband(config) && !is_by_ip(attr, config)) return to_local_path(attr, config);
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
  attr.port_num = kPort;
  attr.sl = path.service_level;
  attr.static_rate = path.static_rate;
  attr.dlid = lid_of_address(path.destination);
  if (attr.dlid != 0) return attr;
  attr.grh.dgid = to_ibv(path.destination);
  attr.grh.flow_label = path.flow_label;
  attr.grh.sgid_index = path.source_gid_index;
  attr.grh.hop_limit = path.hop_limit;
  attr.grh.traffic_class = path.traffic_class;
  attr.is_global = 1;
  return attr;
}

}  // namespace verbena::abi
