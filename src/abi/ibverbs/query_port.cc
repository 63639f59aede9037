// The port, its GIDs and P_Keys. ibv_query_port(3), ibv_query_gid(3), ibv_query_gid_ex(3),
// ibv_query_gid_table(3), ibv_query_pkey(3), ibv_get_pkey_index(3), ibv_query_port_speed(3).
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "abi/ibverbs/address.h"
#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/translate.h"
#include "host/links/fabric/fabric_protocol.h"
#include "host/network/link_rate.h"

#undef ibv_query_port

namespace verbena::abi {
namespace {

u32 gid_type_of(GIDType type) {
  switch (type) {
    case GIDType::kRoCEv1: return IBV_GID_TYPE_ROCE_V1;
    case GIDType::kRoCEv2: return IBV_GID_TYPE_ROCE_V2;
    case GIDType::kInfiniBand: return IBV_GID_TYPE_IB;
  }
  CHECK_UNREACHABLE();
}

constexpr u8 kLinkUp = 5;  // IBTA 14.2.5.6, PortPhysicalState

ibv_port_attr port_attributes_of(const ContextObject& context) {
  const DeviceConfig& config = context.config();
  const host::LinkRate rate = host::rate_for(context.device.address.link_speed_mbps);
  ibv_port_attr attr{};
  attr.state = IBV_PORT_ACTIVE;
  attr.max_mtu = IBV_MTU_4096;
  attr.active_mtu = to_ibv(config.active_mtu);
  attr.gid_tbl_len = static_cast<int>(config.gids.size());
  attr.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attr.max_msg_sz = kMaxMessageSize;
  attr.pkey_tbl_len = static_cast<u16>(config.p_keys.size());
  attr.max_vl_num = 1;
  attr.active_width = rate.width;
  attr.active_speed = rate.speed;
  attr.phys_state = kLinkUp;
  attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  attr.flags = context.is_iwarp() ? 0 : IBV_QPF_GRH_REQUIRED;
  return attr;
}

// As PortInfo has it. IBTA 14.2.5.6
void fill_from_subnet(const host::FabricPortAttributes& port, ibv_port_attr& attr) {
  attr.state = static_cast<ibv_port_state>(port.state);
  attr.max_mtu = static_cast<ibv_mtu>(port.mtu_cap);
  attr.active_mtu = static_cast<ibv_mtu>(port.mtu);
  attr.port_cap_flags = port.capability_mask;
  attr.bad_pkey_cntr = port.p_key_violations;
  attr.qkey_viol_cntr = port.q_key_violations;
  attr.lid = port.lid;
  attr.sm_lid = port.sm_lid;
  attr.lmc = port.lmc;
  attr.max_vl_num = port.lanes;
  attr.sm_sl = port.sm_sl;
  attr.subnet_timeout = port.subnet_timeout;
  attr.active_width = port.width;
  constexpr u8 kFirstExtended = 16;  // FDR, where the kernel goes on: EDR 32, HDR 64, NDR 128
  attr.active_speed =
      port.ext_speed != 0 ? static_cast<u8>(kFirstExtended * port.ext_speed) : port.speed;
  attr.phys_state = port.physical_state;
  attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
  attr.flags = 0;
}

ibv_port_attr current_port_attributes(ContextObject& context) {
  ibv_port_attr attr = port_attributes_of(context);
  const auto session = context.enter();
  if (const host::FabricPortAttributes* const port = context.adapter->subnet_port())
    fill_from_subnet(*port, attr);
  return attr;
}

ibv_gid_entry entry_of(const ContextObject& context, u32 index) {
  const GIDEntry& entry = context.config().gids[index];
  return {
      .gid = to_ibv(entry.gid),
      .gid_index = index,
      .port_num = kPort,
      .gid_type = is_infiniband(context.config()) ? u32{IBV_GID_TYPE_IB} : gid_type_of(entry.type),
      .ndev_ifindex = context.device.address.interface_index};
}

// Programs of other ages have a shorter or a longer entry: they get what fits, and zeros.
void store(void* to, std::size_t size, const ibv_gid_entry& entry) {
  std::memset(to, 0, size);
  std::memcpy(to, &entry, std::min(size, sizeof entry));
}

}  // namespace

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr, std::size_t attr_size) {
  if (port != kPort) return refuse(EINVAL);
  const ibv_port_attr all = current_port_attributes(ContextObject::of(context));
  std::memset(static_cast<void*>(attr), 0, attr_size);
  std::memcpy(static_cast<void*>(attr), &all, std::min(attr_size, sizeof all));
  return 0;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

// Programs from before port_cap_flags2 have a structure without it.
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attr) try {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                    offsetof(ibv_port_attr, port_cap_flags2));
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_query_port_speed(ibv_context* context, uint32_t port, uint64_t* hundreds_of_mbps) try {
  if (port != kPort) return refuse(EINVAL);
  *hundreds_of_mbps =
      host::speed_or_default_mbps(ContextObject::of(context).device.address.link_speed_mbps) / 100;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                      uint32_t flags, std::size_t entry_size) try {
  ContextObject& self = ContextObject::of(context);
  if (flags != 0) return refuse(EOPNOTSUPP);
  if (port != kPort || index >= self.config().gids.size()) return refuse(EINVAL);
  if (self.config().gids[index].gid.is_zero()) return refuse(ENODATA);
  store(entry, entry_size, entry_of(self, index));
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max_entries,
                             uint32_t flags, std::size_t entry_size) try {
  ContextObject& self = ContextObject::of(context);
  if (flags != 0) return -refuse(EOPNOTSUPP);
  std::size_t count = 0;
  for (u32 index = 0; index < self.config().gids.size(); ++index) {
    if (self.config().gids[index].gid.is_zero()) continue;
    if (count == max_entries) return -refuse(EINVAL);
    store(reinterpret_cast<u8*>(entries) + count++ * entry_size, entry_size, entry_of(self, index));
  }
  return static_cast<ssize_t>(count);
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}

int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) try {
  const ContextObject& self = ContextObject::of(context);
  if (port != kPort || index < 0 || static_cast<u32>(index) >= self.config().gids.size())
    return fail_with_minus_one(EINVAL);
  *gid = to_ibv(self.config().gids[static_cast<u32>(index)].gid);
  return 0;
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}

int ibv_query_pkey(ibv_context* context, uint8_t port, int index, __be16* p_key) try {
  const ContextObject& self = ContextObject::of(context);
  if (port != kPort || index < 0 || static_cast<u32>(index) >= self.config().p_keys.size())
    return fail_with_minus_one(EINVAL);
  *p_key = htobe16(self.config().p_keys[static_cast<u32>(index)].value);
  return 0;
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}

int ibv_get_pkey_index(ibv_context* context, uint8_t port, __be16 p_key) try {
  const std::vector<PKey>& p_keys = ContextObject::of(context).config().p_keys;
  const auto found = std::ranges::find(p_keys, PKey{be16toh(p_key)});
  if (port != kPort || found == p_keys.end()) return fail_with_minus_one(EINVAL);
  return static_cast<int>(found - p_keys.begin());
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}
