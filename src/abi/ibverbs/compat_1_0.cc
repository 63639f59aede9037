// The functions at IBVERBS_1.0, from 2006, that IBVERBS_1.1 replaced in 2007 together with the
// layout of every object. They are here so that a program of that age loads and hears why it cannot
// run. It finds no device: ibv_get_device_list fails with ENOSYS, and without a device none of the
// others can be called rightly. Wrapping the old layouts would serve no program that anyone still
// has.
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/symver.h"

extern "C" {

void* verbena_1_0_device_list(int* count) noexcept {
  if (count != nullptr) *count = 0;
  return verbena::abi::fail(ENOSYS);
}

int verbena_1_0_status() noexcept { return verbena::abi::refuse(ENOSYS); }

int verbena_1_0_failure() noexcept { return verbena::abi::fail_with_minus_one(ENOSYS); }

void* verbena_1_0_pointer() noexcept { return verbena::abi::fail(ENOSYS); }

const char* verbena_1_0_name() noexcept { return ""; }

void verbena_1_0_ignore() noexcept {}

}  // extern "C"

#define VERBENA_1_0(function, name) VERBENA_OLD_VERSION(function, name, "IBVERBS_1.0")

VERBENA_1_0(verbena_1_0_device_list, ibv_get_device_list);
VERBENA_1_0(verbena_1_0_name, ibv_get_device_name);

VERBENA_1_0(verbena_1_0_ignore, ibv_ack_async_event);
VERBENA_1_0(verbena_1_0_ignore, ibv_ack_cq_events);
VERBENA_1_0(verbena_1_0_ignore, ibv_free_device_list);

VERBENA_1_0(verbena_1_0_pointer, ibv_alloc_pd);
VERBENA_1_0(verbena_1_0_pointer, ibv_create_ah);
VERBENA_1_0(verbena_1_0_pointer, ibv_create_cq);
VERBENA_1_0(verbena_1_0_pointer, ibv_create_qp);
VERBENA_1_0(verbena_1_0_pointer, ibv_create_srq);
VERBENA_1_0(verbena_1_0_pointer, ibv_get_device_guid);  // 0: no GUID
VERBENA_1_0(verbena_1_0_pointer, ibv_open_device);
VERBENA_1_0(verbena_1_0_pointer, ibv_reg_mr);

VERBENA_1_0(verbena_1_0_failure, ibv_get_async_event);
VERBENA_1_0(verbena_1_0_failure, ibv_get_cq_event);
VERBENA_1_0(verbena_1_0_failure, ibv_query_gid);
VERBENA_1_0(verbena_1_0_failure, ibv_query_pkey);

VERBENA_1_0(verbena_1_0_status, ibv_attach_mcast);
VERBENA_1_0(verbena_1_0_status, ibv_close_device);
VERBENA_1_0(verbena_1_0_status, ibv_dealloc_pd);
VERBENA_1_0(verbena_1_0_status, ibv_dereg_mr);
VERBENA_1_0(verbena_1_0_status, ibv_destroy_ah);
VERBENA_1_0(verbena_1_0_status, ibv_destroy_cq);
VERBENA_1_0(verbena_1_0_status, ibv_destroy_qp);
VERBENA_1_0(verbena_1_0_status, ibv_destroy_srq);
VERBENA_1_0(verbena_1_0_status, ibv_detach_mcast);
VERBENA_1_0(verbena_1_0_status, ibv_modify_qp);
VERBENA_1_0(verbena_1_0_status, ibv_modify_srq);
VERBENA_1_0(verbena_1_0_status, ibv_query_device);
VERBENA_1_0(verbena_1_0_status, ibv_query_port);
VERBENA_1_0(verbena_1_0_status, ibv_query_qp);
VERBENA_1_0(verbena_1_0_status, ibv_query_srq);
VERBENA_1_0(verbena_1_0_status, ibv_resize_cq);
