#include "transfer/node_flow.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::transfer {
namespace {

// Outstanding notifications of a lane. Their slots are used again after as many requests, which are
// more than a lane has outstanding.
constexpr u32 kNoticeCredits = 64, kNoticesOfLane = 1024;

}  // namespace

u64 read_tag(std::span<const u8> bytes) {
  u64 tag = 0;
  for (const u8 byte : bytes.first(NodeFlow::kTagBytes)) tag = tag << 8 | byte;
  return tag;
}

NodeFlow::NodeFlow(application::Node& node, const FlowLimits& limits) : node_(node), flow_(limits) {
  CHECK(limits.requests_per_lane < kNoticesOfLane);
}

NodeFlow::~NodeFlow() {
  for (const Lane& lane : lanes_) node_.deregister(lane.slots);
}

u32 NodeFlow::add_local_region(u32 l_key) {
  local_keys_.push_back(l_key);
  return static_cast<u32>(local_keys_.size()) - 1;
}

u32 NodeFlow::add_remote_region(u32 r_key) {
  remote_keys_.push_back(r_key);
  return static_cast<u32>(remote_keys_.size()) - 1;
}

void NodeFlow::add_lane(application::ConnectionId connection) {
  const u32 lane = static_cast<u32>(lanes_.size());
  CHECK(lane < Flow::kMaxLanes);
  const auto slots = node_.allocate(u64{kNoticesOfLane} * kTagBytes, application::Content::kBytes,
                                    application::Access::kLocal);
  CHECK(slots.has_value());
  lanes_.push_back({.connection = connection, .slots = *slots});
  lane_of_[connection] = lane;
  flow_.on_lane_up(lane, kNoticeCredits);
}

Expected<void> NodeFlow::start(TransferOrder order, u64 tag) {
  const u32 id = order.id;
  if (order.notifies) tags_[id] = tag;
  auto started = flow_.start(std::move(order));
  if (!started) tags_.erase(id);
  return started;
}

// A READ may complete after a WRITE that was posted later, so requests are counted as complete when
// all before them are.
bool NodeFlow::on_event(const application::Event& event) {
  const auto found = lane_of_.find(event.connection);
  if (found == lane_of_.end()) return false;
  Lane& lane = lanes_[found->second];
  if (event.kind == application::Event::Kind::kClosed) {
    lane.posted.clear();
    flow_.on_lane_down(found->second);
    return true;
  }
  if (event.kind != application::Event::Kind::kDone) return false;
  const auto done = std::ranges::find_if(lane.posted, [&](const Posted& posted) {
    return static_cast<u32>(posted.sequence) == event.id;
  });
  CHECK(done != lane.posted.end());
  done->is_done = true;
  while (!lane.posted.empty() && lane.posted.front().is_done) {
    flow_.on_complete(found->second, lane.posted.front().sequence);
    if (lane.posted.front().is_notify) flow_.add_notify_credits(found->second, 1);
    lane.posted.pop_front();
  }
  return true;
}

void NodeFlow::pump() {
  while (const auto request = flow_.poll_request()) post(*request);
}

void NodeFlow::post(const Request& request) {
  Lane& lane = lanes_[request.lane];
  const bool is_notify = request.kind == Request::Kind::kNotify;
  lane.posted.push_back({.sequence = request.sequence, .is_notify = is_notify});
  application::Work work{.id = static_cast<u32>(request.sequence)};
  application::Slice local;
  if (is_notify) {
    const u64 offset = request.sequence % kNoticesOfLane * kTagBytes;
    const u64 tag = tags_.at(request.transfer);
    for (u32 i = 0; i < kTagBytes; ++i)
      lane.slots.bytes[offset + i] = static_cast<u8>(tag >> (8 * (kTagBytes - 1 - i)));
    local = {lane.slots.address + offset, kTagBytes, lane.slots.l_key};
  } else {
    work.operation = request.kind == Request::Kind::kRead ? application::Operation::kRead
                                                          : application::Operation::kWrite;
    local = {request.copy.local, static_cast<u32>(request.copy.length),
             local_keys_[request.copy.local_region]};
    work.remote_address = request.copy.remote;
    work.r_key = remote_keys_[request.copy.remote_region];
  }
  work.local = std::span(&local, 1);
  node_.post(lane.connection, work);
}

std::optional<Outcome> NodeFlow::poll_outcome() {
  auto outcome = flow_.poll_outcome();
  if (outcome) tags_.erase(outcome->transfer);
  return outcome;
}

}  // namespace verbena::transfer
