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

// DMA handles and device memory. 1.15, 1.16
ibv_dmah* ibv_alloc_dmah(ibv_context*, ibv_dmah_init_attr*) { return fail(EOPNOTSUPP); }
int ibv_dealloc_dmah(ibv_dmah*) { return refuse(EOPNOTSUPP); }
int ibv_dm_export_dmabuf_fd(ibv_dm*) { return fail_with_minus_one(EOPNOTSUPP); }

// Buffers that a provider allocates. 1.17, 1.18
void* ibv_alloc_buf(ibv_pd*, std::size_t, ibv_buf**) { return fail(EOPNOTSUPP); }
void ibv_free_buf(ibv_buf*) {}
ibv_mr* ibv_reg_buf_mr(ibv_pd*, ibv_buf*, void*, std::size_t, int) { return fail(EOPNOTSUPP); }
int ibv_export_buf_dmabuf_fd(ibv_buf*) { return fail_with_minus_one(EOPNOTSUPP); }

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
