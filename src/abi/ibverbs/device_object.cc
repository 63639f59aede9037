#include "abi/ibverbs/device_object.h"

#include <cstdlib>
#include <span>
#include <string>

#include "host/settings/link_kind.h"

namespace verbena::abi {
namespace {

void copy_text(std::span<char> to, const std::string& text) {
  to[text.copy(to.data(), to.size() - 1)] = '\0';
}

std::string number_of(const std::string& name) {
  return name.substr(name.find_last_not_of("0123456789") + 1);
}

}  // namespace

DeviceObject::DeviceObject(const host::LocalAddress& local_address) : address(local_address) {
  const bool is_iwarp = host::transport_from_environment() == Transport::kIWARP;
  verbs.node_type = is_iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
  verbs.transport_type = is_iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  const std::string uverbs = "uverbs" + number_of(address.device_name);
  copy_text(verbs.name, address.device_name);
  copy_text(verbs.dev_name, uverbs);
  copy_text(verbs.dev_path, "/sys/class/infiniband_verbs/" + uverbs);
  copy_text(verbs.ibdev_path, "/sys/class/infiniband/" + address.device_name);
}

int DeviceObject::index() const { return std::atoi(number_of(address.device_name).c_str()); }

}  // namespace verbena::abi
