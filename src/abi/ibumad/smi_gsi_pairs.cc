// libibumad's calls of rdma-core 52 and later (IBUMAD_1.3, IBUMAD_1.4) about cards whose subnet
// management (SMI) and general services (GSI) belong to two devices. A device of ours has both.
//
// Headers of older releases do not declare these calls, so the types here are our own. Each
// function has a C++ name of its own and the C name as its symbol.
#include <infiniband/umad.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "abi/ibumad/device_facts.h"
#include "abi/ibverbs/exceptions.h"

using namespace verbena;
namespace umad = verbena::abi::umad;
using umad::DeviceFacts;
using umad::PortFacts;

namespace {

struct CAPair {                     // struct umad_ca_pair
  char smi_name[UMAD_CA_NAME_LEN];  // "": the device has no SMI
  u32 smi_preferred_port;
  char gsi_name[UMAD_CA_NAME_LEN];
  u32 gsi_preferred_port;
};
static_assert(sizeof(CAPair) == 48);

constexpr u32 kActive = 4;  // PortInfo.PortState

// Only an InfiniBand port has QP 0.
bool has_smi(const PortFacts& port) { return port.link_layer != "Ethernet"; }

// The port of that number; for UMAD_ANY_PORT the first active one, else the first.
const PortFacts* preferred_port(const DeviceFacts& device, int number) {
  const auto find = [&device](auto&& is_wanted) -> const PortFacts* {
    const auto found = std::ranges::find_if(device.ports, is_wanted);
    return found == device.ports.end() ? nullptr : &*found;
  };
  if (number != UMAD_ANY_PORT)
    return find([number](const PortFacts& port) { return port.number == number; });
  const PortFacts* const active = find([](const PortFacts& port) { return port.state == kActive; });
  return active != nullptr ? active : find([](const PortFacts&) { return true; });
}

std::optional<CAPair> pair_of(const DeviceFacts& device, int port_number) {
  const PortFacts* const port = preferred_port(device, port_number);
  if (port == nullptr) return std::nullopt;
  CAPair pair{};
  device.name.copy(pair.gsi_name, UMAD_CA_NAME_LEN - 1);
  pair.gsi_preferred_port = static_cast<u32>(port->number);
  if (!has_smi(*port)) return pair;
  device.name.copy(pair.smi_name, UMAD_CA_NAME_LEN - 1);
  pair.smi_preferred_port = pair.gsi_preferred_port;
  return pair;
}

bool is_named(const DeviceFacts& device, const char* name) {
  return name == nullptr || *name == 0 || device.name == name;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-redundant-declaration)
int open_smi_port(const char* ca_name, int portnum) noexcept asm("umad_open_smi_port");
int get_smi_gsi_pairs(CAPair* pairs, size_t max) asm("umad_get_smi_gsi_pairs");
int get_smi_gsi_pair(const char* name, u8 portnum, CAPair* pair,
                     unsigned enforce_smi) asm("umad_get_smi_gsi_pair_by_ca_name");
// NOLINTEND(readability-redundant-declaration)

int open_smi_port(const char* ca_name, int portnum) noexcept {
  return umad_open_port(ca_name, portnum);
}

// Returns the number of pairs, at most `max`.
int get_smi_gsi_pairs(CAPair* pairs, size_t max) try {
  if (pairs == nullptr) return -EINVAL;
  size_t count = 0;
  for (const DeviceFacts& device : umad::devices()) {
    const std::optional<CAPair> pair = pair_of(device, UMAD_ANY_PORT);
    if (pair && count < max) pairs[count++] = *pair;
  }
  return static_cast<int>(count);
} catch (...) {
  return -verbena::abi::errno_of_exception();
}

// Without a name: the first device that has the port. `enforce_smi` passes over devices without
// SMI.
int get_smi_gsi_pair(const char* name, u8 portnum, CAPair* pair, unsigned enforce_smi) try {
  if (pair == nullptr) return -EINVAL;
  for (const DeviceFacts& device : umad::devices()) {
    if (!is_named(device, name)) continue;
    const std::optional<CAPair> found = pair_of(device, portnum);
    if (!found || (enforce_smi != 0 && found->smi_name[0] == 0)) continue;
    *pair = *found;
    return 0;
  }
  return -ENODEV;
} catch (...) {
  return -verbena::abi::errno_of_exception();
}

}  // extern "C"
