#include "abi/rdmacm/ece.h"

#include "abi/rdmacm/rejecting.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

cm::ECE on_the_wire(u32 vendor_id, u32 options) {
  return {.vendor_id = vendor_id & kMask24, .options = options};
}

// The QP keeps of `options` what it knows.
int set_options(IdObject& id, ibv_qp* qp, u32 options) {
  ibv_ece ece{.vendor_id = id.local_ece.vendor_id, .options = options, .comp_mask = 0};
  if (const int error = ibv_set_ece(qp, &ece)) return fail(error);
  if (const int error = ibv_query_ece(qp, &ece)) return fail(error);
  id.local_ece.options = ece.options;
  return 0;
}

}  // namespace

cm::ECE offer_of(const IdObject& id) {
  return on_the_wire(id.local_ece.vendor_id, id.local_ece.options);
}

// In the name of the vendor that has asked.
cm::ECE answer_of(const IdObject& id) {
  return on_the_wire(id.remote_ece.vendor_id, id.local_ece.options);
}

int settle_offer(IdObject& id, ibv_qp* qp) {
  ibv_ece own{};
  if (const int error = ibv_query_ece(qp, &own)) return fail(error);
  id.local_ece = {.vendor_id = own.vendor_id, .options = own.options};
  if (id.remote_ece.vendor_id == 0) return 0;
  const bool is_ours = id.remote_ece.vendor_id == own.vendor_id;
  return set_options(id, qp, is_ours ? id.remote_ece.options : 0);
}

int settle_answer(IdObject& id) {
  const bool has_none = id.remote_ece.vendor_id == 0;
  if (!has_none && id.remote_ece.vendor_id != id.local_ece.vendor_id) return fail(EINVAL);
  return set_options(id, id.qp, has_none ? 0 : id.remote_ece.options);
}

}  // namespace verbena::rdmacm

using namespace verbena;
using namespace verbena::rdmacm;

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) try {
  const bool is_valid = id != nullptr && id->qp == nullptr && ece != nullptr &&
                        ece->vendor_id != 0 && ece->comp_mask == 0;
  if (!is_valid) return fail(EINVAL);
  IdObject::of(id).local_ece = {.vendor_id = ece->vendor_id, .options = ece->options};
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) try {
  if (id == nullptr || id->qp != nullptr || ece == nullptr) return fail(EINVAL);
  const cm::ECE& remote = IdObject::of(id).remote_ece;
  *ece = {.vendor_id = remote.vendor_id, .options = remote.options, .comp_mask = 0};
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_reject_ece(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) try {
  return reject(IdObject::of(id), {static_cast<const u8*>(private_data), private_data_len},
                cm::RejectReason::kVendorOptionNotSupported);
} catch (...) {
  return fail(errno_of_exception());
}
