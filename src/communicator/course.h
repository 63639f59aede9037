// Course: the working memory of an operation under way: the messages that have come for it, and the
// place of each lane in the script. A communicator runs one operation at a time, so it lends the
// same course to one after another, and short operations need no memory of their own.
//
// Not thread-safe.
#pragma once

#include <span>
#include <vector>

#include "collectives/rank_executor.h"
#include "communicator/fifo.h"
#include "communicator/message.h"

namespace verbena::coll {

struct Arrival {
  Header header{};
  Offer offer{};
  std::span<const u8> borrowed{};
  std::vector<u8> kept{};
  [[nodiscard]] std::span<const u8> payload() const {
    return kept.empty() ? borrowed : std::span<const u8>(kept);
  }
};

// Messages of one rank on one lane.
struct Inbox {
  Fifo<Arrival> arrivals{};
  bool is_awaited = false;
};

// The own part of a sum that is not yet at its place: the first reduction adds to it there, so
// that it need not be copied before.
struct Base {
  const u8* from = nullptr;
  collectives::Range range{};
};

class Course {
 public:
  // Forgets the operation before. Allocates only for more ranks or lanes than any before.
  void begin(u32 ranks, u32 lanes);

  [[nodiscard]] Inbox& inbox(u32 from, u32 lane) { return inboxes_[from * lanes_ + lane]; }
  [[nodiscard]] Fifo<const u8*>& to_self(u32 lane) { return to_self_[lane]; }
  [[nodiscard]] Base& base(u32 lane) { return bases_[lane]; }

  collectives::RankExecutor executor{};
  std::vector<u32> blocked{};  // lanes that cannot send

 private:
  u32 lanes_ = 0;
  std::vector<Inbox> inboxes_{};
  std::vector<Fifo<const u8*>> to_self_{};
  std::vector<Base> bases_{};
};

}  // namespace verbena::coll
