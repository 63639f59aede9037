#include "connect/listener_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace verbena {
namespace {

bool serves(const ListenParams& params, ServiceId service_id, const GID& local_gid) {
  if (((params.service_id.value ^ service_id.value) & params.service_mask.value) != 0) return false;
  if (params.local_gid && *params.local_gid != local_gid) return false;
  switch (params.family) {
    case ListenFamily::kAny: return true;
    case ListenFamily::kIPv4: return local_gid.is_ipv4();
    case ListenFamily::kIPv6: return !local_gid.is_ipv4();
  }
  CHECK_UNREACHABLE();
}

// Larger: more specific. Two listeners with equal values ask for different requests, so no request
// matches both.
int particularity(const ListenParams& params) {
  constexpr int kAddress = 256, kFamily = 128;  // above 64 bits of mask
  return (params.local_gid ? kAddress : 0) + (params.family != ListenFamily::kAny ? kFamily : 0) +
         std::popcount(params.service_mask.value);
}

bool same_place(const ListenParams& a, const ListenParams& b) {
  return a.service_mask == b.service_mask &&
         ((a.service_id.value ^ b.service_id.value) & a.service_mask.value) == 0 &&
         a.local_gid == b.local_gid && a.family == b.family;
}

}  // namespace

Result<ListenerId> ListenerTable::add(const ListenParams& params) {
  for (const Listener& listener : listeners_)
    if (same_place(listener.params, params)) return failure(Status::kBusy);
  if (listeners_.size() >= capacity_) return failure(Status::kNoMemory);
  listeners_.push_back({.id = ListenerId{next_id_++}, .params = params});
  return listeners_.back().id;
}

Status ListenerTable::remove(ListenerId id) {
  const auto is_it = [id](const Listener& listener) { return listener.id == id; };
  return std::erase_if(listeners_, is_it) != 0 ? Status::kOk : Status::kNotFound;
}

Listener* ListenerTable::find(ServiceId service_id, const GID& local_gid) {
  Listener* best = nullptr;
  for (Listener& listener : listeners_) {
    if (!serves(listener.params, service_id, local_gid)) continue;
    if (best == nullptr || particularity(listener.params) > particularity(best->params))
      best = &listener;
  }
  return best;
}

Listener* ListenerTable::find(ListenerId id) {
  const auto it = std::ranges::find(listeners_, id, &Listener::id);
  return it == listeners_.end() ? nullptr : &*it;
}

}  // namespace verbena
