// Connection: the queue pairs between this rank and one peer, one for each rail. Messages go by the
// first, in order, under credits: a rank sends no more than its peer has receive buffers for. READs
// go by any.
//
// Contract: before send(), can_send(); before read(), can_read(). Completions of the rails' queues
// come back by on_completion(). Any call may find the connection broken: is_broken().
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "communicator/message.h"
#include "communicator/shared_link.h"
#include "communicator/verbs/rail.h"

namespace verbena::coll {

// Memory of one connection, in registered slots of kSlotSize: first to receive, then to send.
struct ConnectionMemory {
  u8* slots = nullptr;
  u32 lkey = 0;  // of the first rail
};

// WorkId: the contents of wr_id: kind, peer, rail, index.
enum class WorkKind : u8 { kSend, kReceive, kRead };
struct WorkId {
  WorkKind kind = WorkKind::kSend;
  u32 peer = 0, rail = 0, index = 0;
  [[nodiscard]] constexpr u64 value() const {
    return u64{static_cast<u8>(kind)} << 62 | u64{rail} << 56 | u64{peer} << 32 | index;
  }
  [[nodiscard]] static constexpr WorkId of(u64 value) {
    return {static_cast<WorkKind>(value >> 62), static_cast<u32>(value >> 32 & 0xffffff),
            static_cast<u32>(value >> 56 & 0x3f), static_cast<u32>(value)};
  }
};

class Connection {
 public:
  // Messages that may be under way to this side; the same on both sides.
  static constexpr u32 kSpareSlots = 4;  // for messages without credit: kCredit
  [[nodiscard]] static constexpr u32 slots_for(u32 depth) { return 2 * (depth + kSpareSlots); }
  [[nodiscard]] static constexpr u32 completions_for(u32 depth) { return 4 * depth + 64; }

  Connection(u32 peer, u32 depth, const ConnectionMemory& memory)
      : peer_(peer), depth_(depth), memory_(memory) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] Expected<void> create(std::span<const std::unique_ptr<Rail>> rails);
  [[nodiscard]] std::vector<QPAddress> addresses() const { return addresses_; }
  // Connects the queue pairs, except those on iWARP devices: StreamMesh.
  [[nodiscard]] Expected<void> connect(std::span<const std::unique_ptr<Rail>> rails,
                                       std::span<const QPAddress> remote);

  [[nodiscard]] u32 peer() const { return peer_; }
  [[nodiscard]] bool is_broken() const { return broken_; }
  [[nodiscard]] bool can_send() const { return credits_ > 0 && room_to_send(); }
  // Sets header.credits. `more` and `payload` follow the header.
  void send(Header header, std::span<const u8> more, std::span<const u8> payload);
  // Returns credits if many are owed.
  void return_credits();
  // Sends an empty READ, which the peer's device answers; nothing if one is under way.
  void ping();
  [[nodiscard]] bool is_idle()
      const;  // all that was sent is acknowledged, as far as it was signalled

  [[nodiscard]] u32 rails() const { return static_cast<u32>(lines_.size()); }
  [[nodiscard]] bool can_read(u32 rail) const;
  void read(u32 rail, u32 index, u64 to, u32 lkey, u64 from, u32 rkey, u32 bytes);

  // From now on messages go through shared memory, and queue pairs wake sleepers and READ.
  void share(std::unique_ptr<SharedLink> link) { link_ = std::move(link); }
  [[nodiscard]] SharedLink* link() const { return link_.get(); }
  void take_from_link(Header::Kind kind);  // after a message of it was handled

  struct Message {
    Header header;
    std::span<const u8> payload;
  };
  // Returns the received message, valid until give_back(slot).
  [[nodiscard]] Message message(u32 slot, u32 bytes) const;
  void give_back(u32 slot);  // counts as a credit owed, unless the message needed none
  void on_sent(u32 rail);    // of a send or read that was signalled: all before it are done, too
  void break_off();          // queue pairs go to Error: what is outstanding is flushed

 private:
  struct Line {
    ibv_qp* qp = nullptr;
    u32 posted = 0, completed = 0;  // send work requests
    u32 reads = 0;                  // outstanding
    std::vector<u32> marks{};       // ring: `posted` of the signalled ones
    u32 first_mark = 0, last_mark = 0;
    std::vector<u8> is_read{};  // ring beside marks
    u32 depth = 0;
    u32 read_limit = 1;
  };
  [[nodiscard]] bool room_to_send() const {
    return lines_[0].posted - lines_[0].completed + kSpareSlots < lines_[0].depth;
  }
  [[nodiscard]] u8* slot(u32 index) const { return memory_.slots + u64{index} * kSlotSize; }
  void post_receive(u32 slot);
  void post(Line& line, ibv_send_wr& request, bool is_read);
  void wake_peer();
  void transmit(const Header& header, std::span<const u8> more, std::span<const u8> payload);

  u32 peer_, depth_;
  ConnectionMemory memory_;
  std::unique_ptr<SharedLink> link_{};
  std::vector<Line> lines_;
  std::vector<QPAddress> addresses_;
  u32 credits_ = 0;  // messages that the peer can take
  u32 owed_ = 0;     // credits to return
  u32 next_slot_ = 0;
  u32 max_inline_ = 0;
  bool broken_ = false, pinging_ = false;
  u32 ping_mark_ = 0;

 public:
  void add_credits(u32 credits) { credits_ += credits; }
};

}  // namespace verbena::coll
