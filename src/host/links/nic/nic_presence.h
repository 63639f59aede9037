// NICPresence: whether the NIC of a virtual function has ended or returned. Its user asks after
// each look; a link or an opener of streams notes it.
#pragma once

#include <utility>

namespace verbena::host {

class NICPresence {
 public:
  // Once, when the NIC has ended, and once when another has taken the function back.
  [[nodiscard]] bool take_death() { return std::exchange(has_died_, false); }
  [[nodiscard]] bool take_return() { return std::exchange(has_returned_, false); }

 protected:
  ~NICPresence() = default;
  void note_death() { has_died_ = true; }
  void note_return() { has_returned_ = true; }

 private:
  bool has_died_ = false, has_returned_ = false;
};

}  // namespace verbena::host
