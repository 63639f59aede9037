// verbena nvmf target.
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "nvmf_program/commands.h"
#include "nvmf_program/openssl_cryptography.h"
#include "nvmf_program/stats_service.h"
#include "nvmf_program/stop_descriptor.h"
#include "nvmf_program/target_thread.h"

namespace verbena::nvmf_program {
namespace {

constexpr Duration kWait = sec(1), kDrainStep = ms(10);

using Threads = std::vector<std::unique_ptr<TargetThread>>;

// A target on the main thread, which has the admin queues, and on further threads.
class Server {
 public:
  Server(const TargetOptions& options, const nvmf::TargetConfig& config, verbs::LiveNode& node,
         const Media& media)
      : options_(options),
        config_(config),
        node_(node),
        media_(media),
        target_(node, config, registry_) {
    for (const auto& subsystem : media.subsystems) target_.add_subsystem(*subsystem);
  }

  [[nodiscard]] Expected<void> start() {
    for (u16 i = 1; i < options_.threads; ++i) {
      auto thread = TargetThread::start(options_, config_, node_, media_, registry_);
      if (!thread) return tl::unexpected(thread.error());
      threads_.push_back(std::move(*thread));
    }
    if (!threads_.empty())
      node_.share_requests([this](std::span<const u8> data) { return node_for(data); });
    if (target_.start() != Status::kOk)
      return tl::unexpected("cannot listen on " + config_.address_text + " port " +
                            std::to_string(options_.listen.port) + ": is it in use?");
    return {};
  }

  void run(const StopDescriptor& stop) {
    const StatsService statistics;
    std::vector<int> descriptors = media_.descriptors;
    descriptors.push_back(stop.fd());
    if (statistics.descriptor() >= 0) descriptors.push_back(statistics.descriptor());
    while (!stop.take()) {
      if (const int question = statistics.take_question(); question >= 0)
        StatsService::answer(question, target_.stats());
      constexpr u32 kRoundsPerLook = 1024;  // a look at the descriptors is system calls
      bool is_readable = false;
      for (u32 round = 0; round < kRoundsPerLook && !is_readable; ++round)
        is_readable = step(kWait, descriptors);
    }
  }

  // Further threads first: a controller without its admin queue has no I/O queues.
  void drain(const StopDescriptor& stop) {
    const Time limit = node_.now() + us(static_cast<i64>(options_.drain_s * 1e6));
    for (const auto& thread : threads_) thread->drain();
    const auto are_idle = [&] {
      return std::ranges::all_of(threads_, [](const auto& thread) { return thread->is_idle(); });
    };
    while (!are_idle() && node_.now() < limit && !stop.take())
      (void)step(kDrainStep, media_.descriptors);
    target_.drain();
    while (target_.queues() > 0 && node_.now() < limit && !stop.take())
      (void)step(kDrainStep, media_.descriptors);
  }

  [[nodiscard]] nvmf::TargetCounters stop() {
    nvmf::TargetCounters all = target_.counters();
    for (const auto& thread : threads_) all += thread->stop();
    return all;
  }

 private:
  // I/O queues go to the threads in turns, the main thread among them.
  verbs::LiveNode* node_for(std::span<const u8> private_data) {
    const auto request = nvme::RDMARequestData::decode(private_data);
    if (!request || request->qid == 0) return nullptr;
    const std::size_t place = ++last_place_ % (threads_.size() + 1);
    must_wake_ = true;
    return place == 0 ? nullptr : &threads_[place - 1]->node();
  }

  // True: one of the descriptors is readable.
  bool step(Duration at_most, std::span<const int> descriptors) {
    bool is_readable = false;
    if (options_.polls)
      node_.spin();
    else
      is_readable = node_.wait(at_most, descriptors);
    target_.on_ready();
    const u64 ended = registry_->ended();
    if (std::exchange(must_wake_, false) || ended != std::exchange(ended_, ended))
      for (const auto& thread : threads_) thread->wake();
    return is_readable;
  }

  const TargetOptions& options_;
  const nvmf::TargetConfig& config_;
  verbs::LiveNode& node_;
  const Media& media_;
  const std::shared_ptr<nvmf::ControllerRegistry> registry_ =
      std::make_shared<nvmf::ControllerRegistry>();
  nvmf::Target target_;
  Threads threads_;
  std::size_t last_place_ = 0;
  bool must_wake_ = false;
  u64 ended_ = 0;  // controllers, as last seen
};

}  // namespace

Expected<void> serve(const TargetOptions& options) {
  const StopDescriptor stop;
  auto node = verbs::LiveNode::open_local(options.listen);
  if (!node) return tl::unexpected(node.error());
  auto media = Media::open(options, **node);
  if (!media) return tl::unexpected(media.error());
  OpenSSLCryptography cryptography;
  nvmf::TargetConfig config;
  config.listen = options.listen;
  config.address_text = options.listen.ip.to_string();
  config.limits.max_queue_entries = options.queue_entries;
  config.limits.in_capsule_bytes = options.in_capsule_bytes;
  config.cryptography = &cryptography;
  config.authentication = options.authentication;
  Server server(options, config, **node, *media);
  if (const auto started = server.start(); !started) return started;
  std::printf("listening on %s port %u\n", config.address_text.c_str(), options.listen.port);
  std::fflush(stdout);
  server.run(stop);
  server.drain(stop);
  const nvmf::TargetCounters c = server.stop();
  std::printf("connections %" PRIu64 ", refused %" PRIu64 ", commands %" PRIu64 ", errors %" PRIu64
              ", keep-alive expirations %" PRIu64 ", bytes read %" PRIu64 ", written %" PRIu64 "\n",
              c.connections, c.refused_connections, c.commands, c.errors, c.keep_alive_expirations,
              c.bytes_read, c.bytes_written);
  return {};
}

}  // namespace verbena::nvmf_program
