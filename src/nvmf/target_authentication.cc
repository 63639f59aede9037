// Authentication Send and Authentication Receive of a Target. NVMe over Fabrics 1.1a, 3.3.
#include "base/check.h"
#include "nvmf/target.h"

namespace verbena::nvmf {
namespace {

// How long a host whose authentication has failed may still ask why.
constexpr Duration kFailureLimit = sec(1);

std::optional<nvme::Status> wrong_in(const nvme::AuthCommand& command) {
  if (command.is_nvme() && command.length > 0 && command.length <= nvme::kMaxAuthMessage)
    return std::nullopt;
  return nvme::Status::kInvalidField;
}

}  // namespace

// Returns the AUTHREQ of Connect's response.
u32 Target::begin_authentication(Queue& queue) {
  const Subsystem* const subsystem = queue.controller->subsystem();
  const std::string& host = queue.controller->host().host_nqn;
  const CHAPKeys* const keys = subsystem == nullptr ? nullptr : subsystem->keys_of(host);
  if (keys == nullptr) return 0;
  CHECK(config_.cryptography != nullptr);
  queue.authentication = std::make_unique<ControllerAuthentication>(
      *config_.cryptography, *keys, config_.authentication,
      CHAPParties{.host_nqn = host, .subsystem_nqn = subsystem->nqn()});
  queue.authenticate_by = node_.now() + config_.authentication_limit;
  must_arm_ = true;
  return nvme::kAuthenticationIsRequired;
}

void Target::on_authentication_send(Queue& queue, u32 number, u32 capsule_bytes) {
  Task& task = queue.tasks[number];
  const auto command = nvme::AuthCommand::from(task.command);
  if (const auto wrong = wrong_in(command)) return answer(queue, number, *wrong);
  if (const auto wrong = find_data(task, capsule_bytes, command.length))
    return answer(queue, number, *wrong);
  if (task.capsule_data != nullptr) return on_authentication_message(queue, number);
  fetch_admin_data(queue, number);
}

void Target::on_authentication_message(Queue& queue, u32 number) {
  const Task& task = queue.tasks[number];
  queue.authentication->on_message(Bytes(task.capsule_data, task.bytes));
  if (queue.lacks_authentication()) {
    const Duration left =
        queue.authentication->has_failed() ? kFailureLimit : config_.authentication_limit;
    queue.authenticate_by = std::min(queue.authenticate_by, node_.now() + left);
    must_arm_ = true;
  }
  answer(queue, number, nvme::Status::kSuccess);
}

void Target::on_authentication_receive(Queue& queue, u32 number) {
  const auto command = nvme::AuthCommand::from(queue.tasks[number].command);
  if (const auto wrong = wrong_in(command)) return answer(queue, number, *wrong);
  const std::size_t bytes = queue.authentication->next_bytes();
  if (bytes == 0) return answer(queue, number, nvme::Status::kCommandSequenceError);
  if (bytes > command.length || bytes > queue.tasks[number].command.sgl.length)
    return answer(queue, number, nvme::Status::kInvalidField);
  finish_admin(queue, number, {.data = queue.authentication->poll_message()});
}

}  // namespace verbena::nvmf
