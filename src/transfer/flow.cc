#include "transfer/flow.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbena::transfer {

Expected<void> Flow::start(TransferOrder order) {
  CHECK(find(order.id) == nullptr);
  if (transfers_.size() >= limits_.transfers)
    return tl::unexpected(std::to_string(limits_.transfers) + " transfers are in progress");
  if (order.copies.size() > limits_.copies - copies_)
    return tl::unexpected("more than " + std::to_string(limits_.copies) +
                          " blocks are in progress");
  copies_ += order.copies.size();
  auto transfer = std::make_unique<Transfer>();
  transfer->order = std::move(order);
  transfers_.push_back(std::move(transfer));
  finish_if_over(*transfers_.back());
  return {};
}

void Flow::advance(u32 transfer, u64 ready_bytes) {
  Transfer* const found = find(transfer);
  if (found == nullptr) return;
  found->order.ready_bytes = std::max(found->order.ready_bytes, ready_bytes);
}

void Flow::cancel(u32 transfer) {
  if (Transfer* const found = find(transfer)) end(*found, Result::kCancelled, "");
}

void Flow::fail(u32 transfer, const std::string& why) {
  if (Transfer* const found = find(transfer)) end(*found, Result::kFailed, why);
}

void Flow::on_lane_up(u32 lane, u32 notify_credits) {
  Lane& up = lanes_[lane];
  up.notify_credits = notify_credits;
  up.state = up.has_failed ? LaneState::kProbation : LaneState::kUp;
}

void Flow::add_notify_credits(u32 lane, u32 credits) { lanes_[lane].notify_credits += credits; }

void Flow::pause_lane(u32 lane) { lanes_[lane].state = LaneState::kDown; }

void Flow::on_lane_down(u32 lane) {
  Lane& down = lanes_[lane];
  down.state = LaneState::kDown;
  down.has_failed = true;
  down.is_locally_over = false;
  down.bytes = 0;
  down.first_sequence = down.next_sequence;
  for (const Sent& sent : std::exchange(down.sent, {})) {
    if (sent.transfer == nullptr) continue;
    Transfer& transfer = *sent.transfer;
    --transfer.outstanding;
    if (sent.is_notify)
      transfer.notify_again = true;
    else
      transfer.again.push_back(sent.copy);
    finish_if_over(transfer);
  }
}

void Flow::on_local_end(u32 lane) {
  lanes_[lane].is_locally_over = true;
  std::vector<Transfer*> ending;
  for (const auto& transfer : transfers_)
    if (transfer->ending) ending.push_back(transfer.get());
  for (Transfer* const transfer : ending) abandon(*transfer);
}

// Takes what cannot change memory any more out of the count of a transfer that ends. Its WRITEs may
// still change the peer's memory.
void Flow::abandon(Transfer& transfer) {
  const bool reads = transfer.order.operation == Operation::kRead;
  for (Lane& lane : lanes_) {
    if (!lane.is_locally_over) continue;
    for (Sent& sent : lane.sent) {
      if (sent.transfer != &transfer || !(reads || sent.is_notify)) continue;
      sent.transfer = nullptr;
      --transfer.outstanding;
    }
  }
  finish_if_over(transfer);
}

void Flow::on_complete(u32 lane, u64 sequence) {
  Lane& done = lanes_[lane];
  if (sequence < done.first_sequence || sequence >= done.next_sequence) return;
  done.has_failed = false;
  if (done.state == LaneState::kProbation) done.state = LaneState::kUp;
  while (!done.sent.empty() && done.first_sequence <= sequence) retire(done);
}

void Flow::fail_all(const std::string& why) {
  for (Lane& lane : lanes_) {
    lane.state = LaneState::kDown;
    lane.is_locally_over = false;
    lane.bytes = 0;
    lane.first_sequence = lane.next_sequence;
    lane.sent.clear();
  }
  for (const auto& transfer : transfers_)
    outcomes_.push_back({.transfer = transfer->order.id, .result = Result::kFailed, .why = why});
  transfers_.clear();
  copies_ = 0;
  next_turn_ = 0;
}

