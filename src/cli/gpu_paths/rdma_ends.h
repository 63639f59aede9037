// Ends of an RDMA connection, of RoCEv2 or iWARP: rdma_cm connects both.
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "cli/gpu_paths/driver.h"

namespace verbena::gpu_paths {

inline rdma_conn_param connection_parameters() {
  rdma_conn_param param{};
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = 7;
  return param;
}

// An IPv4 address, or the first IPv6 address that is not link-local.
inline void take_address(const ibv_gid& gid, sockaddr_storage& out) {
  in6_addr ip{};
  std::memcpy(&ip, gid.raw, sizeof ip);
  if (IN6_IS_ADDR_V4MAPPED(&ip)) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, gid.raw + 12, sizeof four.sin_addr);
    std::memcpy(&out, &four, sizeof four);
  } else if (out.ss_family == AF_UNSPEC && !IN6_IS_ADDR_UNSPECIFIED(&ip) &&
             !IN6_IS_ADDR_LINKLOCAL(&ip)) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = ip;
    std::memcpy(&out, &six, sizeof six);
  }
}
// A GID of RoCEv2 or iWARP is an IP address.
inline sockaddr_storage address_of_first_device() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr || count == 0) end_with("there is no RDMA device");
  ibv_context* const context = ibv_open_device(devices[0]);
  must(context != nullptr, "ibv_open_device");
  sockaddr_storage address{};
  ibv_gid gid{};
  for (int i = 0; i < 16 && address.ss_family != AF_INET; ++i)
    if (ibv_query_gid(context, 1, i, &gid) == 0) take_address(gid, address);
  if (address.ss_family == AF_UNSPEC) end_with("the device has no IP address");
  must(ibv_close_device(context) == 0, "ibv_close_device");
  return address;
}
inline rdma_cm_id* make_endpoint(const sockaddr_storage& address, unsigned port, int flags) {
  char host[INET6_ADDRSTRLEN] = {};
  const void* const ip =
      address.ss_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
          : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  must(::inet_ntop(address.ss_family, ip, host, sizeof host) != nullptr, "inet_ntop");
  rdma_addrinfo hints{}, *found = nullptr;
  hints.ai_flags = flags;
  hints.ai_port_space = RDMA_PS_TCP;
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 4,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  rdma_cm_id* id = nullptr;
  must(rdma_getaddrinfo(host, std::to_string(port).c_str(), &hints, &found) == 0,
       "rdma_getaddrinfo");
  must(rdma_create_ep(&id, found, nullptr, &init) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

struct RemoteRegion {
  std::uint64_t address;
  std::uint32_t r_key;
};

class Listener {
 public:
  Listener() : id_(make_endpoint(address_of_first_device(), 0, RAI_PASSIVE)) {
    must(rdma_listen(id_, 1) == 0, "rdma_listen");
  }
  [[nodiscard]] unsigned port() const { return ntohs(rdma_get_src_port(id_)); }
  [[nodiscard]] rdma_cm_id* accept() {
    rdma_cm_id* end = nullptr;
    must(rdma_get_request(id_, &end) == 0, "rdma_get_request");
    rdma_conn_param param = connection_parameters();
    must(rdma_accept(end, &param) == 0, "rdma_accept");
    return end;
  }

 private:
  rdma_cm_id* const id_;
};

inline rdma_cm_id* connect_to(unsigned port) {
  rdma_cm_id* const end = make_endpoint(address_of_first_device(), port, 0);
  rdma_conn_param param = connection_parameters();
  must(rdma_connect(end, &param) == 0, "rdma_connect");
  return end;
}

inline ibv_mr* open_region(const rdma_cm_id* end, void* memory, std::size_t bytes) {
  ibv_mr* const mr =
      ibv_reg_mr(end->pd, memory, bytes,
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (mr == nullptr) end_with("ibv_reg_mr: " + std::string(std::strerror(errno)));
  return mr;
}
inline ibv_mr* open_region(const rdma_cm_id* end, Pointer memory, std::size_t bytes) {
  return open_region(end, reinterpret_cast<void*>(memory), bytes);
}
inline RemoteRegion remote(const ibv_mr* mr) {
  return {reinterpret_cast<std::uint64_t>(mr->addr), mr->rkey};
}

// Polls until the WRITE has completed.
inline void write(const rdma_cm_id* end, const ibv_mr* from, const RemoteRegion& to,
                  std::uint32_t bytes) {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(from->addr), bytes, from->lkey};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = to.address;
  wr.wr.rdma.rkey = to.r_key;
  must(ibv_post_send(end->qp, &wr, &bad) == 0, "ibv_post_send");
  ibv_wc wc{};
  while (ibv_poll_cq(end->send_cq, 1, &wc) == 0) {
  }
  if (wc.status != IBV_WC_SUCCESS)
    end_with(std::string("a WRITE has ended in: ") + ibv_wc_status_str(wc.status));
}

// Both ends in this process.
struct Loop {
  Loop() {
    Listener listener;
    std::thread acceptor([&] { server = listener.accept(); });
    client = connect_to(listener.port());
    acceptor.join();
  }
  rdma_cm_id *client = nullptr, *server = nullptr;
};

}  // namespace verbena::gpu_paths
