#include "abi/rdmacm/connection_path.h"

#include <endian.h>

#include <algorithm>
#include <cstring>

#include "abi/ibverbs/translate.h"
#include "abi/rdmacm/device_table.h"
#include "connect/cm_timeout.h"
#include "wire/ib/lid_address.h"

namespace verbena::rdmacm {
namespace {

constexpr u8 kExactly = 2;  // selectors of a PathRecord. IBTA 15.2.5.16
constexpr u8 kRate = IBV_RATE_MAX;

u8 or_default(u8 hop_limit) { return hop_limit != 0 ? hop_limit : kDefaultHopLimit; }

}  // namespace

ibv_ah_attr ConnectionPath::address() const {
  ibv_ah_attr attr{};
  if (const u16 lid = lid_of_address(remote); lid != 0) {
    attr.dlid = lid;
    attr.sl = sl;
    attr.port_num = kPort;
    return attr;
  }
  attr.grh.dgid = abi::to_ibv(remote);
  attr.grh.flow_label = flow_label;
  attr.grh.sgid_index = local_gid_index;
  attr.grh.hop_limit = hop_limit;
  attr.grh.traffic_class = traffic_class;
  attr.sl = sl;
  attr.is_global = 1;
  attr.port_num = kPort;
  return attr;
}

ibv_sa_path_rec ConnectionPath::record() const {
  ibv_sa_path_rec record{};
  record.dgid = abi::to_ibv(remote);
  record.dlid = htobe16(lid_of_address(remote));
  record.sgid = abi::to_ibv(local);
  record.flow_label = htobe32(flow_label);
  record.hop_limit = hop_limit;
  record.traffic_class = traffic_class;
  record.reversible = 1;
  record.numb_path = 1;
  record.pkey = htobe16(kDefaultPKey.value);
  record.sl = sl;
  record.mtu_selector = record.rate_selector = record.packet_life_time_selector = kExactly;
  record.mtu = static_cast<u8>(mtu);
  record.rate = kRate;
  record.packet_life_time = packet_life_time;
  return record;
}

PeerAnswer PeerAnswer::from(const cm::REP& rep, const ConnectionPath& path, u8 retry_count) {
  return {.qpn = qpn_of(rep),
          .sq_psn = rep.starting_psn,
          .responder_resources = rep.initiator_depth,
          .initiator_depth = rep.responder_resources,
          .retry_count = retry_count,
          .rnr_retry_count = rep.rnr_retry_count,
          .ack_timeout = ack_timeout_code(rep.target_ack_delay, path.packet_life_time)};
}

PeerAnswer PeerAnswer::from(const cm::REQ& req) {
  return {.qpn = req.local_qpn,
          .sq_psn = req.starting_psn,
          .responder_resources = req.initiator_depth,
          .initiator_depth = req.responder_resources,
          .retry_count = req.retry_count,
          .rnr_retry_count = req.rnr_retry_count,
          .ack_timeout = req.primary.local_ack_timeout};
}

ConnectionPath path_of(const ConnectRequest& request, u8 local_gid_index) {
  const cm::Path& theirs = request.req.primary;
  const u8 round_trip = theirs.local_ack_timeout;
  return {.local = request.local_gid,
          .remote = request.remote_gid,
          .local_gid_index = local_gid_index,
          .traffic_class = theirs.traffic_class,
          .hop_limit = or_default(theirs.hop_limit),
          .sl = theirs.sl,
          .flow_label = theirs.flow_label,
          .mtu = mtu_from_code(request.req.path_mtu_code).value_or(MTU::k256),
          .packet_life_time = static_cast<u8>(std::max<int>(round_trip, 1) - 1)};
}

}  // namespace verbena::rdmacm
