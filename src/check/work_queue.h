// WorkQueue: the work of one send or receive queue that its program has posted and not seen
// complete. A program's knowledge differs from the device's progress: a buffer belongs to the
// device until the completion has been polled.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "check/site.h"
#include "memory/sge.h"

namespace verbena::check {

struct Work {
  u64 wr_id = 0;
  bool signaled = true;   // a receive always is
  bool fills = false;     // the device writes to the list's memory
  std::vector<SGE> list;  // without inline data
  u64 bytes = 0;
  std::vector<Bytes> memory;        // the list's, while the device may use it and its regions exist
  u64 heard = 0;                    // receives that the program had polled by then, of any queue
  std::optional<u64> hash;          // of the bytes to send, if nobody else may write there
  u64 peer_writes = 0;              // number of writes in the device's log by then
  std::optional<Site> invalidated;  // the place of the send that invalidates its R_Key
  Site posted;
};

class WorkQueue {
 public:
  void push(Work work) {
    signaled_ += work.signaled ? 1 : 0;
    works_.push_back(std::move(work));
  }
  // Takes the completed send: the first that matches, with the unsignaled sends before it, which
  // have completed by that. `also_unsignaled`: an error completes unsignaled sends too. Returns
  // nothing if no send matches.
  [[nodiscard]] std::vector<Work> take_through(u64 wr_id, bool also_unsignaled) {
    const auto last = std::ranges::find_if(works_, [&](const Work& work) {
      return work.wr_id == wr_id && (work.signaled || also_unsignaled);
    });
    if (last == works_.end()) return {};
    std::vector<Work> taken(std::make_move_iterator(works_.begin()),
                            std::make_move_iterator(last + 1));
    works_.erase(works_.begin(), last + 1);
    for (const Work& work : taken) signaled_ -= work.signaled ? 1 : 0;
    return taken;
  }
  // Takes the completed receive. Receives of a shared queue complete in any order.
  [[nodiscard]] std::optional<Work> take(u64 wr_id) {
    const auto found =
        std::ranges::find_if(works_, [&](const Work& work) { return work.wr_id == wr_id; });
    if (found == works_.end()) return std::nullopt;
    Work taken = std::move(*found);
    works_.erase(found);
    signaled_ -= taken.signaled ? 1 : 0;
    return taken;
  }
  void clear() {
    works_.clear();
    signaled_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return works_.size(); }
  [[nodiscard]] std::size_t signaled() const { return signaled_; }
  [[nodiscard]] std::deque<Work>& all() { return works_; }
  [[nodiscard]] const Work& oldest() const { return works_.front(); }
  // Returns the first work that names the key and may, as far as the program knows, not have ended:
  // the program has received nothing since it posted the send. `heard`: what the program has
  // received by now. Returns nullptr if there is none.
  [[nodiscard]] const Work* naming(LKey key, u64 heard) const {
    const auto found = std::ranges::find_if(works_, [&](const Work& work) {
      return (work.fills || work.heard == heard) &&
             std::ranges::any_of(work.list, [&](const SGE& sge) { return sge.l_key == key; });
    });
    return found == works_.end() ? nullptr : &*found;
  }

 private:
  std::deque<Work> works_;
  std::size_t signaled_ = 0;
};

}  // namespace verbena::check
