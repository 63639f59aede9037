// Attributes of queue pairs. ibv_modify_qp(3), ibv_query_qp(3).
#include <optional>

#include "abi/ibverbs/address.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/qp_object.h"
#include "abi/ibverbs/refusals.h"
#include "abi/ibverbs/translate.h"
#include "device/port/identity.h"

namespace verbena::abi {
namespace {

constexpr bool same_bit(QPField field, ibv_qp_attr_mask mask) {
  return static_cast<u32>(field) == static_cast<u32>(mask);
}
static_assert(same_bit(QPField::kState, IBV_QP_STATE));
static_assert(same_bit(QPField::kCurrentState, IBV_QP_CUR_STATE));
static_assert(same_bit(QPField::kEnableSQDNotify, IBV_QP_EN_SQD_ASYNC_NOTIFY));
static_assert(same_bit(QPField::kAccessFlags, IBV_QP_ACCESS_FLAGS));
static_assert(same_bit(QPField::kPKeyIndex, IBV_QP_PKEY_INDEX));
static_assert(same_bit(QPField::kPort, IBV_QP_PORT));
static_assert(same_bit(QPField::kQKey, IBV_QP_QKEY));
static_assert(same_bit(QPField::kAddressVector, IBV_QP_AV));
static_assert(same_bit(QPField::kPathMTU, IBV_QP_PATH_MTU));
static_assert(same_bit(QPField::kTimeout, IBV_QP_TIMEOUT));
static_assert(same_bit(QPField::kRetryCount, IBV_QP_RETRY_CNT));
static_assert(same_bit(QPField::kRNRRetry, IBV_QP_RNR_RETRY));
static_assert(same_bit(QPField::kRQPSN, IBV_QP_RQ_PSN));
static_assert(same_bit(QPField::kMaxRdAtomic, IBV_QP_MAX_QP_RD_ATOMIC));
static_assert(same_bit(QPField::kAlternatePath, IBV_QP_ALT_PATH));
static_assert(same_bit(QPField::kMinRNRTimer, IBV_QP_MIN_RNR_TIMER));
static_assert(same_bit(QPField::kSQPSN, IBV_QP_SQ_PSN));
static_assert(same_bit(QPField::kMaxDestRdAtomic, IBV_QP_MAX_DEST_RD_ATOMIC));
static_assert(same_bit(QPField::kPathMigrationState, IBV_QP_PATH_MIG_STATE));
static_assert(same_bit(QPField::kCapacity, IBV_QP_CAP));
static_assert(same_bit(QPField::kDestQPN, IBV_QP_DEST_QPN));
static_assert(same_bit(QPField::kRateLimit, IBV_QP_RATE_LIMIT));
constexpr u32 kAllFields = ((IBV_QP_DEST_QPN << 1) - 1) | IBV_QP_RATE_LIMIT;

// The attributes that are not plain numbers; false: a value that no state or path has.
bool set_checked(QPModify& change, const ibv_qp_attr& attr, const DeviceConfig& config) {
  if (change.has(QPField::kState)) {
    const std::optional<QPState> state = to_qp_state(attr.qp_state);
    if (!state) return false;
    change.state = *state;
  }
  if (change.has(QPField::kCurrentState)) {
    const std::optional<QPState> state = to_qp_state(attr.cur_qp_state);
    if (!state) return false;
    change.current_state = *state;
  }
  if (change.has(QPField::kPathMTU)) {
    if (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > IBV_MTU_4096) return false;
    change.path_mtu = static_cast<MTU>(attr.path_mtu);  // the same codes
  }
  if (change.has(QPField::kAddressVector)) {
    const std::optional<AddressVector> path = to_address_vector(attr.ah_attr, config);
    if (!path) return false;
    change.path = *path;
  }
  return true;
}

std::optional<QPModify> to_modify(const ibv_qp_attr& attr, int mask, const DeviceConfig& config) {
  const u32 fields = static_cast<u32>(mask);
  if ((fields & ~kAllFields) != 0) return std::nullopt;
  QPModify change{.fields = fields,
                  .enable_sqd_notify = attr.en_sqd_async_notify != 0,
                  .remote_access = to_remote_access(attr.qp_access_flags),
                  .p_key_index = attr.pkey_index,
                  .port = attr.port_num,
                  .q_key = QKey{attr.qkey},
                  .path = {},
                  .ack_timeout = attr.timeout,
                  .retry_count = attr.retry_cnt,
                  .rnr_retry_count = attr.rnr_retry,
                  .min_rnr_timer = attr.min_rnr_timer,
                  .rq_psn = PSN{attr.rq_psn},
                  .sq_psn = PSN{attr.sq_psn},
                  .max_rd_atomic = attr.max_rd_atomic,
                  .max_dest_rd_atomic = attr.max_dest_rd_atomic,
                  .dest_qp = QPN{attr.dest_qp_num}};
  if (!set_checked(change, attr, config)) return std::nullopt;
  return change;
}

ibv_qp_cap capacity_of(const QPInit& init) {
  return {.max_send_wr = init.send.depth,
          .max_recv_wr = init.receive.depth,
          .max_send_sge = init.send.max_sge,
          .max_recv_sge = init.receive.max_sge,
          .max_inline_data = init.send.max_inline_bytes};
}

ibv_qp_attr attributes_of(const QPAttributes& qp) {
  ibv_qp_attr attr{};
  attr.qp_state = to_ibv(qp.state);
  attr.cur_qp_state = attr.qp_state;
  attr.path_mtu = to_ibv(qp.path_mtu);
  attr.path_mig_state = IBV_MIG_MIGRATED;
  attr.qkey = qp.q_key.value;
  attr.rq_psn = qp.rq_psn.value();
  attr.sq_psn = qp.sq_psn.value();
  attr.dest_qp_num = qp.dest_qp.value;
  attr.qp_access_flags = qp.remote_access.bits;
  attr.ah_attr = to_ibv(qp.path);
  attr.pkey_index = qp.p_key_index;
  attr.max_rd_atomic = qp.max_rd_atomic;
  attr.max_dest_rd_atomic = qp.max_dest_rd_atomic;
  attr.min_rnr_timer = qp.min_rnr_timer;
  attr.port_num = qp.port;
  attr.timeout = qp.ack_timeout;
  attr.retry_cnt = qp.retry_count;
  attr.rnr_retry = qp.rnr_retry_count;
  return attr;
}

bool stops_receiving(const QPModify& change) {
  return change.has(QPField::kState) &&
         (change.state == QPState::kError || change.state == QPState::kReset);
}

// An acknowledgement that has arrived completes its request: it must not be flushed instead.
Status modify(QPObject& qp, const QPModify& change) {
  if (stops_receiving(change)) qp.owner().adapter->receive_arrived();
  auto session = qp.owner().enter();
  return session->modify_qp(qp.queue, change, session.now());
}

}  // namespace

ibv_qp_cap granted_capacity(const QPObject& qp) {
  return capacity_of(qp.owner().enter()->init_of(qp.queue));
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask) try {
  QPObject& self = QPObject::of(qp);
  const std::optional<QPModify> change = to_modify(*attr, attr_mask, self.owner().config());
  if (!change) {
    explain_refused_change(self, *attr, attr_mask);
    return refuse(EINVAL);
  }
  const Status status = modify(self, *change);
  if (status != Status::kOk) {
    if (change->has(QPField::kState)) checks::refused_state(self, change->state);
    explain_refused_change(self, *attr, attr_mask);
    return refuse(status);
  }
  if (change->has(QPField::kState)) {
    checks::changed_state(self, change->state);
    if (change->state == QPState::kReset) wait_for_forgotten_copies(self.owner());
    qp->state = attr->qp_state;
  }
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask, ibv_qp_init_attr* init_attr) try {
  const QPObject& self = QPObject::of(qp);
  auto session = self.owner().enter();
  const QPInit& init = session->init_of(self.queue);
  *attr = attributes_of(session->attributes_of(self.queue));
  attr->cap = capacity_of(init);
  attr->sq_draining = session->is_draining(self.queue) ? 1 : 0;
  *init_attr = {.qp_context = qp->qp_context,
                .send_cq = qp->send_cq,
                .recv_cq = qp->recv_cq,
                .srq = qp->srq,
                .cap = attr->cap,
                .qp_type = qp->qp_type,
                .sq_sig_all = init.signal_all ? 1 : 0};
  if ((attr_mask & IBV_QP_STATE) != 0) qp->state = attr->qp_state;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

// Data of one message may reach memory in any order: programs must not watch its last byte.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) try { return 0; } catch (...) {
  refuse(errno_of_exception());
  return 0;
}

// Enhanced connection establishment: two ends of one vendor agree on options beyond the standard.
// We know of none, so what is accepted of any is 0; another vendor's are refused, and the vendor 0
// asks for none.
int ibv_query_ece(ibv_qp*, ibv_ece* ece) try {
  *ece = {.vendor_id = kVendorId, .options = 0, .comp_mask = 0};
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_set_ece(ibv_qp*, ibv_ece* ece) try {
  if (ece->comp_mask != 0) return refuse(EINVAL);
  if (ece->vendor_id != 0 && ece->vendor_id != kVendorId) return refuse(EINVAL);
  ece->options = 0;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
