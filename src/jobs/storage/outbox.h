// Outbox: the messages of one connection, of which the network takes so many at a time; the others
// wait here.
#pragma once

#include <deque>

#include "fabric/network.h"

namespace verbena::jobs {

class Outbox {
 public:
  Outbox(u32 connection, u32 depth) : connection_(connection), depth_(depth) {}

  void send(u32 octets, u32 word, fabric::Network& network) {
    waiting_.push_back({octets, word});
    go_on(network);
  }
  void on_sent(fabric::Network& network) {
    --under_way_;
    go_on(network);
  }

 private:
  struct Message {
    u32 octets = 0, word = 0;
  };

  void go_on(fabric::Network& network) {
    while (under_way_ < depth_ && !waiting_.empty()) {
      network.send(connection_, waiting_.front().octets, waiting_.front().word);
      waiting_.pop_front();
      ++under_way_;
    }
  }

  u32 connection_;
  u32 depth_;
  u32 under_way_ = 0;
  std::deque<Message> waiting_;
};

}  // namespace verbena::jobs
