// Flow: the transfers from this agent to one peer, spread over lanes. A lane is one path: a queue
// pair on one device, or a simulated connection. The flow decides which request goes next by which
// lane, counts completions, and gives the requests of a dead lane to the others.
//
// Sans-IO: transfers and completions go in by calls; requests and outcomes are polled out. Same
// calls in the same order give the same outputs. One owner; not thread-safe.
// Contract: after any call, drain poll_request() and poll_outcome().
// Every request is signaled. A lane completes its requests in order.
// Requests are idempotent, so a request of a dead lane may be executed twice. The owner calls
// on_lane_down() only when no packet of the old path can change memory any more.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transfer/list.h"

namespace verbena::transfer {

enum class Operation : u8 { kRead, kWrite };

struct FlowLimits {
  u32 transfers = 1024;              // that are not finished
  u64 copies = u64{1} << 20;         // of all of them together
  u32 requests_per_lane = 128;       // outstanding
  u64 window_bytes = u64{16} << 20;  // outstanding by one lane; one request always fits
  u32 piece_bytes = u32{1} << 20;    // of one request
};

struct Request {
  enum class Kind : u8 { kRead, kWrite, kNotify };
  Kind kind = Kind::kRead;
  u32 lane = 0;
  u32 transfer = 0;
  u64 sequence = 0;  // on its lane, from 0
  Copy copy{};       // kNotify: empty
  friend bool operator==(const Request&, const Request&) = default;
};

enum class Result : u8 { kDone, kCancelled, kFailed };

struct Outcome {
  u32 transfer = 0;
  Result result = Result::kDone;
  std::string why{};  // of kFailed
};

struct TransferOrder {
  u32 id = 0;  // not that of a transfer in progress
  Operation operation = Operation::kRead;
  std::vector<Copy> copies{};
  u8 priority = 0;            // the higher first; equal ones share the lanes
  bool notifies = false;      // a kNotify request follows when all copies are complete
  u64 ready_bytes = ~u64{0};  // of the copies, in order; later ones wait for advance()
};

class Flow {
 public:
  static constexpr u32 kMaxLanes = 32;

  explicit Flow(const FlowLimits& limits) : limits_(limits) {}

  // Fails if a limit is reached: the caller waits for an outcome and tries again.
  [[nodiscard]] Expected<void> start(TransferOrder order);
  // Allows the first `ready_bytes` bytes of its copies, in order, to be issued. A smaller value
  // than before has no effect.
  void advance(u32 transfer, u64 ready_bytes);
  // Issues nothing more of it. Its outcome comes when its outstanding requests are complete, or
  // cannot change memory any more.
  void cancel(u32 transfer);
  // Like cancel(), but the outcome is kFailed.
  void fail(u32 transfer, const std::string& why);

  // The lane takes requests, and so many notifications. A lane that was down takes one request at a
  // time until one succeeds.
  void on_lane_up(u32 lane, u32 notify_credits);
  void add_notify_credits(u32 lane, u32 credits);
  // No request for the lane for now; what is outstanding may still complete.
  void pause_lane(u32 lane);
  void on_lane_down(u32 lane);
  // No late packet can change local memory any more, but the peer's. Transfers that end need not
  // wait for READs and notifications of the lane. on_lane_down() follows, perhaps much later.
  void on_local_end(u32 lane);
  // The request `sequence` of the lane is complete, and so are all before it.
  void on_complete(u32 lane, u64 sequence);
  // The peer is gone: every transfer fails at once.
  void fail_all(const std::string& why);

  [[nodiscard]] std::optional<Request> poll_request();
  [[nodiscard]] std::optional<Outcome> poll_outcome();

  [[nodiscard]] bool is_idle() const { return transfers_.empty(); }
  [[nodiscard]] u32 transfers() const { return static_cast<u32>(transfers_.size()); }
  [[nodiscard]] u64 outstanding(u32 lane) const { return lanes_[lane].sent.size(); }
  [[nodiscard]] u64 retired_bytes() const { return retired_bytes_; }
  // The transfer of an outstanding request of the lane; nullopt if it is retired.
  [[nodiscard]] std::optional<u32> transfer_of(u32 lane, u64 sequence) const;

 private:
  enum class LaneState : u8 { kDown, kProbation, kUp };
  struct Transfer {
    TransferOrder order{};
    std::size_t next_copy = 0;
    u64 offset = 0;             // in that copy
    u64 taken = 0;              // bytes of all copies before that place
    u32 outstanding = 0;        // requests
    std::vector<Copy> again{};  // of dead lanes
    bool notify_again = false, notify_sent = false;
    std::optional<Result> ending{};  // kCancelled or kFailed: issue nothing more
    std::string why{};

    [[nodiscard]] bool has_copies() const {
      return !again.empty() || next_copy < order.copies.size();
    }
    [[nodiscard]] bool has_ready_copies() const {
      return !again.empty() || (next_copy < order.copies.size() && taken < order.ready_bytes);
    }
    [[nodiscard]] bool wants_notify() const {
      return order.notifies && (!notify_sent || notify_again) && !has_copies() && outstanding == 0;
    }
    [[nodiscard]] bool is_over() const {
      return outstanding == 0 && (ending || (!has_copies() && !wants_notify()));
    }
  };
  struct Sent {
    Transfer* transfer = nullptr;  // none if it has ended without waiting for this request
    Copy copy{};
    bool is_notify = false;
  };
  struct Lane {
    LaneState state = LaneState::kDown;
    bool has_failed = false;
    bool is_locally_over = false;
    u32 notify_credits = 0;
    u64 next_sequence = 0;   // of the next request
    u64 first_sequence = 0;  // of sent.front()
    u64 bytes = 0;
    std::deque<Sent> sent{};
  };

  [[nodiscard]] Transfer* find(u32 id);
  [[nodiscard]] std::optional<u32> choose_lane(u32 least_credits) const;
  [[nodiscard]] Transfer* choose_transfer(bool with_notify);
  [[nodiscard]] Copy take_piece(Transfer& transfer);
  [[nodiscard]] bool has_room(const Lane& lane) const;
  void end(Transfer& transfer, Result result, std::string why);
  void finish_if_over(Transfer& transfer);
  void abandon(Transfer& transfer);
  void retire(Lane& lane);

  FlowLimits limits_;
  std::array<Lane, kMaxLanes> lanes_{};
  std::vector<std::unique_ptr<Transfer>> transfers_{};
  std::size_t next_turn_ = 0;  // into transfers_
  u64 copies_ = 0;
  u64 retired_bytes_ = 0;
  std::deque<Outcome> outcomes_{};
};

}  // namespace verbena::transfer
