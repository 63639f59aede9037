// TargetThread: one more thread of a target, with a node, stores and a nvmf::Target of its own. I/O
// queues that LiveNode::share_requests() gives to its node are its.
#pragma once

#include <atomic>
#include <thread>

#include "nvmf/target.h"
#include "nvmf_program/media.h"

namespace verbena::nvmf_program {

class TargetThread {
 public:
  // `first`, its media and what `config` names outlive it.
  [[nodiscard]] static Expected<std::unique_ptr<TargetThread>> start(
      const TargetOptions& options, const nvmf::TargetConfig& config, verbs::LiveNode& first,
      const Media& media, std::shared_ptr<nvmf::ControllerRegistry> registry);
  ~TargetThread();  // ends it
  TargetThread(const TargetThread&) = delete;
  TargetThread& operator=(const TargetThread&) = delete;

  [[nodiscard]] verbs::LiveNode& node() { return *node_; }
  // After a request was given to its node, or a controller has ended.
  void wake() const;
  void drain();
  [[nodiscard]] bool is_idle() const { return is_idle_; }  // no queue is left
  // Ends the thread.
  [[nodiscard]] nvmf::TargetCounters stop();

 private:
  TargetThread() = default;
  void run(bool polls);

  std::unique_ptr<verbs::LiveNode> node_;
  Media media_;
  std::unique_ptr<nvmf::Target> target_;
  int wake_ = -1;
  std::atomic<bool> drains_{false}, stops_{false}, is_idle_{true};
  std::thread thread_;
};

}  // namespace verbena::nvmf_program
