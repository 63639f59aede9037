#include "nvmf_program/host_session.h"

#include <array>

#include "nvmf/status_text.h"

namespace verbena::nvmf_program {
namespace {

constexpr Duration kStep = ms(500), kCloseLimit = sec(2);

}  // namespace

nvmf::DataSlice slice_of(const application::Region& region, u64 offset, u32 bytes) {
  return {region.address + offset, bytes, region.l_key, region.r_key};
}

Expected<std::unique_ptr<HostSession>> HostSession::open(const HostOptions& options,
                                                         const StopDescriptor* stop) {
  std::unique_ptr<HostSession> session(new HostSession);
  auto node = verbs::LiveNode::open_towards(options.target);
  if (!node) return tl::unexpected(node.error());
  session->node_ = std::move(*node);
  session->stop_ = stop;
  session->polls_ = options.polls;
  nvmf::InitiatorConfig config = initiator_config(options);
  config.cryptography = &session->cryptography_;
  session->initiator_ = std::make_unique<nvmf::Initiator>(*session->node_, config);
  nvmf::Initiator& initiator = *session->initiator_;
  initiator.start();
  const bool is_live =
      session->run_until([&] { return initiator.state() == nvmf::Initiator::State::kLive; });
  if (!is_live && session->is_stopped_) return tl::unexpected(std::string("interrupted"));
  if (!is_live)
    return tl::unexpected(options.target.ip.to_string() + " port " +
                          std::to_string(options.target.port) + ": " + initiator.failure());
  return session;
}

bool HostSession::step(Duration at_most, std::span<const int> descriptors) {
  bool is_readable = false;
  if (polls_)
    node_->spin();
  else
    is_readable = node_->wait(at_most, descriptors);
  initiator_->on_ready();
  return is_readable;
}

void HostSession::try_step() {
  node_->spin();
  initiator_->on_ready();
}

bool HostSession::run_until(const std::function<bool()>& is_over) {
  std::array<int, 1> descriptors{stop_ != nullptr ? stop_->fd() : -1};
  bool looks = true;
  for (u32 round = 1; !is_over(); ++round) {
    if (initiator_->state() == nvmf::Initiator::State::kFailed) return false;
    constexpr u32 kRoundsPerLook = 256;  // a look is a system call
    if (stop_ != nullptr && (looks || round % kRoundsPerLook == 0) && stop_->take()) {
      is_stopped_ = true;
      return false;
    }
    looks = step(kStep, std::span(descriptors).first(stop_ != nullptr ? 1 : 0));
  }
  return true;
}

Expected<void> HostSession::get_log(u8 page, u64 offset, const nvmf::DataSlice& data) {
  nvme::Command command{.opcode = static_cast<u8>(nvme::AdminOpcode::kGetLogPage)};
  const u32 dwords = data.bytes / 4 - 1;
  command.cdw[0] = page | (dwords & 0xffff) << 16;
  command.cdw[1] = dwords >> 16;
  command.cdw[2] = static_cast<u32>(offset);
  command.cdw[3] = static_cast<u32>(offset >> 32);
  initiator_->submit_admin(command, data, 0);
  nvmf::Initiator::Result result;
  if (!run_until([&] { return initiator_->poll_result(result); }))
    return tl::unexpected(is_stopped_ ? std::string("interrupted") : initiator_->failure());
  if (result.status != nvme::Status::kSuccess)
    return tl::unexpected("Get Log Page: " + nvmf::describe(result.status));
  return {};
}

void HostSession::close() {
  initiator_->disconnect();
  const Time limit = node_->now() + kCloseLimit;
  while (initiator_->state() == nvmf::Initiator::State::kLive && node_->now() < limit) step(ms(10));
}

}  // namespace verbena::nvmf_program
