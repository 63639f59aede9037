// Transfers: messages that this rank reads from the memory of others, in pieces. Data to reduce is
// read into a buffer that stays in the cache, and combined from there; data to copy is read
// directly to its destination, if that is registered. Pieces use the rails in turn.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "coll/data_type.h"
#include "collectives/step.h"
#include "communicator/memory.h"
#include "communicator/message.h"
#include "communicator/request.h"
#include "communicator/verbs/connection.h"

namespace verbena::coll {

inline constexpr u64 kPieceBytes = 128u << 10;      // that passes a buffer
inline constexpr u64 kDirectPieceBytes = 1u << 20;  // that is read to its place
inline constexpr u32 kPieceBuffers = 32;

struct Transfer {
  std::shared_ptr<Request> owner{};
  u32 lane = 0;
  u32 peer = 0;   // of the world
  u32 token = 0;  // of the offer
  collectives::Action action = collectives::Action::kCopy;
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  u8* to = nullptr;
  const u8* base = nullptr;  // the operand that a reduction adds to; `to` or elsewhere
  u64 length = 0;
  Offer from{};
  const Registration* direct = nullptr;  // of `to`; nullptr if the READs use buffers
};

class Transfers {
 public:
  // Sends kTaken.
  class Acknowledger {
   public:
    virtual ~Acknowledger() = default;
    virtual void on_all_read(u32 peer, u32 token) = 0;
  };

  Transfers(std::vector<std::unique_ptr<Connection>>& connections, u8* buffers,
            const Registration& memory, Acknowledger& acknowledger)
      : connections_(connections),
        buffers_(buffers, kPieceBytes, kPieceBuffers),
        memory_(memory),
        acknowledger_(acknowledger) {}

  void start(Transfer transfer);
  // Handles the completion of a READ. If `failed`, nothing was read.
  void on_read(u32 piece, bool failed);
  // Posts the READs that could not be posted before.
  void resume();
  [[nodiscard]] bool is_idle() const { return active_ == 0; }

 private:
  struct Active : Transfer {
    u64 posted = 0, landed = 0;
    u32 outstanding = 0;
    bool is_lost = false, is_stalled = false, is_used = false;
  };
  struct Piece {
    u32 transfer = 0, buffer = BufferPool::kNone;
    u64 offset = 0;
    u32 bytes = 0;
  };
  void post_pieces(u32 number);
  [[nodiscard]] bool post_piece(u32 number);
  [[nodiscard]] u32 rail_for(const Connection& connection);
  void land(Active& transfer, const Piece& piece);
  void end(u32 number);

  std::vector<std::unique_ptr<Connection>>& connections_;
  BufferPool buffers_;
  const Registration& memory_;
  Acknowledger& acknowledger_;
  std::deque<Active> transfers_{};  // by number; numbers are used again
  std::vector<u32> free_transfers_{}, free_pieces_{}, stalled_{};
  std::vector<Piece> pieces_{};
  u32 next_rail_ = 0, active_ = 0;
};

}  // namespace verbena::coll
