#include "tests/abi/verbs_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace verbena::test {
namespace {

class Loader {
 public:
  explicit Loader(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) give_up();
  }

  void load_all(VerbsLibrary& to) {
    load(to.get_device_list, "ibv_get_device_list", "IBVERBS_1.1");
    load(to.free_device_list, "ibv_free_device_list", "IBVERBS_1.1");
    load(to.get_device_name, "ibv_get_device_name", "IBVERBS_1.1");
    load(to.get_device_guid, "ibv_get_device_guid", "IBVERBS_1.1");
    load(to.get_device_index, "ibv_get_device_index", "IBVERBS_1.9");
    load(to.open_device, "ibv_open_device", "IBVERBS_1.1");
    load(to.close_device, "ibv_close_device", "IBVERBS_1.1");
    load(to.query_device, "ibv_query_device", "IBVERBS_1.1");
    load(to.query_port, "ibv_query_port", "IBVERBS_1.1");
    load(to.query_gid, "ibv_query_gid", "IBVERBS_1.1");
    load(to.query_gid_ex, "_ibv_query_gid_ex", "IBVERBS_1.11");
    load(to.query_gid_table, "_ibv_query_gid_table", "IBVERBS_1.11");
    load(to.query_pkey, "ibv_query_pkey", "IBVERBS_1.1");
    load(to.get_pkey_index, "ibv_get_pkey_index", "IBVERBS_1.5");
    load(to.get_async_event, "ibv_get_async_event", "IBVERBS_1.1");
    load(to.ack_async_event, "ibv_ack_async_event", "IBVERBS_1.1");
    load(to.alloc_pd, "ibv_alloc_pd", "IBVERBS_1.1");
    load(to.dealloc_pd, "ibv_dealloc_pd", "IBVERBS_1.1");
    load(to.reg_mr, "ibv_reg_mr", "IBVERBS_1.1");
    load(to.reg_mr_iova, "ibv_reg_mr_iova", "IBVERBS_1.7");
    load(to.reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
    load(to.reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
    load(to.query_comp_cntr_caps, "_ibv_query_comp_cntr_caps", "IBVERBS_1.18");
    load(to.create_comp_cntr, "ibv_create_comp_cntr", "IBVERBS_1.18");
    load(to.destroy_comp_cntr, "ibv_destroy_comp_cntr", "IBVERBS_1.18");
    load(to.set_comp_cntr, "ibv_set_comp_cntr", "IBVERBS_1.18");
    load(to.inc_comp_cntr, "ibv_inc_comp_cntr", "IBVERBS_1.18");
    load(to.read_comp_cntr, "ibv_read_comp_cntr", "IBVERBS_1.18");
    load(to.read_err_comp_cntr, "ibv_read_err_comp_cntr", "IBVERBS_1.18");
    load(to.qp_attach_comp_cntr, "ibv_qp_attach_comp_cntr", "IBVERBS_1.18");
    load(to.reg_mr_ex, "ibv_reg_mr_ex", "IBVERBS_1.15");
    load(to.alloc_dmah, "ibv_alloc_dmah", "IBVERBS_1.15");
    load(to.dealloc_dmah, "ibv_dealloc_dmah", "IBVERBS_1.15");
    load(to.alloc_buf, "ibv_alloc_buf", "IBVERBS_1.17");
    load(to.free_buf, "ibv_free_buf", "IBVERBS_1.17");
    load(to.reg_buf_mr, "ibv_reg_buf_mr", "IBVERBS_1.17");
    load(to.export_buf_dmabuf_fd, "ibv_export_buf_dmabuf_fd", "IBVERBS_1.18");
    load(to.dm_export_dmabuf_fd, "ibv_dm_export_dmabuf_fd", "IBVERBS_1.16");
    load(to.import_device, "ibv_import_device", "IBVERBS_1.10");
    load(to.import_pd, "ibv_import_pd", "IBVERBS_1.10");
    load(to.unimport_pd, "ibv_unimport_pd", "IBVERBS_1.10");
    load(to.import_mr, "ibv_import_mr", "IBVERBS_1.10");
    load(to.unimport_mr, "ibv_unimport_mr", "IBVERBS_1.10");
    load(to.import_dm, "ibv_import_dm", "IBVERBS_1.13");
    load(to.unimport_dm, "ibv_unimport_dm", "IBVERBS_1.13");
    load(to.rereg_mr, "ibv_rereg_mr", "IBVERBS_1.1");
    load(to.dereg_mr, "ibv_dereg_mr", "IBVERBS_1.1");
    load(to.create_comp_channel, "ibv_create_comp_channel", "IBVERBS_1.0");
    load(to.destroy_comp_channel, "ibv_destroy_comp_channel", "IBVERBS_1.0");
    load(to.create_cq, "ibv_create_cq", "IBVERBS_1.1");
    load(to.resize_cq, "ibv_resize_cq", "IBVERBS_1.1");
    load(to.destroy_cq, "ibv_destroy_cq", "IBVERBS_1.1");
    load(to.get_cq_event, "ibv_get_cq_event", "IBVERBS_1.1");
    load(to.ack_cq_events, "ibv_ack_cq_events", "IBVERBS_1.1");
    load(to.create_srq, "ibv_create_srq", "IBVERBS_1.1");
    load(to.modify_srq, "ibv_modify_srq", "IBVERBS_1.1");
    load(to.query_srq, "ibv_query_srq", "IBVERBS_1.1");
    load(to.destroy_srq, "ibv_destroy_srq", "IBVERBS_1.1");
    load(to.create_qp, "ibv_create_qp", "IBVERBS_1.1");
    load(to.modify_qp, "ibv_modify_qp", "IBVERBS_1.1");
    load(to.query_qp, "ibv_query_qp", "IBVERBS_1.1");
    load(to.destroy_qp, "ibv_destroy_qp", "IBVERBS_1.1");
    load(to.qp_to_qp_ex, "ibv_qp_to_qp_ex", "IBVERBS_1.6");
    load(to.create_ah, "ibv_create_ah", "IBVERBS_1.1");
    load(to.init_ah_from_wc, "ibv_init_ah_from_wc", "IBVERBS_1.1");
    load(to.create_ah_from_wc, "ibv_create_ah_from_wc", "IBVERBS_1.1");
    load(to.destroy_ah, "ibv_destroy_ah", "IBVERBS_1.1");
    load(to.attach_mcast, "ibv_attach_mcast", "IBVERBS_1.1");
    load(to.detach_mcast, "ibv_detach_mcast", "IBVERBS_1.1");
    load(to.query_ece, "ibv_query_ece", "IBVERBS_1.10");
    load(to.set_ece, "ibv_set_ece", "IBVERBS_1.10");
    load(to.fork_init, "ibv_fork_init", "IBVERBS_1.1");
    load(to.is_fork_initialized, "ibv_is_fork_initialized", "IBVERBS_1.13");
    load(to.wc_status_str, "ibv_wc_status_str", "IBVERBS_1.1");
    load(to.event_type_str, "ibv_event_type_str", "IBVERBS_1.1");
    load(to.node_type_str, "ibv_node_type_str", "IBVERBS_1.1");
    load(to.port_state_str, "ibv_port_state_str", "IBVERBS_1.1");
    load(to.rate_to_mult, "ibv_rate_to_mult", "IBVERBS_1.0");
    load(to.mult_to_rate, "mult_to_ibv_rate", "IBVERBS_1.0");
    load(to.rate_to_mbps, "ibv_rate_to_mbps", "IBVERBS_1.1");
    load(to.mbps_to_rate, "mbps_to_ibv_rate", "IBVERBS_1.1");
  }

 private:
  template <typename Function>
  void load(Function& to, const char* name, const char* version) {
    to = reinterpret_cast<Function>(dlvsym(library_, name, version));
    if (to == nullptr) give_up();
  }
  [[noreturn]] static void give_up() {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }

  void* library_;
};

VerbsLibrary load() {
  VerbsLibrary library{};
  Loader(VERBENA_LIBRARY_DIR "/libibverbs.so.1").load_all(library);
  return library;
}

}  // namespace

const VerbsLibrary& VerbsLibrary::get() {
  static const VerbsLibrary library = load();
  return library;
}

}  // namespace verbena::test
