// Authentication of an Initiator's queues, after their Connect. NVMe over Fabrics 1.1a, 6.2.
#include "nvmf/initiator.h"

namespace verbena::nvmf {

// A host that wants the controller to authenticate itself does not trust one that does not ask.
bool Initiator::must_authenticate(const nvme::Completion& connect) const {
  return (connect.result & nvme::kAuthenticationIsRequired) != 0 ||
         (config_.keys && config_.keys->controller);
}

void Initiator::begin_authentication(Queue& queue) {
  if (!config_.keys) {
    is_final_ = !was_live_;
    return lose("the target requires authentication, and this host has no key");
  }
  authentication_ = std::make_unique<HostAuthentication>(
      *config_.cryptography, *config_.keys, config_.authentication,
      CHAPParties{.host_nqn = config_.host_nqn, .subsystem_nqn = config_.subsystem_nqn},
      ++last_transaction_);
  send_authentication(queue);
}

// Sends the message that there is, or asks for the controller's next one.
void Initiator::send_authentication(Queue& queue) {
  const std::vector<u8> message = authentication_->poll_message();
  awaits_message_ = message.empty();
  u32 bytes = nvme::kMaxAuthMessage;
  if (awaits_message_) {
    std::ranges::fill(scratch_.bytes.first(bytes), u8{0});
  } else {
    bytes = static_cast<u32>(message.size());
    std::ranges::copy(message, scratch_.bytes.begin());
  }
  nvme::Command command;
  nvme::AuthCommand{.length = bytes}.put_into(
      command, awaits_message_ ? nvme::FabricsType::kAuthenticationReceive
                               : nvme::FabricsType::kAuthenticationSend);
  send(queue, command, {scratch_.address, bytes, scratch_.l_key, scratch_.r_key},
       {.owner = Owner::kSetUp});
}

void Initiator::on_authentication(Queue& queue, const nvme::Completion& completion) {
  if (awaits_message_)
    authentication_->on_message(Bytes(scratch_.bytes).first(nvme::kMaxAuthMessage));
  if (!authentication_->is_over()) return send_authentication(queue);
  const auto done = std::move(authentication_);
  if (done->is_authenticated()) return finish_set_up(queue, completion);
  is_final_ = !was_live_;
  lose("authentication failed: " + done->failure());
}

}  // namespace verbena::nvmf
