// libibumad's calls on open ports: umad_open_port(3) and its relatives.
#include <infiniband/umad.h>
#include <poll.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "abi/ibumad/port_table.h"
#include "abi/ibverbs/exceptions.h"

using namespace verbena;
namespace umad = verbena::abi::umad;
using umad::Port;

namespace {

// The bits of a mask of 128 methods, in an array of long.
std::array<u64, 2> methods_of(const long* mask) {
  std::array<u64, 2> methods{};
  static_assert(sizeof(long) == sizeof(u64));
  if (mask != nullptr) std::memcpy(methods.data(), mask, sizeof(methods));
  return methods;
}

int add_agent(int portid, const host::FabricMADRegister& request) {
  const std::shared_ptr<Port> port = umad::port_of(portid);
  return port == nullptr ? -EINVAL : port->add_agent(request);
}

// As the calls of libibumad that wait on a descriptor have it: errno is set, too.
int with_errno(int result) {
  if (result < 0) errno = -result;
  return result;
}

// Programs cancel a thread that waits in umad_recv(): its frames are unwound. So no object lives in
// one that waits: what has any is a function of its own.
[[gnu::noinline]] int receive(int portid, void* umad, int* length) {
  const std::shared_ptr<Port> port = umad::port_of(portid);
  if (port == nullptr || umad == nullptr || length == nullptr) return -EINVAL;
  return port->receive(*static_cast<ib_user_mad*>(umad), *length);
}

[[gnu::noinline]] bool has_mad(int portid) {
  const std::shared_ptr<Port> port = umad::port_of(portid);
  return port != nullptr && port->has_mad();
}

// For a port whose server has ended: programs that receive for ever, as OpenSM does, ask again at
// once, and end when they are cancelled. The wait is where that can happen.
[[gnu::noinline]] void wait_on_dead_port() {
  constexpr int kWaitMs = 100;
  (void)::poll(nullptr, 0, kWaitMs);
}

[[gnu::noinline]] int wait_until_readable(int fd, int timeout_ms) {
  pollfd waiting = {};
  waiting.fd = fd;
  waiting.events = POLLIN;
  const int ready = ::poll(&waiting, 1, timeout_ms);
  if (ready < 0) return -errno;
  return ready == 0 ? -ETIMEDOUT : 0;
}

}  // namespace

extern "C" {

int umad_init() noexcept { return 0; }
int umad_done() noexcept { return 0; }

int umad_open_port(const char* ca_name, int portnum) try {
  if (ca_name != nullptr && *ca_name != 0 && std::strcmp(ca_name, "verbena0") != 0) return -ENODEV;
  if (portnum != UMAD_ANY_PORT && portnum != umad::kOnlyPort) return -EINVAL;
  host::Expected<std::shared_ptr<Port>> port = Port::open();
  if (!port) return with_errno(-port.error().error);
  return umad::add_port(std::move(*port));
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

int umad_close_port(int portid) try {
  return umad::remove_port(portid) == nullptr ? -EINVAL : 0;
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

[[gnu::noinline]] int umad_get_fd(int portid) try {
  const std::shared_ptr<Port> port = umad::port_of(portid);
  return port == nullptr ? -EINVAL : port->fd();
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

int umad_register(int portid, int mgmt_class, int mgmt_version, u8 /*rmpp_version*/,
                  long method_mask[16 / sizeof(long)]) try {
  constexpr u32 kOpenIBOUI = 0x001405;  // of vendor classes, unless the caller gives one
  const auto number = static_cast<u8>(mgmt_class);
  return add_agent(portid, {.mgmt_class = number,
                            .class_version = static_cast<u8>(mgmt_version),
                            .method_mask = methods_of(method_mask),
                            .oui = number >= 0x30 && number <= 0x4f ? kOpenIBOUI : 0});
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

int umad_register_oui(int portid, int mgmt_class, u8 /*rmpp_version*/, u8 oui[3],
                      long method_mask[16 / sizeof(long)]) try {
  if (mgmt_class < 0x30 || mgmt_class > 0x4f) return -EINVAL;
  return add_agent(portid, {.mgmt_class = static_cast<u8>(mgmt_class),
                            .class_version = 1,
                            .method_mask = methods_of(method_mask),
                            .oui = u32{oui[0]} << 16 | u32{oui[1]} << 8 | oui[2]});
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

int umad_register2(int port_fd, umad_reg_attr* attr, u32* agent_id) try {
  if (attr == nullptr || agent_id == nullptr) return EINVAL;
  if ((attr->flags & ~u32{UMAD_USER_RMPP}) != 0) {
    attr->flags = UMAD_USER_RMPP;
    return EINVAL;
  }
  for (int id = 0; id < UMAD_MAX_PORTS; ++id) {
    const std::shared_ptr<Port> port = umad::port_of(id);
    if (port == nullptr || (port->fd() != port_fd && id != port_fd)) continue;
    const int agent = port->add_agent({.mgmt_class = attr->mgmt_class,
                                       .class_version = attr->mgmt_class_version,
                                       .method_mask = {attr->method_mask[0], attr->method_mask[1]},
                                       .oui = attr->oui});
    if (agent < 0) return -agent;
    *agent_id = static_cast<u32>(agent);
    return 0;
  }
  return EINVAL;
} catch (...) {
  return verbena::abi::errno_of_exception();
}

int umad_unregister(int portid, int agentid) try {
  const std::shared_ptr<Port> port = umad::port_of(portid);
  return port == nullptr ? -EINVAL : port->remove_agent(static_cast<u32>(agentid));
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

int umad_send(int portid, int agentid, void* umad, int length, int timeout_ms, int retries) try {
  const std::shared_ptr<Port> port = umad::port_of(portid);
  if (port == nullptr || umad == nullptr || length < 0) return with_errno(-EINVAL);
  auto& mad = *static_cast<ib_user_mad*>(umad);
  mad.timeout_ms = static_cast<u32>(timeout_ms);
  mad.retries = static_cast<u32>(retries);
  mad.agent_id = static_cast<u32>(agentid);
  return with_errno(port->send(mad, static_cast<std::size_t>(length), mad.agent_id,
                               timeout_ms > 0 ? mad.timeout_ms : 0, retries > 0 ? mad.retries : 0));
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

int umad_recv(int portid, void* umad, int* length, int timeout_ms) try {
  errno = 0;
  for (;;) {
    const int agent = receive(portid, umad, length);
    if (agent == -EIO && timeout_ms != 0) wait_on_dead_port();
    if (agent != -EWOULDBLOCK || timeout_ms == 0) return with_errno(agent);
    const int waited = wait_until_readable(umad_get_fd(portid), timeout_ms);
    if (waited != 0) return with_errno(waited);
  }
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

int umad_poll(int portid, int timeout_ms) try {
  if (has_mad(portid)) return 0;
  const int fd = umad_get_fd(portid);
  return with_errno(fd < 0 ? fd : wait_until_readable(fd, timeout_ms));
} catch (...) {
  return with_errno(-verbena::abi::errno_of_exception());
}

}  // extern "C"
