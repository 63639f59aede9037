// The identity and the capabilities of the device. ibv_query_device(3), ibv_query_device_ex(3),
// ibv_query_rt_values_ex(3). IBTA Vol 1, 11.2.1.2.
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/core_clock.h"
#include "abi/ibverbs/dm_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/operations.h"
#include "device/port/identity.h"
#include "host/os/clock.h"

namespace verbena::abi {
namespace {

constexpr u64 kPageSizes = ~u64{0xfff};  // 4 KiB and every power of two above
constexpr u8 kAckDelay = 16;  // Local CA ACK Delay: 4.096 us * 2^16, a descheduled process

constexpr unsigned kCapabilities =
    IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CURR_QP_STATE_MOD |
    IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
    IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS |
    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC;

// RFC 5040 has neither RNR nor P_Keys nor XRC.
constexpr unsigned kIWARPCapabilities =
    IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
    IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS |
    IBV_DEVICE_MEM_WINDOW_TYPE_2B;

unsigned capabilities_of(const ContextObject& context) {
  return context.is_iwarp() ? kIWARPCapabilities : kCapabilities;
}

constexpr u32 kODPSends = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
constexpr u32 kODPWrites = kODPSends | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_SRQ_RECV;
constexpr u32 kODPAll =
    kODPWrites | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | kODPFlush | kODPAtomicWrite;

ibv_device_attr attributes_of(const ContextObject& context) {
  const DeviceConfig& config = context.config();
  const DeviceLimits& limits = config.limits;
  ibv_device_attr attr{};
  std::memcpy(attr.fw_ver, kFirmwareVersion, sizeof kFirmwareVersion);
  attr.node_guid = attr.sys_image_guid = htobe64(config.node_guid);
  attr.max_mr_size = limits.max_registered_bytes;
  attr.page_size_cap = kPageSizes;
  attr.vendor_id = kVendorId;
  attr.vendor_part_id = kVendorPartId;
  attr.hw_ver = kHardwareVersion;
  attr.max_qp = static_cast<int>(limits.max_qp);
  attr.max_qp_wr = static_cast<int>(limits.max_qp_wr);
  attr.device_cap_flags = capabilities_of(context);
  attr.max_sge = attr.max_sge_rd = static_cast<int>(limits.max_sge);
  attr.max_cq = static_cast<int>(limits.max_cq);
  attr.max_cqe = static_cast<int>(limits.max_cqe);
  attr.max_mr = static_cast<int>(limits.max_mr);
  attr.max_pd = static_cast<int>(limits.max_pd);
  attr.max_qp_rd_atom = limits.max_rd_atomic;
  attr.max_qp_init_rd_atom = limits.max_init_rd_atomic;
  attr.max_res_rd_atom = static_cast<int>(limits.max_rd_atomic * limits.max_qp);
  attr.atomic_cap = IBV_ATOMIC_HCA;
  attr.max_mw = static_cast<int>(limits.max_mw);
  attr.max_ah = static_cast<int>(limits.max_ah);
  attr.max_mcast_grp = static_cast<int>(limits.max_multicast_groups);
  attr.max_mcast_qp_attach = static_cast<int>(limits.max_qps_of_group);
  attr.max_total_mcast_qp_attach =
      static_cast<int>(limits.max_multicast_groups * limits.max_qps_of_group);
  attr.max_srq = static_cast<int>(limits.max_srq);
  attr.max_srq_wr = static_cast<int>(limits.max_srq_wr);
  attr.max_srq_sge = static_cast<int>(limits.max_sge);
  attr.max_pkeys = static_cast<u16>(config.p_keys.size());
  attr.local_ca_ack_delay = kAckDelay;
  attr.phys_port_cnt = kPort;
  if (!context.is_iwarp()) return attr;
  attr.max_ah = attr.max_mcast_grp = attr.max_mcast_qp_attach = 0;
  attr.max_total_mcast_qp_attach = 0;
  attr.local_ca_ack_delay = 0;
  return attr;
}

ibv_device_attr_ex extended_attributes_of(const ContextObject& context) {
  ibv_device_attr_ex attr{};
  attr.orig_attr = attributes_of(context);
  attr.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  attr.odp_caps.per_transport_caps = {
      .rc_odp_caps = kODPAll, .uc_odp_caps = kODPWrites, .ud_odp_caps = kODPSends};
  attr.xrc_odp_caps = kODPAll;
  if (context.is_iwarp()) attr.odp_caps = {}, attr.xrc_odp_caps = 0;
  attr.completion_timestamp_mask = kTimestampMask;
  attr.hca_core_clock = kCoreClockKHz;
  attr.device_cap_flags_ex = capabilities_of(context);
  if (!context.is_iwarp()) attr.device_cap_flags_ex |= kDeviceFlushGlobal | kDeviceAtomicWrite;
  attr.cq_mod_caps = {.max_cq_count = 0xffff, .max_cq_period = 0xffff};  // what the call can say
  attr.max_dm_size = kMaxDMBytes;
  attr.phys_port_cnt_ex = kPort;
  return attr;
}

}  // namespace

// Programs of other ages have a shorter or a longer structure: they get what fits, and zeros.
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t attr_size) {
  if (input != nullptr && input->comp_mask != 0) return refuse(EINVAL);
  if (attr_size < sizeof(ibv_device_attr)) return refuse(EINVAL);
  const ibv_device_attr_ex all = extended_attributes_of(ContextObject::of(context));
  std::memset(static_cast<void*>(attr), 0, attr_size);
  std::memcpy(static_cast<void*>(attr), &all, std::min(attr_size, sizeof all));
  return 0;
}

// The raw clock is a count of ticks, all in tv_nsec, as providers have it.
int query_rt_values(ibv_context*, ibv_values_ex* values) {
  const u32 known = values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK;
  if (known != 0)
    values->raw_clock = {.tv_sec = 0,
                         .tv_nsec = static_cast<long>(ticks_of(host::monotonic_now()))};
  values->comp_mask = known;
  return 0;
}

}  // namespace verbena::abi

using namespace verbena::abi;

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) try {
  *attr = attributes_of(ContextObject::of(context));
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
