// Channel: the TCP connection between two agents. By it they exchange what their queue pairs need,
// and learn that the other one died: the kernel closes it. Never waits.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "communicator/bootstrap/socket.h"

namespace verbena::agent {

struct Message {
  enum class Type : u8 {
    kHello = 1,  // from both sides: who they are, how many lanes
    kRefuse,     // why there is no connection: text
    kLane,       // a lane's queue pair of one generation
    kReady,      // that queue pair can receive
    kCredit,     // a lane can receive so many more notifications
    kAskMetadata,
    kMetadata,
    kBye,  // the agent ends in order
  };
  Type type = Type::kBye;
  std::string payload{};
};

class Channel {
 public:
  static constexpr u32 kMaxBytes = u32{4} << 20;     // of one message
  static constexpr u32 kMaxWaiting = u32{16} << 20;  // that the peer has not read

  explicit Channel(coll::Descriptor socket) : socket_(std::move(socket)) {}
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  [[nodiscard]] bool wants_to_send() const { return !waiting_.empty(); }
  void send(Message::Type type, std::string_view payload);
  void flush();
  // The next message, as far as one has arrived. A connection that broke is not open after the
  // last.
  [[nodiscard]] std::optional<Message> poll();
  void close() { socket_.close(); }

 private:
  void receive();
  coll::Descriptor socket_;
  std::string received_{}, waiting_{};
  bool is_ended_ = false;
};

}  // namespace verbena::agent
