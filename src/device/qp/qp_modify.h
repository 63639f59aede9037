// QPModify: a change to a queue pair: which attributes, and their values. IBTA Vol 1, 11.2.5.2,
// tables 96-98 (which attributes each transition needs and allows).
#pragma once

#include "base/status.h"
#include "device/device_config.h"
#include "transport/qp_attributes.h"

namespace verbena {

// Attributes as bits, one for each IBV_QP_* of the verbs interface.
enum class QPField : u32 {
  kState = 1u << 0,
  kCurrentState = 1u << 1,
  kEnableSQDNotify = 1u << 2,
  kAccessFlags = 1u << 3,
  kPKeyIndex = 1u << 4,
  kPort = 1u << 5,
  kQKey = 1u << 6,
  kAddressVector = 1u << 7,
  kPathMTU = 1u << 8,
  kTimeout = 1u << 9,
  kRetryCount = 1u << 10,
  kRNRRetry = 1u << 11,
  kRQPSN = 1u << 12,
  kMaxRdAtomic = 1u << 13,
  kAlternatePath = 1u << 14,
  kMinRNRTimer = 1u << 15,
  kSQPSN = 1u << 16,
  kMaxDestRdAtomic = 1u << 17,
  kPathMigrationState = 1u << 18,
  kCapacity = 1u << 19,
  kDestQPN = 1u << 20,
  kRateLimit = 1u << 25,
};

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
