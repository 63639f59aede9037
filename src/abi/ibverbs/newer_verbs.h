// The additions of rdma-core 45 and later to <infiniband/verbs.h>, for headers that do not have
// them yet: IBVERBS_1.15 to 1.18. Types that are only passed through stay incomplete.
#pragma once

#include <infiniband/verbs.h>

#include "base/types.h"

extern "C" {

// --- 1.15: registration by attributes, DMA handles
struct ibv_dmah {
  ibv_context* context;
};
struct ibv_dmah_init_attr {
  uint32_t comp_mask;  // which of the others are valid
  uint32_t cpu_id;
  uint8_t ph;            // processing hint
  uint8_t tph_mem_type;  // volatile, persistent
};
struct ibv_buf;
struct ibv_mr_init_attr {
  std::size_t length;
  int access;
  uint64_t comp_mask;  // kMRInit*
  uint64_t iova;
  void* addr;
  int fd;  // of a dma-buf
  uint64_t fd_offset;
  ibv_dmah* dmah;
  ibv_buf* buf;
};
ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr);
ibv_dmah* ibv_alloc_dmah(ibv_context* context, ibv_dmah_init_attr* attr);
int ibv_dealloc_dmah(ibv_dmah* dmah);

// --- 1.16
int ibv_query_port_speed(ibv_context* context, uint32_t port, uint64_t* hundreds_of_mbps);
int ibv_dm_export_dmabuf_fd(ibv_dm* dm);

// --- 1.17, and ibv_export_buf_dmabuf_fd of 1.18
void* ibv_alloc_buf(ibv_pd* pd, std::size_t size, ibv_buf** buf);
void ibv_free_buf(ibv_buf* buf);
ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, std::size_t length, int access);
int ibv_export_buf_dmabuf_fd(ibv_buf* buf);

// --- 1.18: completion counters
struct ibv_comp_cntr {
  ibv_context* context;
  uint32_t handle;
};
struct ibv_comp_cntr_caps {
  uint64_t max_value;
  uint32_t max_counters;
  uint32_t supported_qp_attach_ops;  // kAttach*
};
struct ibv_comp_cntr_init_attr {
  uint32_t comp_mask;
  uint32_t type;  // requests, bytes
  uint32_t flags;
};
struct ibv_qp_attach_comp_cntr_attr {
  uint32_t comp_mask;
  uint32_t op_mask;  // kAttach*
};
int _ibv_query_comp_cntr_caps(ibv_context* context, ibv_comp_cntr_caps* caps, std::size_t size);
ibv_comp_cntr* ibv_create_comp_cntr(ibv_context* context, ibv_comp_cntr_init_attr* attr);
int ibv_destroy_comp_cntr(ibv_comp_cntr* counter);
int ibv_set_comp_cntr(ibv_comp_cntr* counter, uint64_t value);
int ibv_set_err_comp_cntr(ibv_comp_cntr* counter, uint64_t value);
int ibv_inc_comp_cntr(ibv_comp_cntr* counter, uint64_t amount);
int ibv_inc_err_comp_cntr(ibv_comp_cntr* counter, uint64_t amount);
int ibv_read_comp_cntr(ibv_comp_cntr* counter, uint64_t* value);
int ibv_read_err_comp_cntr(ibv_comp_cntr* counter, uint64_t* value);
int ibv_qp_attach_comp_cntr(ibv_qp* qp, ibv_comp_cntr* counter, ibv_qp_attach_comp_cntr_attr* attr);

}  // extern "C"

static_assert(sizeof(ibv_mr_init_attr) == 72);
static_assert(offsetof(ibv_mr_init_attr, comp_mask) == 16);

namespace verbena::abi {

inline constexpr u64 kMRInitIOVA = 1u << 0;
inline constexpr u64 kMRInitAddr = 1u << 1;
inline constexpr u64 kMRInitFD = 1u << 2;
inline constexpr u64 kMRInitFDOffset = 1u << 3;
inline constexpr u64 kMRInitDMAH = 1u << 4;
inline constexpr u64 kMRInitBuf = 1u << 5;
inline constexpr u64 kAllMRInit = (1u << 6) - 1;

inline constexpr u32 kAttachSend = 1u << 0;
inline constexpr u32 kAttachReceive = 1u << 1;
inline constexpr u32 kAttachRDMARead = 1u << 2;
inline constexpr u32 kAttachRDMAWrite = 1u << 4;
inline constexpr u32 kAllAttach = (1u << 6) - 1;

inline constexpr u32 kParentDomainUnprotectedAlloc = 1u << 2;

// --- FLUSH and ATOMIC WRITE: ibv_wr_flush(3)
struct NewerQPEx : ibv_qp_ex {
  void (*wr_flush)(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, std::size_t length,
                   uint8_t type, uint8_t level);
};
static_assert(sizeof(NewerQPEx) == 360);

inline constexpr u64 kQPExWithFlush = 1u << 11;
inline constexpr u8 kFlushGlobal = 1u << 0;  // types
inline constexpr u8 kFlushPersistent = 1u << 1;
inline constexpr u8 kFlushRange = 0;  // levels
inline constexpr u8 kFlushRegion = 1;
inline constexpr auto kWCFlush = static_cast<ibv_wc_opcode>(8);
inline constexpr auto kWCAtomicWrite = static_cast<ibv_wc_opcode>(9);
inline constexpr u64 kDeviceFlushGlobal = u64{1} << 38;
inline constexpr u64 kDeviceAtomicWrite = u64{1} << 40;
inline constexpr u32 kODPFlush = 1u << 6;
inline constexpr u32 kODPAtomicWrite = 1u << 7;

inline constexpr unsigned kAccessFlushGlobal = 1u << 8;
inline constexpr unsigned kAccessFlushPersistent = 1u << 9;

}  // namespace verbena::abi
