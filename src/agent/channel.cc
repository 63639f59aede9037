#include "agent/channel.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "transfer/fields.h"

namespace verbena::agent {
namespace {

constexpr std::size_t kHeadBytes = 5;  // length of what follows, type

}  // namespace

void Channel::send(Message::Type type, std::string_view payload) {
  if (!is_open()) return;
  transfer::FieldWriter head;
  head.put(static_cast<u32>(payload.size())).put(static_cast<u8>(type));
  waiting_ += head.bytes();
  waiting_ += payload;
  flush();
  if (waiting_.size() > kMaxWaiting) is_ended_ = true;  // a peer that does not read is lost
}

void Channel::flush() {
  while (!waiting_.empty()) {
    const ssize_t sent = ::send(descriptor(), waiting_.data(), waiting_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) is_ended_ = true;
      return;
    }
    waiting_.erase(0, static_cast<std::size_t>(sent));
  }
}

void Channel::receive() {
  std::array<char, 16384> part;
  while (!is_ended_ && received_.size() < kMaxBytes + kHeadBytes) {
    const ssize_t got = recv(descriptor(), part.data(), part.size(), 0);
    if (got > 0) {
      received_.append(part.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) is_ended_ = true;
    return;
  }
}

std::optional<Message> Channel::poll() {
  if (!is_open()) return std::nullopt;
  receive();
  transfer::FieldReader reader(received_);
  const u32 length = reader.get<u32>();
  const u8 type = reader.get<u8>();
  if (reader.is_good() && length > kMaxBytes) is_ended_ = true;
  if (!reader.is_good() || length > kMaxBytes || received_.size() < kHeadBytes + length) {
    if (is_ended_) close();
    return std::nullopt;
  }
  Message message{static_cast<Message::Type>(type), received_.substr(kHeadBytes, length)};
  received_.erase(0, kHeadBytes + length);
  return message;
}

}  // namespace verbena::agent
