// Star: TCP connections between rank 0, the hub, and each other rank. Through them ranks exchange
// the data that they need to connect their queue pairs. Then the connections stay open: the kernel
// closes them when a process ends, so they report deaths; and they carry messages that must arrive
// when queue pairs do not work.
//
// Frames from a rank to another pass the hub, which forwards them when it reads: on_readable().
#pragma once

#include <string>
#include <vector>

#include "communicator/bootstrap/rendezvous.h"
#include "communicator/bootstrap/socket.h"

namespace verbena::coll {

// Notice: information that a rank sends to others besides its messages. `word` depends on the type.
struct Notice {
  enum class Type : u8 {
    kLeaves,  // the rank ends in order
    kDied,    // from the hub: the connection of `rank` broke
    kFailed,  // a communicator failed: text, status
    kStuck,   // to the hub: the operation does not end
    kAsk,     // from the hub: who takes part in that operation?
    kAnswer,  // to the hub: word is 1 if the rank takes part, or has done so
  };
  Type type = Type::kLeaves;
  i32 rank = -1;  // the rank that sends the notice, or that it is about
  u32 comm = 0;
  u64 operation = 0;
  u64 word = 0;
  std::string text{};
};

class Star {
 public:
  static constexpr u32 kHub = 0;

  // Waits until all ranks are connected.
  static Expected<Star> open(const Rendezvous& at, const verbena_coll_store* store,
                             const std::string& own_host, i64 deadline);

  // Every rank gives `mine` and gets those of all. All call it, in the same order.
  [[nodiscard]] Expected<std::vector<std::string>> exchange(const std::string& mine, i64 deadline);

  // --- afterwards. Sending never waits; a peer that does not read loses notices.
  void send(u32 to, const Notice& notice);  // a rank that is not the hub sends to the hub only
  void send_to_all(const Notice& notice);   // by way of the hub
  [[nodiscard]] std::vector<int> descriptors() const;
  // Returns the notices that have arrived. A broken connection is reported once, as kDied. The hub
  // forwards kFailed, kLeaves and kDied to the others.
  [[nodiscard]] std::vector<Notice> read();
  [[nodiscard]] bool is_hub() const { return rank_ == kHub; }
  [[nodiscard]] bool is_open(u32 rank) const { return peers_[rank].socket.is_open(); }

 private:
  struct Peer {
    Descriptor socket{};
    std::string received{};  // not yet a whole frame
  };
  [[nodiscard]] Expected<void> gather_ranks(const Rendezvous& at, i64 deadline);
  [[nodiscard]] Expected<void> join(const Rendezvous& at, const verbena_coll_store* store,
                                    i64 deadline);
  [[nodiscard]] Expected<void> admit(Descriptor socket, const Rendezvous& at, i64 deadline);
  void refuse_newcomer();
  void read_from(u32 rank, std::vector<Notice>& notices);
  void forward(u32 from, const Notice& notice);

  u32 rank_ = 0;
  std::vector<Peer> peers_{};  // of the hub: all; of others: the hub only is open
  Descriptor listener_{};
  std::string path_{};  // the file that rank 0 wrote

 public:
  Star() = default;
  Star(Star&&) = default;
  Star& operator=(Star&&) = default;
  ~Star();
};

}  // namespace verbena::coll
