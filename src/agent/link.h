// Link: the connection to one peer: a channel, lanes, and the flow of transfers over them.
//
// Contract: the agent calls on_readable() when the channel has something, on_completion() for each
// completion of its lanes, and work() after them. Times are CLOCK_MONOTONIC. Not thread-safe.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/channel.h"
#include "agent/lane.h"
#include "agent/transfer_state.h"

namespace verbena::agent {

// The contents of kHello, from either side.
struct Hello {
  std::string name{};
  u64 incarnation = 0;         // of the sender
  u64 wanted_incarnation = 0;  // of the receiver; 0 in the answer
  u8 rails = 0;
  u8 queue_pairs = 0;  // for each rail
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static std::optional<Hello> decode(std::string_view bytes);
};

struct Notification {
  std::string peer{}, text{};
};

struct LinkSettings {
  transfer::FlowLimits flow{};
  u8 queue_pairs = 1;
};

class Link {
 public:
  // `streams`: of the agent; outlives the link. nullptr if no rail is an iWARP device.
  Link(u32 id, Rails rails, coll::StreamConnector* streams, Channel channel, Hello self,
       const LinkSettings& settings);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // The side that connects.
  void greet(u64 wanted_incarnation, const std::string& expected_name);
  // The peer's first message: the side that accepts. Fails if the peer is refused.
  [[nodiscard]] Expected<void> on_hello(std::string_view payload, bool is_answer);

  [[nodiscard]] u32 id() const { return id_; }
  [[nodiscard]] const std::string& peer() const { return peer_.name; }
  [[nodiscard]] u64 incarnation() const { return peer_.incarnation; }
  [[nodiscard]] bool is_greeted() const { return !lanes_.empty(); }
  [[nodiscard]] bool is_up() const { return lanes_up() > 0; }
  [[nodiscard]] u32 lanes_up() const;
  [[nodiscard]] u64 lanes_lost() const { return lanes_lost_; }
  // "" while the link works.
  [[nodiscard]] const std::string& why_dead() const { return why_dead_; }
  [[nodiscard]] Channel& channel() { return channel_; }
  [[nodiscard]] i64 opened_at() const { return opened_at_; }
  [[nodiscard]] u64 bytes() const { return flow_.retired_bytes(); }

  [[nodiscard]] Expected<void> start(const std::shared_ptr<TransferState>& state);
  void advance(const TransferState& state, u64 ready_bytes);
  void cancel(const TransferState& state);

  void on_message(const Message& message);
  void on_completion(const WorkId& work, const ibv_wc& completion);
  // Takes an event of a lane's connection on an iWARP device.
  void on_stream(const WorkId& work, coll::StreamEvent event);
  // Posts what can be posted; repairs lanes. Returns whether anything changed.
  bool work(i64 now);
  // When work() has something to do although nothing happened; -1: never.
  [[nodiscard]] i64 next_alarm() const;
  // All transfers fail; the queue pairs are gone.
  void die(const std::string& why);

  [[nodiscard]] std::vector<std::shared_ptr<TransferState>> take_finished();
  [[nodiscard]] std::deque<Notification>& notifications() { return received_; }
  // While true, receives are not posted again, so that the peer waits.
  void hold_receives(bool hold);

 private:
  struct Repair {
    std::unique_ptr<Lane> lane{};
    std::optional<LaneAddress> remote{};  // of the generation remote_generation
    u32 remote_generation = 0;
    u32 ready_generation = 0;   // the peer's queue pair of it can receive
    bool owes_requeue = false;  // requests of the generation before are with the flow
    i64 drain_deadline = 0;
    i64 up_at = 0;
    u32 failures = 0;  // one after another
    u64 bytes_at_failure = 0;
    std::vector<u64> free_slots{};
    std::map<u64, u64> slot_of{};  // by sequence, of outstanding notifications
    u32 credits = 0;               // of the peer, not yet given to the flow
    u32 consumed = 0;              // notifications received, not yet returned as credits
    std::deque<u64> reserved_slots{};
    std::vector<u64> held_receives{};
  };

  [[nodiscard]] const coll::Rail& rail_of(u32 lane) const;
  [[nodiscard]] LaneStreams streams_of(u32 lane) const;
  void announce_ready(u32 lane);
  void blame_request(u32 lane);
  void make_lanes();
  void offer(u32 lane, u32 generation);
  void on_offer(std::string_view payload);
  void on_ready(std::string_view payload);
  void on_credit(std::string_view payload);
  void break_lane(u32 lane);
  bool repair(u32 lane, i64 now);
  void try_to_connect(u32 lane);
  void grant(u32 lane);
  void receive(u32 lane, u64 slot, u32 bytes);
  void give_back(u32 lane, u64 slot);
  void post(const transfer::Request& request);
  [[nodiscard]] bool settle();

  u32 id_;
  Rails rails_;
  coll::StreamConnector* streams_;
  bool has_connected_ = false;  // this side did; it dials
  Channel channel_;
  Hello self_, peer_{};
  LinkSettings settings_;
  transfer::Flow flow_;
  i64 opened_at_ = 0;
  std::string why_dead_{};
  std::unique_ptr<Region> slots_region_{};
  std::vector<u8> slots_{};
  std::vector<Repair> lanes_{};
  u64 lanes_lost_ = 0;
  u32 next_transfer_ = 0;
  std::unordered_map<u32, std::shared_ptr<TransferState>> transfers_{};
  std::unordered_map<u32, u64> notice_of_{};  // number of a transfer's notification
  u64 next_notice_ = 0;
  std::vector<std::shared_ptr<TransferState>> finished_{};
  std::deque<Notification> received_{};
  u64 first_missing_notice_ = 0;
  std::set<u64> early_notices_{};  // received, above the first missing one
  bool holds_receives_ = false;
};

}  // namespace verbena::agent
