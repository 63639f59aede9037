// Options, and events of the program's own. rdma_set_option(3), rdma_write_cm_event(3).
#include <cstring>

#include "abi/rdmacm/id_object.h"
#include "abi/rdmacm/newer_cma.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

constexpr u8 kMaxAckTimeout = 31;  // 5 bits

// Returns nullopt if `size` is not the size of the option.
template <typename T>
std::optional<T> value_of(const void* value, std::size_t size) {
  if (size != sizeof(T)) return std::nullopt;
  T copy;
  std::memcpy(&copy, value, sizeof copy);
  return copy;
}

int set_traffic_class(IdObject& id, std::optional<u8> value) {
  if (!value) return fail(EINVAL);
  id.options.traffic_class = *value;
  id.path.traffic_class = *value;
  return 0;
}

int set_reuse_address(IdObject& id, std::optional<int> value) {
  if (!value || (*value == 0 && id.state != IdState::kIdle)) return fail(EINVAL);
  if (id.state == IdState::kListening) return fail(EINVAL);
  id.options.reuse_address = *value != 0;
  return 0;
}

int set_only_own_family(IdObject& id, std::optional<int> value) {
  if (!value || id.state != IdState::kIdle) return fail(EINVAL);
  id.options.only_own_family = *value != 0;
  return 0;
}

int set_ack_timeout(IdObject& id, std::optional<u8> value) {
  if (!value || *value > kMaxAckTimeout) return fail(EINVAL);
  if (id.qp_type != IBV_QPT_RC && id.qp_type != IBV_QPT_XRC_SEND) return fail(EINVAL);
  id.options.ack_timeout = *value;
  if (*value != 0) id.path.packet_life_time = static_cast<u8>(*value - 1);
  return 0;
}

}  // namespace
}  // namespace verbena::rdmacm

using namespace verbena;
using namespace verbena::rdmacm;

int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t size) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (value == nullptr || level != RDMA_OPTION_ID) return fail(value == nullptr ? EINVAL : ENOSYS);
  switch (name) {
    case RDMA_OPTION_ID_TOS: return set_traffic_class(self, value_of<u8>(value, size));
    case RDMA_OPTION_ID_REUSEADDR: return set_reuse_address(self, value_of<int>(value, size));
    case RDMA_OPTION_ID_AFONLY: return set_only_own_family(self, value_of<int>(value, size));
    case RDMA_OPTION_ID_ACK_TIMEOUT: return set_ack_timeout(self, value_of<u8>(value, size));
    default: return fail(ENOSYS);
  }
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_write_cm_event(rdma_cm_id* id, rdma_cm_event_type event, int status, uint64_t arg) try {
  if (id == nullptr) return fail(EINVAL);
  if (static_cast<int>(event) != kEventUser) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  auto made = std::make_unique<EventObject>(self, kEventUser, status);
  std::memcpy(&made->param, &arg, sizeof arg);
  self.push(std::move(made));
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}
