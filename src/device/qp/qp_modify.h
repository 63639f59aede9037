// QPModify: a change to a queue pair: which attributes, and their values. IBTA Vol 1, 11.2.5.2,
// tables 96-98 (which attributes each transition needs and allows).
#pragma once

#include "base/status.h"
#include "device/device_config.h"
#include "device/qp/qp_field.h"
#include "transport/qp_attributes.h"

namespace verbena {

struct QPModify {
  u32 fields = 0;  // QPField bits
  QPState state = QPState::kReset;
  QPState current_state = QPState::kReset;
  bool enable_sqd_notify = false;
  AccessFlags remote_access;
  u16 p_key_index = 0;
  u8 port = 1;
  QKey q_key;
  AddressVector path;  // source is taken from the GID table at source_gid_index
  MTU path_mtu = MTU::k1024;
  u8 ack_timeout = 0, retry_count = 0, rnr_retry_count = 0, min_rnr_timer = 0;
  PSN rq_psn, sq_psn;
  u8 max_rd_atomic = 0, max_dest_rd_atomic = 0;
  QPN dest_qp;

  bool has(QPField f) const { return (fields & static_cast<u32>(f)) != 0; }
  QPModify& set(QPField f) {
    fields |= static_cast<u32>(f);
    return *this;
  }
  // The state after the change: without kState it stays.
  QPState target(QPState from) const { return has(QPField::kState) ? state : from; }
};

// Whether the change is legal for a QP that is as `qp` says, transition and values. kNotSupported:
// automatic path migration. Nothing has changed yet.
[[nodiscard]] Status check_modify(const QPModify& change, const QPAttributes& qp,
                                  const DeviceConfig& config);
// Puts in the values, all but the state. Precondition: check_modify() gave kOk.
void apply_modify(const QPModify& change, const DeviceConfig& config, QPAttributes& qp);

}  // namespace verbena
