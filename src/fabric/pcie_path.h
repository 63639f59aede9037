// PCIePath: the way between program and NIC of a simulated host, and what is on it: requests that
// were posted, and completions. Both keep their order.
#pragma once

#include <deque>

#include "device/device.h"

namespace verbena::fabric {

// PCIeConfig: the latencies of the path. Neugebauer et al., Understanding PCIe Performance for End
// Host Networking, SIGCOMM 2018, 3 and 6: a read takes 0.5 to 1 us, a posted write half of it.
struct PCIeConfig {
  Duration posting{};     // from the verb to the first packet: doorbell, fetching WQE and payload
  Duration completion{};  // from the last packet to the program: data and CQE are written
};

class PCIePath {
 public:
  explicit PCIePath(const PCIeConfig& config) : config_(config) {}

  [[nodiscard]] bool delays_posting() const { return config_.posting != Duration{}; }
  [[nodiscard]] bool delays_completion() const { return config_.completion != Duration{}; }

  // Returns when the request, which has one SGE at most, reaches the NIC.
  Time post(const SendWR& wr, QueuePair* qp, Time now) {
    postings_.push_back({.at = now + config_.posting, .qp = qp, .wr = wr, .sge = {}});
    if (!wr.sg_list.empty()) postings_.back().sge = wr.sg_list[0];
    return postings_.back().at;
  }
  // Returns when the completion reaches the program.
  Time complete(const CQE& cqe, Time now) {
    completions_.push_back({.at = now + config_.completion, .cqe = cqe});
    return completions_.back().at;
  }

  // Gives `device` the requests that have reached the NIC. Returns false if none has.
  bool take_postings(Device& device, Time now);
  // Calls take(cqe) for each completion that has reached the program.
  template <typename Take>
  void take_completions(Time now, Take take) {
    for (; !completions_.empty() && completions_.front().at <= now; completions_.pop_front())
      take(completions_.front().cqe);
  }

 private:
  struct Posting {
    Time at;
    QueuePair* qp;
    SendWR wr;
    SGE sge;
  };
  struct Completion {
    Time at;
    CQE cqe;
  };

  const PCIeConfig config_;
  std::deque<Posting> postings_;
  std::deque<Completion> completions_;
};

}  // namespace verbena::fabric
