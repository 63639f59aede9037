// Tagged: Send and Recv of a communicator, matched by source and tag in the order of arrival.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "communicator/memory.h"
#include "communicator/message.h"
#include "communicator/request.h"

namespace verbena::coll {

class Communicator;
class World;

// Also a Send that waits for room.
class TaggedSend final : public Request {
 public:
  TaggedSend(Communicator& comm, const void* buffer, u64 bytes, u32 to, u32 tag)
      : comm_(comm), buffer_(static_cast<const u8*>(buffer)), bytes_(bytes), to_(to), tag_(tag) {}
  // Returns false if the connection has no room.
  [[nodiscard]] bool try_start();
  void fail(Error error);
  [[nodiscard]] u32 to() const { return to_; }
  [[nodiscard]] std::string title() const;
  void on_transferred(u32) override {}
  void on_transfer_lost() override {}
  void on_offer_taken() override { done_ = true; }
  i64 deadline = 0;

 private:
  Communicator& comm_;
  const u8* buffer_;
  u64 bytes_;
  u32 to_, tag_;
  std::unique_ptr<Registration> registration_{};
};

class TaggedRecv final : public Request {
 public:
  TaggedRecv(Communicator& comm, void* buffer, u64 bytes, std::optional<u32> from, u32 tag)
      : comm_(comm), buffer_(static_cast<u8*>(buffer)), bytes_(bytes), from_(from), tag_(tag) {}
  [[nodiscard]] bool fits(u32 from, u32 tag) const {
    return tag == tag_ && (!from_ || *from_ == from);
  }
  void take(u32 from, const Header& header, std::span<const u8> payload);
  void fail(Error error);
  [[nodiscard]] std::optional<u32> from() const { return from_; }
  [[nodiscard]] bool is_reading() const { return reading_; }
  [[nodiscard]] std::string title() const;
  void on_transferred(u32) override {
    reading_ = false;
    done_ = true;
  }
  void on_transfer_lost() override;
  void on_offer_taken() override {}
  i64 deadline = 0;

 private:
  Communicator& comm_;
  u8* buffer_;
  u64 bytes_;
  std::optional<u32> from_;
  u32 tag_;
  bool reading_ = false;
  std::unique_ptr<Registration> registration_{};
};

class Tagged {
 public:
  explicit Tagged(Communicator& comm) : comm_(comm) {}

  void start(std::shared_ptr<TaggedSend> send);
  void start(std::shared_ptr<TaggedRecv> recv);
  void on_message(u32 from, const Header& header, std::span<const u8> payload);
  void on_room();
  void fail_all(const Error& error);
  void fail_those_of(u32 rank, const Error& error);
  void check_deadlines(i64 now, double timeout_s);  // fails what has waited for too long
  [[nodiscard]] bool has_work() const;              // something is neither done nor failed

 private:
  struct Unexpected {
    u32 from;
    Header header;
    std::vector<u8> payload;
  };
  Communicator& comm_;
  std::deque<std::shared_ptr<TaggedSend>> blocked_{};  // by order; one destination may pass another
  std::vector<std::shared_ptr<TaggedSend>> offered_{};
  std::deque<std::shared_ptr<TaggedRecv>> posted_{};
  std::vector<std::shared_ptr<TaggedRecv>> reading_{};
  std::deque<Unexpected> unexpected_{};
  friend class TaggedSend;
};

}  // namespace verbena::coll
