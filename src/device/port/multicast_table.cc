#include "device/port/multicast_table.h"

#include <algorithm>

namespace verbena {

std::size_t MulticastTable::place_of(const GID& group) const {
  const auto at = std::ranges::lower_bound(groups_, group.bytes, {},
                                           [](const Group& known) { return known.gid.bytes; });
  return static_cast<std::size_t>(at - groups_.begin());
}

std::span<QueuePair* const> MulticastTable::find(const GID& group) const {
  const std::size_t place = place_of(group);
  if (!is_at(place, group)) return {};
  return groups_[place].qps;
}

Status MulticastTable::attach(QueuePair& qp, const GID& group) {
  const std::size_t place = place_of(group);
  if (!is_at(place, group)) {
    if (groups_.size() >= limits_.groups || limits_.qps_of_group == 0) return Status::kNoMemory;
    groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(place),
                   Group{.gid = group, .qps = {&qp}});
    return Status::kOk;
  }
  std::vector<QueuePair*>& qps = groups_[place].qps;
  if (std::ranges::find(qps, &qp) != qps.end()) return Status::kOk;
  if (qps.size() >= limits_.qps_of_group) return Status::kNoMemory;
  qps.push_back(&qp);
  return Status::kOk;
}

Status MulticastTable::detach(QueuePair& qp, const GID& group) {
  const std::size_t place = place_of(group);
  if (!is_at(place, group) || std::erase(groups_[place].qps, &qp) == 0)
    return Status::kInvalidArgument;
  if (groups_[place].qps.empty())
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(place));
  return Status::kOk;
}

std::optional<GID> MulticastTable::group_of(const QueuePair& qp) const {
  for (const Group& group : groups_)
    if (std::ranges::find(group.qps, &qp) != group.qps.end()) return group.gid;
  return std::nullopt;
}

}  // namespace verbena
