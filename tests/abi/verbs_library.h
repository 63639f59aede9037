// Our libibverbs.so.1 as a program sees it that loads it at run time, the way NCCL does: by dlopen,
// each function by its name and version.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace verbena::test {

// Declarations that headers before rdma-core 45 to 63 do not have yet, as those later ones have
// them.
extern "C" {
struct ibv_dmah;
struct ibv_buf;
struct ibv_comp_cntr;
}
struct NewerCompCntrCaps {
  std::uint64_t max_value;
  std::uint32_t max_counters, supported_qp_attach_ops;
};
struct NewerCompCntrInit {
  std::uint32_t comp_mask, type, flags;
};
struct NewerAttachCompCntr {
  std::uint32_t comp_mask, op_mask;
};
struct NewerDMAHInit {
  std::uint32_t comp_mask, cpu_id;
  std::uint8_t ph, tph_mem_type;
};
struct NewerMRInit {
  std::size_t length;
  int access;
  std::uint64_t comp_mask, iova;
  void* addr;
  int fd;
  std::uint64_t fd_offset;
  ibv_dmah* dmah;
  ibv_buf* buf;
};

struct VerbsLibrary {
  static const VerbsLibrary& get();  // loaded once; ends the process when it cannot be

  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_get_device_guid) get_device_guid;
  decltype(&::ibv_get_device_index) get_device_index;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;
  decltype(&::ibv_query_gid) query_gid;
  decltype(&::_ibv_query_gid_ex) query_gid_ex;
  decltype(&::_ibv_query_gid_table) query_gid_table;
  decltype(&::ibv_query_pkey) query_pkey;
  decltype(&::ibv_get_pkey_index) get_pkey_index;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  decltype(&::ibv_reg_mr) reg_mr;
  decltype(&::ibv_reg_mr_iova) reg_mr_iova;
  decltype(&::ibv_reg_mr_iova2) reg_mr_iova2;
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr;
  int (*query_comp_cntr_caps)(ibv_context*, NewerCompCntrCaps*, std::size_t);
  ibv_comp_cntr* (*create_comp_cntr)(ibv_context*, NewerCompCntrInit*);
  int (*destroy_comp_cntr)(ibv_comp_cntr*);
  int (*set_comp_cntr)(ibv_comp_cntr*, std::uint64_t);
  int (*inc_comp_cntr)(ibv_comp_cntr*, std::uint64_t);
  int (*read_comp_cntr)(ibv_comp_cntr*, std::uint64_t*);
  int (*read_err_comp_cntr)(ibv_comp_cntr*, std::uint64_t*);
  int (*qp_attach_comp_cntr)(ibv_qp*, ibv_comp_cntr*, NewerAttachCompCntr*);
  ibv_mr* (*reg_mr_ex)(ibv_pd*, NewerMRInit*);
  ibv_dmah* (*alloc_dmah)(ibv_context*, NewerDMAHInit*);
  int (*dealloc_dmah)(ibv_dmah*);
  void* (*alloc_buf)(ibv_pd*, std::size_t, ibv_buf**);
  void (*free_buf)(ibv_buf*);
  ibv_mr* (*reg_buf_mr)(ibv_pd*, ibv_buf*, void*, std::size_t, int);
  int (*export_buf_dmabuf_fd)(ibv_buf*);
  int (*dm_export_dmabuf_fd)(ibv_dm*);
  decltype(&::ibv_rereg_mr) rereg_mr;
  decltype(&::ibv_import_device) import_device;
  decltype(&::ibv_import_pd) import_pd;
  decltype(&::ibv_unimport_pd) unimport_pd;
  decltype(&::ibv_import_mr) import_mr;
  decltype(&::ibv_unimport_mr) unimport_mr;
  decltype(&::ibv_import_dm) import_dm;
  decltype(&::ibv_unimport_dm) unimport_dm;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_resize_cq) resize_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_srq) create_srq;
  decltype(&::ibv_modify_srq) modify_srq;
  decltype(&::ibv_query_srq) query_srq;
  decltype(&::ibv_destroy_srq) destroy_srq;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_query_qp) query_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_qp_to_qp_ex) qp_to_qp_ex;
  decltype(&::ibv_create_ah) create_ah;
  decltype(&::ibv_init_ah_from_wc) init_ah_from_wc;
  decltype(&::ibv_create_ah_from_wc) create_ah_from_wc;
  decltype(&::ibv_destroy_ah) destroy_ah;
  decltype(&::ibv_attach_mcast) attach_mcast;
  decltype(&::ibv_detach_mcast) detach_mcast;
  decltype(&::ibv_query_ece) query_ece;
  decltype(&::ibv_set_ece) set_ece;
  decltype(&::ibv_fork_init) fork_init;
  decltype(&::ibv_is_fork_initialized) is_fork_initialized;
  decltype(&::ibv_wc_status_str) wc_status_str;
  decltype(&::ibv_event_type_str) event_type_str;
  decltype(&::ibv_node_type_str) node_type_str;
  decltype(&::ibv_port_state_str) port_state_str;
  decltype(&::ibv_rate_to_mult) rate_to_mult;
  decltype(&::mult_to_ibv_rate) mult_to_rate;
  decltype(&::ibv_rate_to_mbps) rate_to_mbps;
  decltype(&::mbps_to_ibv_rate) mbps_to_rate;
};

}  // namespace verbena::test
