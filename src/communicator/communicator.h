// Communicator: ranks that do operations together, in one order. It gives operations their numbers,
// starts one when the one before is done, keeps messages that come early, and matches tagged
// messages.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coll/plan.h"
#include "communicator/operation.h"
#include "communicator/tagged.h"

namespace verbena::coll {

class World;

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // `members`: ranks of the world, in the order of the communicator.
  Communicator(World& world, u32 id, std::vector<u32> members, const Topology& topology);

  [[nodiscard]] World& world() const { return world_; }
  [[nodiscard]] u32 id() const { return id_; }
  [[nodiscard]] u32 rank() const { return rank_; }
  [[nodiscard]] u32 size() const { return static_cast<u32>(members_.size()); }
  [[nodiscard]] const std::vector<u32>& members() const { return members_; }
  [[nodiscard]] u32 world_rank(u32 rank) const { return members_[rank]; }
  [[nodiscard]] std::optional<u32> rank_of(u32 world_rank) const;
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const std::optional<Error>& failed() const { return failed_; }

  // --- calls of the program, with the World's lock held
  [[nodiscard]] std::shared_ptr<Operation> call(Call call);
  // This rank does not take part in the next operation, because of `error`.
  void refuse(const Error& error);
  [[nodiscard]] std::shared_ptr<TaggedSend> send(const void* buffer, u64 bytes, u32 to, u32 tag);
  [[nodiscard]] std::shared_ptr<TaggedRecv> recv(void* buffer, u64 bytes, std::optional<u32> from,
                                                 u32 tag);
  [[nodiscard]] u32 next_split() { return splits_++; }

  // --- messages
  void on_message(u32 from_world, const Header& header, std::span<const u8> payload);
  void on_room();  // a connection can send again
  // The memory of the operation that starts; and back from one that has succeeded.
  [[nodiscard]] std::unique_ptr<Course> lend_course();
  void take_back(std::unique_ptr<Course> course) { course_ = std::move(course); }
  void on_operation_done();
  void on_lost(u32 world_rank, const std::string& how);
  void on_left(u32 world_rank);
  void check_left();  // fails what needs a rank that has left
  [[nodiscard]] bool has_work() const { return !queue_.empty() || tagged_.has_work(); }

  // All operations fail, now and later. `tell`: the other ranks do not know.
  enum class Tell : u8 { kOthers, kNobody };
  void fail(Error error, Tell tell);

  [[nodiscard]] Operation* current() { return queue_.empty() ? nullptr : queue_.front().get(); }
  [[nodiscard]] bool has_entered(u64 operation) const { return operation < next_number_; }
  [[nodiscard]] Tagged& tagged() { return tagged_; }
  // View: the last set of lost ranks that each rank reported, and its round: shrink.cc.
  struct View {
    u64 round = 0;
    std::vector<u8> lost{};
  };
  [[nodiscard]] std::vector<std::deque<View>>& views() { return views_; }
  [[nodiscard]] const std::vector<bool>& lost() const { return lost_; }
  void mark_lost(u32 rank) { lost_[rank] = true; }

  double timeout_s = 30;
  Choice choice{};

 private:
  struct Early {
    u32 from;
    Header header;
    std::vector<u8> payload;
  };
  [[nodiscard]] std::shared_ptr<const Plan> plan_for(const Call& call, const Algorithm& algorithm);
  void start_next();
  void begin(const std::shared_ptr<Operation>& operation);
  [[nodiscard]] u64 first_open() const {
    return queue_.empty() ? next_number_ : queue_.front()->number();
  }
  void on_refused(u32 from, const Header& header, std::span<const u8> payload);
  void on_stale(u32 from_world, const Header& header);
  World& world_;
  const u32 id_;
  const std::vector<u32> members_;
  const Topology topology_;
  u32 rank_ = 0;
  u64 next_number_ = 0;  // of the operation to be called next
  std::deque<std::shared_ptr<Operation>> queue_{};
  std::map<u64, std::vector<Early>> early_{};
  std::map<u64, Error> refusals_{};
  struct Cached {
    Signature signature;
    Algorithm algorithm;
    std::shared_ptr<const Plan> plan;
  };
  std::deque<Cached> plans_{};
  std::unique_ptr<Course> course_{};  // nullptr while it is lent
  std::optional<Error> failed_{};
  std::vector<bool> lost_, left_;
  std::vector<std::deque<View>> views_;
  Tagged tagged_;
  u32 splits_ = 0;
  bool starting_ = false;
};

}  // namespace verbena::coll
