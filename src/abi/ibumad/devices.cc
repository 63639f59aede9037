// libibumad's calls about devices and their ports: there is one, verbena0, with one port, on the
// host of the fabric that this process is on.
#include <infiniband/umad.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "abi/ibumad/port_table.h"

using namespace verbena;

namespace {

constexpr const char* kDevice = "verbena0";

bool is_own(const char* name) {
  return name == nullptr || *name == 0 || std::strcmp(name, kDevice) == 0;
}

template <std::size_t N>
void put_text(char (&to)[N], const char* text) {
  std::strncpy(to, text, N - 1);
  to[N - 1] = 0;
}

// In Gb/s, as the kernel's `rate` says it. Lanes of 2.5 Gb/s and their multiples.
unsigned rate_of(const host::FabricPortAttributes& port) {
  const unsigned lanes = port.width == 1 ? 1 : port.width == 2 ? 4 : port.width == 4 ? 8 : 12;
  switch (port.ext_speed) {
    case 1: return lanes * 14;
    case 2: return lanes * 25;
    case 4: return lanes * 50;
    case 8: return lanes * 100;
    default: return lanes * 5 * port.speed / 2;
  }
}

int fill_port(const host::FabricPortAttributes& attributes, umad_port_t& port) {
  port = {};
  put_text(port.ca_name, kDevice);
  put_text(port.link_layer, "InfiniBand");
  port.portnum = abi::umad::kOnlyPort;
  port.base_lid = attributes.lid;
  port.lmc = attributes.lmc;
  port.sm_lid = attributes.sm_lid;
  port.sm_sl = attributes.sm_sl;
  port.state = attributes.state;
  port.phys_state = attributes.physical_state;
  port.rate = rate_of(attributes);
  port.capmask = htobe32(attributes.capability_mask);
  port.gid_prefix = htobe64(attributes.gid_prefix);
  port.port_guid = htobe64(attributes.port_guid);
  port.pkeys_size = host::kMaxPKeys;
  port.pkeys = static_cast<u16*>(std::calloc(host::kMaxPKeys, sizeof(u16)));
  if (port.pkeys == nullptr) return -ENOMEM;
  std::ranges::copy(attributes.p_keys, port.pkeys);
  return 0;
}

}  // namespace

extern "C" {

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max) {
  if (max < 1 || !abi::umad::own_attributes()) return 0;
  put_text(cas[0], kDevice);
  return 1;
}

umad_device_node* umad_get_ca_device_list() {
  if (!abi::umad::own_attributes()) {
    errno = 0;
    return nullptr;
  }
  // One allocation: the name lies behind the node.
  const std::size_t name = std::strlen(kDevice) + 1;
  auto* const node = static_cast<umad_device_node*>(std::malloc(sizeof(umad_device_node) + name));
  if (node == nullptr) return nullptr;
  char* const text = reinterpret_cast<char*>(node + 1);
  std::memcpy(text, kDevice, name);
  *node = {.next = nullptr, .ca_name = text};
  return node;
}

void umad_free_ca_device_list(umad_device_node* head) { std::free(head); }

// There are never two.
int umad_sort_ca_device_list(umad_device_node** head, size_t /*size*/) {
  return head == nullptr ? EINVAL : 0;
}

int umad_get_ca_portguids(const char* ca_name, __be64* portguids, int max) {
  if (!is_own(ca_name)) return -ENODEV;
  const auto attributes = abi::umad::own_attributes();
  if (!attributes) return -ENODEV;
  if (portguids == nullptr) return abi::umad::kOnlyPort + 1;
  if (max < abi::umad::kOnlyPort + 1) return -ENOMEM;
  portguids[0] = 0;
  portguids[abi::umad::kOnlyPort] = htobe64(attributes->port_guid);
  return abi::umad::kOnlyPort + 1;
}

int umad_get_issm_path(const char* ca_name, int portnum, char path[], int max) {
  constexpr const char* kPath = "/dev/null";  // IsSM follows from what a program registers for
  if (!is_own(ca_name) || (portnum != UMAD_ANY_PORT && portnum != abi::umad::kOnlyPort))
    return -ENODEV;
  if (max <= static_cast<int>(std::strlen(kPath))) return -ENAMETOOLONG;
  std::strcpy(path, kPath);
  return 0;
}

int umad_get_port(const char* ca_name, int portnum, umad_port_t* port) {
  if (!is_own(ca_name) || (portnum != UMAD_ANY_PORT && portnum != abi::umad::kOnlyPort))
    return -ENODEV;
  const auto attributes = abi::umad::own_attributes();
  return attributes ? fill_port(*attributes, *port) : -ENODEV;
}

int umad_release_port(umad_port_t* port) {
  std::free(port->pkeys);
  port->pkeys = nullptr;
  port->pkeys_size = 0;
  return 0;
}

int umad_get_ca(const char* ca_name, umad_ca_t* ca) {
  if (!is_own(ca_name)) return -ENODEV;
  const auto attributes = abi::umad::own_attributes();
  if (!attributes) return -ENODEV;
  *ca = {};
  put_text(ca->ca_name, kDevice);
  put_text(ca->fw_ver, "1");
  put_text(ca->ca_type, "Verbena");
  put_text(ca->hw_ver, "0");
  ca->node_type = 1;
  ca->numports = abi::umad::kOnlyPort;
  ca->node_guid = ca->system_guid = htobe64(attributes->node_guid);
  auto* const port = static_cast<umad_port_t*>(std::calloc(1, sizeof(umad_port_t)));
  if (port == nullptr) return -ENOMEM;
  ca->ports[abi::umad::kOnlyPort] = port;
  return fill_port(*attributes, *port);
}

int umad_release_ca(umad_ca_t* ca) {
  for (umad_port_t*& port : ca->ports) {
    if (port == nullptr) continue;
    (void)umad_release_port(port);
    std::free(port);
    port = nullptr;
  }
  return 0;
}

}  // extern "C"
