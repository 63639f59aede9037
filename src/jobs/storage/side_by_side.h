// SideBySide: two applications on one network. The first has the connections up to a number and the
// alarms without a mark in their words, the second the others.
#pragma once

#include "fabric/application.h"

namespace verbena::jobs {

class SideBySide final : public fabric::Application {
 public:
  SideBySide(fabric::Application& first, fabric::Application& second, u32 second_connection,
             u32 word_mark)
      : first_(first),
        second_(second),
        second_connection_(second_connection),
        word_mark_(word_mark) {}

  void on_arrival(u32 connection, u32 word, Time now) override {
    of_connection(connection).on_arrival(connection, word, now);
  }
  void on_sent(u32 connection, Time now) override {
    of_connection(connection).on_sent(connection, now);
  }
  void on_alarm(u32 word, Time now) override {
    ((word & word_mark_) == 0 ? first_ : second_).on_alarm(word, now);
  }

 private:
  [[nodiscard]] fabric::Application& of_connection(u32 connection) const {
    return connection < second_connection_ ? first_ : second_;
  }

  fabric::Application& first_;
  fabric::Application& second_;
  const u32 second_connection_;
  const u32 word_mark_;
};

}  // namespace verbena::jobs
