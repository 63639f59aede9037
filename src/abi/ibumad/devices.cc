// libibumad's calls about devices and their ports.
#include <infiniband/umad.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "abi/ibumad/device_facts.h"
#include "abi/ibverbs/exceptions.h"

using namespace verbena;
namespace umad = verbena::abi::umad;
using umad::DeviceFacts;
using umad::PortFacts;

namespace {

template <std::size_t N>
void put_text(char (&to)[N], std::string_view text) {
  to[text.copy(to, N - 1)] = 0;
}

// Without a name: the first.
std::optional<DeviceFacts> device_named(const char* name) {
  for (DeviceFacts& device : umad::devices())
    if (name == nullptr || *name == 0 || device.name == name) return std::move(device);
  return {};
}

const PortFacts* port_numbered(const DeviceFacts& device, int number) {
  const auto port = std::ranges::find_if(device.ports, [number](const PortFacts& each) {
    return number == UMAD_ANY_PORT || each.number == number;
  });
  return port == device.ports.end() ? nullptr : &*port;
}

int fill_port(const DeviceFacts& device, const PortFacts& facts, umad_port_t& port) {
  port = {};
  put_text(port.ca_name, device.name);
  put_text(port.link_layer, facts.link_layer);
  port.portnum = facts.number;
  port.base_lid = facts.lid;
  port.lmc = facts.lmc;
  port.sm_lid = facts.sm_lid;
  port.sm_sl = facts.sm_sl;
  port.state = facts.state;
  port.phys_state = facts.physical_state;
  port.rate = facts.rate;
  port.capmask = htobe32(facts.capability_mask);
  port.gid_prefix = htobe64(facts.gid_prefix);
  port.port_guid = htobe64(facts.guid);
  port.pkeys =
      static_cast<u16*>(std::calloc(std::max(facts.p_keys.size(), std::size_t{1}), sizeof(u16)));
  if (port.pkeys == nullptr) return -ENOMEM;
  port.pkeys_size = static_cast<unsigned>(facts.p_keys.size());
  std::ranges::copy(facts.p_keys, port.pkeys);
  return 0;
}

// The nodes, from the last: each one allocation, with the name behind the node.
umad_device_node* list_of(const std::vector<DeviceFacts>& devices) {
  umad_device_node* head = nullptr;
  for (auto device = devices.rbegin(); device != devices.rend(); ++device) {
    const std::size_t name = device->name.size() + 1;
    auto* const node = static_cast<umad_device_node*>(std::malloc(sizeof(umad_device_node) + name));
    if (node == nullptr) {
      umad_free_ca_device_list(head);
      return nullptr;
    }
    char* const text = reinterpret_cast<char*>(node + 1);
    std::memcpy(text, device->name.c_str(), name);
    *node = {.next = head, .ca_name = text};
    head = node;
  }
  return head;
}

int fill_ca(const DeviceFacts& device, umad_ca_t& ca) {
  ca = {};
  put_text(ca.ca_name, device.name);
  put_text(ca.fw_ver, device.firmware);
  put_text(ca.ca_type, device.type);
  put_text(ca.hw_ver, device.hardware);
  ca.node_type = device.node_type;
  ca.node_guid = htobe64(device.node_guid);
  ca.system_guid = htobe64(device.system_guid);
  for (const PortFacts& facts : device.ports) {
    if (facts.number < 0 || facts.number >= UMAD_CA_MAX_PORTS) continue;
    auto* const port = static_cast<umad_port_t*>(std::calloc(1, sizeof(umad_port_t)));
    if (port == nullptr) return -ENOMEM;
    ca.ports[facts.number] = port;
    ca.numports = std::max(ca.numports, facts.number);
    if (const int error = fill_port(device, facts, *port); error != 0) return error;
  }
  return 0;
}

}  // namespace

extern "C" {

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max) try {
  int count = 0;
  for (const DeviceFacts& device : umad::devices())
    if (count < max) put_text(cas[count++], device.name);
  return count;
} catch (...) {
  return -verbena::abi::errno_of_exception();
}

umad_device_node* umad_get_ca_device_list() try {
  const std::vector<DeviceFacts> devices = umad::devices();
  errno = devices.empty() ? 0 : errno;
  return list_of(devices);
} catch (...) {
  return verbena::abi::fail_by_exception<umad_device_node*>();
}

void umad_free_ca_device_list(umad_device_node* head) noexcept {
  while (head != nullptr) {
    umad_device_node* const next = head->next;
    std::free(head);
    head = next;
  }
}

// They are in the order of their names already.
int umad_sort_ca_device_list(umad_device_node** head, size_t /*size*/) noexcept {
  return head == nullptr ? EINVAL : 0;
}

int umad_get_ca_portguids(const char* ca_name, __be64* portguids, int max) try {
  const std::optional<DeviceFacts> device = device_named(ca_name);
  if (!device) return -ENODEV;
  const int count = device->ports.empty() ? 0 : device->ports.back().number + 1;
  if (portguids == nullptr) return count;
  if (max < count) return -ENOMEM;
  std::fill_n(portguids, count, 0);
  for (const PortFacts& port : device->ports) portguids[port.number] = htobe64(port.guid);
  return count;
} catch (...) {
  return -verbena::abi::errno_of_exception();
}

int umad_get_issm_path(const char* ca_name, int portnum, char path[], int max) try {
  constexpr const char* kPath = "/dev/null";  // IsSM follows from what a program registers for
  const std::optional<DeviceFacts> device = device_named(ca_name);
  if (!device || port_numbered(*device, portnum) == nullptr) return -ENODEV;
  if (max <= static_cast<int>(std::strlen(kPath))) return -ENAMETOOLONG;
  std::strcpy(path, kPath);
  return 0;
} catch (...) {
  return -verbena::abi::errno_of_exception();
}

int umad_get_port(const char* ca_name, int portnum, umad_port_t* port) try {
  const std::optional<DeviceFacts> device = device_named(ca_name);
  const PortFacts* const facts = device ? port_numbered(*device, portnum) : nullptr;
  return facts == nullptr ? -ENODEV : fill_port(*device, *facts, *port);
} catch (...) {
  return -verbena::abi::errno_of_exception();
}

int umad_release_port(umad_port_t* port) noexcept {
  std::free(port->pkeys);
  port->pkeys = nullptr;
  port->pkeys_size = 0;
  return 0;
}

int umad_get_ca(const char* ca_name, umad_ca_t* ca) try {
  const std::optional<DeviceFacts> device = device_named(ca_name);
  if (!device) return -ENODEV;
  const int error = fill_ca(*device, *ca);
  if (error != 0) (void)umad_release_ca(ca);
  return error;
} catch (...) {
  return -verbena::abi::errno_of_exception();
}

int umad_release_ca(umad_ca_t* ca) noexcept {
  for (umad_port_t*& port : ca->ports) {
    if (port == nullptr) continue;
    (void)umad_release_port(port);
    std::free(port);
    port = nullptr;
  }
  return 0;
}

}  // extern "C"
