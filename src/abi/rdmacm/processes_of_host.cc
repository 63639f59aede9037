#include "abi/rdmacm/processes_of_host.h"

#include <algorithm>

#include "host/cm/port_directory.h"
#include "host/sharing/directory.h"
#include "host/sharing/process_channel.h"

namespace verbena::rdmacm {
namespace {

host::PortTable bound_ports() {
  const auto ports = host::PortDirectory::open();
  return ports ? ports->read() : host::PortTable();
}

bool is_member(const GID& address) {
  const auto directory = host::Directory::open();
  if (!directory) return false;
  const auto members = directory->read().members;
  return std::ranges::any_of(members, [&](const host::Membership& member) {
    return member.address == address && host::ProcessChannel::is_alive(member.slot);
  });
}

}  // namespace

bool has_a_device(const GID& address) {
  return is_member(address) ||
         std::ranges::any_of(bound_ports().slots_at(address), host::ProcessChannel::is_alive);
}

std::vector<GID> addresses_of_listeners(ServiceId service) {
  const host::PortTable ports = bound_ports();
  std::vector<GID> addresses;
  for (const host::PortRecord& record : ports.records())
    if (record.listening && record.service == service &&
        host::ProcessChannel::is_alive(record.slot))
      addresses.push_back(record.address);
  return addresses;
}

}  // namespace verbena::rdmacm
