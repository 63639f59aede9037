#include "device/qp/qp_modify.h"

#include "device/port/gid_table.h"
#include "device/qp/qp_transitions.h"

namespace verbena {
namespace {

constexpr u8 kMaxTimerCode = 31;  // 5 bits: Local ACK Timeout, RNR NAK timer
constexpr u8 kMaxRetryCount = 7;  // 3 bits
constexpr u8 kOnlyPort = 1;
constexpr u16 kPKeyBaseMask = 0x7fff;  // IBTA 10.9.1.2: a base of 0 is no P_Key

constexpr AccessFlags kRemoteAccess = Access::kRemoteRead | Access::kRemoteWrite |
                                      AccessFlags(Access::kRemoteAtomic) | Access::kFlushGlobal |
                                      AccessFlags(Access::kFlushPersistent);

bool valid_p_key_index(const DeviceConfig& config, u16 index) {
  return index < config.p_keys.size() && (config.p_keys[index].value & kPKeyBaseMask) != 0;
}

bool valid_path_mtu(const DeviceConfig& config, MTU mtu) {
  return mtu_from_code(static_cast<u8>(mtu)).has_value() && mtu <= config.active_mtu;
}

bool valid_addressing(const QPModify& c, const DeviceConfig& config) {
  if (c.has(QPField::kPKeyIndex) && !valid_p_key_index(config, c.p_key_index)) return false;
  if (c.has(QPField::kPort) && c.port != kOnlyPort) return false;
  if (c.has(QPField::kAddressVector) && !is_usable(config, c.path)) return false;
  if (c.has(QPField::kPathMTU) && !valid_path_mtu(config, c.path_mtu)) return false;
  return !c.has(QPField::kDestQPN) || c.dest_qp.value <= kMask24;
}

bool valid_timers(const QPModify& c) {
  if (c.has(QPField::kTimeout) && c.ack_timeout > kMaxTimerCode) return false;
  if (c.has(QPField::kMinRNRTimer) && c.min_rnr_timer > kMaxTimerCode) return false;
  if (c.has(QPField::kRetryCount) && c.retry_count > kMaxRetryCount) return false;
  return !c.has(QPField::kRNRRetry) || c.rnr_retry_count <= kMaxRetryCount;
}

bool valid_rd_atomic(const QPModify& c, const DeviceLimits& limits) {
  if (c.has(QPField::kMaxRdAtomic) && c.max_rd_atomic > limits.max_init_rd_atomic) return false;
  return !c.has(QPField::kMaxDestRdAtomic) || c.max_dest_rd_atomic <= limits.max_rd_atomic;
}

void apply_addressing(const QPModify& c, const DeviceConfig& config, QPAttributes& qp) {
  if (c.has(QPField::kPKeyIndex)) {
    qp.p_key_index = c.p_key_index;
    qp.p_key = config.p_keys[c.p_key_index];
  }
  if (c.has(QPField::kPort)) qp.port = c.port;
  if (c.has(QPField::kAddressVector)) {
    qp.path = c.path;
    qp.path.source = gid_at(config, c.path.source_gid_index)->gid;
  }
  if (c.has(QPField::kPathMTU)) qp.path_mtu = c.path_mtu;
  if (c.has(QPField::kDestQPN)) qp.dest_qp = c.dest_qp;
}

void apply_rights(const QPModify& c, QPAttributes& qp) {
  if (c.has(QPField::kQKey)) qp.q_key = c.q_key;
  if (c.has(QPField::kAccessFlags))
    qp.remote_access = AccessFlags(c.remote_access.bits & kRemoteAccess.bits);
}

void apply_reliability(const QPModify& c, QPAttributes& qp) {
  if (c.has(QPField::kTimeout)) qp.ack_timeout = c.ack_timeout;
  if (c.has(QPField::kRetryCount)) qp.retry_count = c.retry_count;
  if (c.has(QPField::kRNRRetry)) qp.rnr_retry_count = c.rnr_retry_count;
  if (c.has(QPField::kMinRNRTimer)) qp.min_rnr_timer = c.min_rnr_timer;
  if (c.has(QPField::kRQPSN)) qp.rq_psn = c.rq_psn;
  if (c.has(QPField::kSQPSN)) qp.sq_psn = c.sq_psn;
  if (c.has(QPField::kMaxRdAtomic)) qp.max_rd_atomic = c.max_rd_atomic;
  if (c.has(QPField::kMaxDestRdAtomic)) qp.max_dest_rd_atomic = c.max_dest_rd_atomic;
}

}  // namespace

Status check_modify(const QPModify& change, const QPAttributes& qp, const DeviceConfig& config) {
  const QPState target = change.target(qp.state);
  const TransitionRule rule = config.transport == Transport::kIWARP
                                  ? stream_transition_rule(qp.state, target)
                                  : transition_rule(qp.type, qp.state, target);
  if (!fits(rule, change.fields)) return Status::kInvalidArgument;
  if (change.has(QPField::kCurrentState) && change.current_state != qp.state)
    return Status::kInvalidArgument;
  if (!valid_addressing(change, config) || !valid_timers(change) ||
      !valid_rd_atomic(change, config.limits))
    return Status::kInvalidArgument;
  if (change.has(QPField::kAlternatePath) || change.has(QPField::kPathMigrationState))
    return Status::kNotSupported;
  return Status::kOk;
}

void apply_modify(const QPModify& change, const DeviceConfig& config, QPAttributes& qp) {
  apply_addressing(change, config, qp);
  apply_rights(change, qp);
  apply_reliability(change, qp);
}

}  // namespace verbena