std::optional<Request> Flow::poll_request() {
  const std::optional<u32> for_copy = choose_lane(0);
  if (!for_copy) return std::nullopt;
  const std::optional<u32> for_notify = choose_lane(1);
  Transfer* const transfer = choose_transfer(for_notify.has_value());
  if (transfer == nullptr) return std::nullopt;
  const std::optional<u32> number = transfer->has_copies() ? for_copy : for_notify;
  Lane& lane = lanes_[*number];
  Request request{
      .lane = *number, .transfer = transfer->order.id, .sequence = lane.next_sequence++};
  if (transfer->has_copies()) {
    request.kind = transfer->order.operation == Operation::kRead ? Request::Kind::kRead
                                                                 : Request::Kind::kWrite;
    request.copy = take_piece(*transfer);
  } else {
    request.kind = Request::Kind::kNotify;
    --lane.notify_credits;
    transfer->notify_sent = true;
    transfer->notify_again = false;
  }
  ++transfer->outstanding;
  lane.bytes += request.copy.length;
  lane.sent.push_back({transfer, request.copy, request.kind == Request::Kind::kNotify});
  return request;
}

std::optional<Outcome> Flow::poll_outcome() {
  if (outcomes_.empty()) return std::nullopt;
  Outcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

std::optional<u32> Flow::transfer_of(u32 lane, u64 sequence) const {
  const Lane& of = lanes_[lane];
  if (sequence < of.first_sequence || sequence >= of.next_sequence) return std::nullopt;
  const Transfer* const transfer = of.sent[sequence - of.first_sequence].transfer;
  if (transfer == nullptr) return std::nullopt;
  return transfer->order.id;
}

Flow::Transfer* Flow::find(u32 id) {
  const auto found = std::ranges::find_if(
      transfers_, [id](const auto& transfer) { return transfer->order.id == id; });
  return found == transfers_.end() ? nullptr : found->get();
}

bool Flow::has_room(const Lane& lane) const {
  switch (lane.state) {
    case LaneState::kDown: return false;
    case LaneState::kProbation: return lane.sent.empty();
    case LaneState::kUp:
      return lane.sent.empty() || (lane.sent.size() < limits_.requests_per_lane &&
                                   lane.bytes + limits_.piece_bytes <= limits_.window_bytes);
  }
  CHECK_UNREACHABLE();
}

// The lane with the fewest bytes outstanding.
std::optional<u32> Flow::choose_lane(u32 least_credits) const {
  std::optional<u32> best;
  for (u32 lane = 0; lane < kMaxLanes; ++lane)
    if (has_room(lanes_[lane]) && lanes_[lane].notify_credits >= least_credits &&
        (!best || lanes_[lane].bytes < lanes_[*best].bytes))
      best = lane;
  return best;
}

// Returns the next transfer in turn among those with the highest priority.
Flow::Transfer* Flow::choose_transfer(bool with_notify) {
  const std::size_t count = transfers_.size();
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (next_turn_ + i) % count;
    const Transfer& transfer = *transfers_[at];
    const bool is_ready = !transfer.ending &&
                          (transfer.has_ready_copies() || (with_notify && transfer.wants_notify()));
    if (is_ready && (!best || transfer.order.priority > transfers_[*best]->order.priority))
      best = at;
  }
  if (!best) return nullptr;
  next_turn_ = *best + 1;
  return transfers_[*best].get();
}

Copy Flow::take_piece(Transfer& transfer) {
  if (!transfer.again.empty()) {
    const Copy copy = transfer.again.back();
    transfer.again.pop_back();
    return copy;
  }
  Copy copy = transfer.order.copies[transfer.next_copy];
  copy.local += transfer.offset;
  copy.remote += transfer.offset;
  copy.length = std::min({copy.length - transfer.offset, u64{limits_.piece_bytes},
                          transfer.order.ready_bytes - transfer.taken});
  transfer.offset += copy.length;
  transfer.taken += copy.length;
  if (transfer.offset == transfer.order.copies[transfer.next_copy].length) {
    ++transfer.next_copy;
    transfer.offset = 0;
  }
  return copy;
}

void Flow::end(Transfer& transfer, Result result, std::string why) {
  if (transfer.ending) return;
  transfer.ending = result;
  transfer.why = std::move(why);
  abandon(transfer);
}

void Flow::finish_if_over(Transfer& transfer) {
  if (!transfer.is_over()) return;
  outcomes_.push_back({.transfer = transfer.order.id,
                       .result = transfer.ending.value_or(Result::kDone),
                       .why = std::move(transfer.why)});
  copies_ -= transfer.order.copies.size();
  std::erase_if(transfers_, [&](const auto& other) { return other.get() == &transfer; });
  if (next_turn_ >= transfers_.size()) next_turn_ = 0;
}

void Flow::retire(Lane& lane) {
  const Sent sent = lane.sent.front();
  lane.sent.pop_front();
  ++lane.first_sequence;
  lane.bytes -= sent.copy.length;
  retired_bytes_ += sent.copy.length;
  if (sent.transfer == nullptr) return;
  --sent.transfer->outstanding;
  finish_if_over(*sent.transfer);
}

}  // namespace verbena::transfer
