// Operation: one collective operation of this rank, under way. A RankExecutor asks it to do the
// steps of the script: messages are sent by the World's connections, and received from what peers
// sent.
//
// An operation whose kind has a root ends with a barrier, so that no rank takes an operation for
// done that failed at another.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "coll/call.h"
#include "coll/scripts/step_lists.h"
#include "coll/signature.h"
#include "communicator/course.h"
#include "communicator/memory.h"
#include "communicator/message.h"
#include "communicator/request.h"

namespace verbena::coll {

class Communicator;

class Operation final : public Request {
 public:
  // Without a plan: one that fails before it starts.
  Operation(std::shared_ptr<Communicator> comm, u64 number, Call call, const Signature& signature,
            std::shared_ptr<const Plan> plan);
  ~Operation() override;

  [[nodiscard]] u64 number() const { return number_; }
  [[nodiscard]] const Signature& signature() const { return signature_; }
  [[nodiscard]] std::string title() const;  // "AllReduce of 4 float (sum), operation 7"

  void start();
  // `from`: a rank of the communicator.
  void on_message(u32 from, const Header& header, std::span<const u8> payload);
  // The connection to one of the communicator's ranks can send again.
  void on_room();
  void fail(Error error);
  // Ends a failed operation although peers have not said that they read its memory no longer.
  void give_up();
  [[nodiscard]] bool has_started() const { return started_; }
  [[nodiscard]] bool is_failing() const { return error_.status != VERBENA_COLL_OK && !done_; }
  // Ranks of the communicator of which it needs something now.
  [[nodiscard]] std::vector<u32> waits_for() const;

  void on_transferred(u32 lane) override;
  void on_transfer_lost() override;
  void on_offer_taken() override;

  i64 deadline = 0;              // kept by the World; 0: not set
  i64 verdict_at = 0;            // when it decides who is missing; 0: nobody was asked
  std::vector<bool> answered{};  // ranks that take part

  // --- RankExecutor's port
  [[nodiscard]] bool do_step(u32 lane, const collectives::Step& step);
  void on_step(u32, u64) {}
  void on_lane_wait(u32, u32) {}
  void on_lane_wake(u32, u32) {}
  void on_finish(u32) {}

 private:
  struct AreaMemory {
    u8* base = nullptr;
    u64 length = 0;
    std::unique_ptr<Registration> own{};
  };

  [[nodiscard]] u8* address_of(const collectives::Range& range) const;
  // Registers the area if nobody has; nullptr: the operation has failed.
  [[nodiscard]] const Registration* registration_of(const collectives::Range& range);
  void prepare_areas();
  void use_temporary(Area area, u64 bytes);
  void run();
  void begin_script(const collectives::Script& script);
  void begin_closing();
  void finish();
  void deliver_result();
  [[nodiscard]] bool send(u32 lane, const collectives::Step& step);
  [[nodiscard]] bool send_to_self(u32 lane, const collectives::Step& step);
  [[nodiscard]] bool receive(u32 lane, const collectives::Step& step);
  [[nodiscard]] bool receive_from_self(u32 lane, const collectives::Step& step);
  void apply(u32 lane, const collectives::Step& step, const u8* from);
  [[nodiscard]] const u8* take_base(u32 lane, const collectives::Range& range);
  void copy_base(u32 lane);
  void start_transfer(u32 lane, const collectives::Step& step, const Arrival& arrival);
  [[nodiscard]] bool offer(u32 peer, const Header& header, const collectives::Range& range);
  void mismatch(u32 from, const Header& header);
  void refuse_arrivals();
  void end_if_drained();

  const std::shared_ptr<Communicator> comm_;
  const u64 number_;
  const Call call_;
  const Signature signature_;
  const std::shared_ptr<const Plan> plan_;
  const u32 script_lanes_, lanes_;  // with that of the closing barrier
  std::unique_ptr<u8[]> temporary_{};
  std::array<AreaMemory, kAreas> areas_{};
  std::unique_ptr<Course> course_{};  // lent by the communicator while it is under way
  std::shared_ptr<const StepLists> closing_script_{};
  u32 first_lane_ = 0;  // of the script that runs
  u32 untaken_ = 0, transfers_ = 0;
  bool started_ = false;
};

}  // namespace verbena::coll
