// Verbs of IBVERBS_1.10 and later that this device does not offer: EOPNOTSUPP, as their man pages
// have it for a provider without them.
#include "abi/ibverbs/newer_verbs.h"

#include "abi/ibverbs/errors.h"

using namespace verbena::abi;

// Completion counters. 1.18
int _ibv_query_comp_cntr_caps(ibv_context*, ibv_comp_cntr_caps*, std::size_t) {
  return refuse(EOPNOTSUPP);
}
ibv_comp_cntr* ibv_create_comp_cntr(ibv_context*, ibv_comp_cntr_init_attr*) {
  return fail(EOPNOTSUPP);
}
int ibv_destroy_comp_cntr(ibv_comp_cntr*) { return refuse(EOPNOTSUPP); }
int ibv_set_comp_cntr(ibv_comp_cntr*, uint64_t) { return refuse(EOPNOTSUPP); }
int ibv_set_err_comp_cntr(ibv_comp_cntr*, uint64_t) { return refuse(EOPNOTSUPP); }
int ibv_inc_comp_cntr(ibv_comp_cntr*, uint64_t) { return refuse(EOPNOTSUPP); }
int ibv_inc_err_comp_cntr(ibv_comp_cntr*, uint64_t) { return refuse(EOPNOTSUPP); }
int ibv_read_comp_cntr(ibv_comp_cntr*, uint64_t*) { return refuse(EOPNOTSUPP); }
int ibv_read_err_comp_cntr(ibv_comp_cntr*, uint64_t*) { return refuse(EOPNOTSUPP); }
int ibv_qp_attach_comp_cntr(ibv_qp*, ibv_comp_cntr*, ibv_qp_attach_comp_cntr_attr*) {
  return refuse(EOPNOTSUPP);
}
