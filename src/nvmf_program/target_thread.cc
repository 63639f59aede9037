#include "nvmf_program/target_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace verbena::nvmf_program {
namespace {

constexpr Duration kThreadWait = sec(1);

}  // namespace

Expected<std::unique_ptr<TargetThread>> TargetThread::start(
    const TargetOptions& options, const nvmf::TargetConfig& config, verbs::LiveNode& first,
    const Media& media, std::shared_ptr<nvmf::ControllerRegistry> registry) {
  std::unique_ptr<TargetThread> thread(new TargetThread);
  auto node = verbs::LiveNode::open_beside(first);
  if (!node) return tl::unexpected(node.error());
  thread->node_ = std::move(*node);
  auto own_media = Media::open_beside(options, media);
  if (!own_media) return tl::unexpected(own_media.error());
  thread->media_ = std::move(*own_media);
  thread->target_ = std::make_unique<nvmf::Target>(*thread->node_, config, std::move(registry));
  for (const auto& subsystem : thread->media_.subsystems)
    thread->target_->add_subsystem(*subsystem);
  thread->wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (thread->wake_ < 0) return tl::unexpected(std::string("eventfd: ") + std::strerror(errno));
  thread->thread_ = std::thread([self = thread.get(), polls = options.polls] { self->run(polls); });
  return thread;
}

TargetThread::~TargetThread() {
  (void)stop();
  if (wake_ >= 0) close(wake_);
}

void TargetThread::wake() const { eventfd_write(wake_, 1); }

void TargetThread::drain() {
  drains_ = true;
  wake();
}

nvmf::TargetCounters TargetThread::stop() {
  if (thread_.joinable()) {
    stops_ = true;
    wake();
    thread_.join();
  }
  return target_ != nullptr ? target_->counters() : nvmf::TargetCounters();
}

void TargetThread::run(bool polls) {
  std::vector<int> descriptors = media_.descriptors;
  descriptors.push_back(wake_);
  bool is_draining = false;
  while (!stops_) {
    if (polls) {
      node_->spin();
    } else if (node_->wait(kThreadWait, descriptors)) {
      eventfd_t wakes = 0;
      (void)eventfd_read(wake_, &wakes);
    }
    target_->on_ready();
    if (drains_ && !std::exchange(is_draining, true)) target_->drain();
    is_idle_ = target_->queues() == 0;
  }
}

}  // namespace verbena::nvmf_program
