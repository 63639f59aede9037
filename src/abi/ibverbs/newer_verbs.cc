// Verbs of IBVERBS_1.10 and later that this device does not offer: EOPNOTSUPP, as their man pages
// have it for a provider without them.
#include "abi/ibverbs/newer_verbs.h"

#include "abi/ibverbs/errors.h"

using namespace verbena::abi;

// Sharing objects between processes. 1.10, 1.13
ibv_context* ibv_import_device(int) { return fail(EOPNOTSUPP); }
ibv_pd* ibv_import_pd(ibv_context*, uint32_t) { return fail(EOPNOTSUPP); }
void ibv_unimport_pd(ibv_pd*) {}
ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) { return fail(EOPNOTSUPP); }
void ibv_unimport_mr(ibv_mr*) {}
ibv_dm* ibv_import_dm(ibv_context*, uint32_t) { return fail(EOPNOTSUPP); }
void ibv_unimport_dm(ibv_dm*) {}

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
