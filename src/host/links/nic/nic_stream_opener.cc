#include "host/links/nic/nic_stream_opener.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "host/os/clock.h"
#include "host/os/time_slice.h"

namespace verbena::host {
namespace {

// Returns what a message hands over. If that is no connection, errno says why.
std::optional<OpenedStream> stream_of(NICMessage<NICStreamOpened> message) {
  if (message.body.error != 0 || !message.descriptor.is_open()) {
    errno = message.body.error != 0 ? message.body.error : EMFILE;
    return std::nullopt;
  }
  return OpenedStream{std::move(message.descriptor), message.body.ends, message.body.segment_bytes};
}

}  // namespace

Expected<std::unique_ptr<NICStreamOpener>> NICStreamOpener::open(const std::string& path,
                                                                 const std::string& function,
                                                                 TCPPoll& poll) {
  set_time_slice(kShortTimeSlice);  // the NIC may need the core of the thread that polls
  std::unique_ptr<NICStreamOpener> opener(new NICStreamOpener(path, function, poll));
  if (Expected<void> attached = opener->attach(); !attached)
    return tl::unexpected(attached.error());
  return opener;
}

Expected<void> NICStreamOpener::attach() {
  Expected<NICStreamAttachment> attachment = attach_streams_to_nic(path_, function_);
  if (!attachment) return tl::unexpected(attachment.error());
  attachment_ = std::move(*attachment);
  if (ready_.watch(attachment_.socket.get(), EPOLLIN | EPOLLRDHUP)) return {};
  return failure(ENOMEM, "cannot watch the socket of verbena nic");
}

// An answer that comes here is one that nobody awaits any more.
void NICStreamOpener::on_ready(u32 events, Time now) {
  while (receive_nic_message<NICStreamAnswer>(attachment_.socket.get())) {
  }
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0 && errno == EAGAIN) return;
  ready_.forget();
  attachment_.socket.reset();
  note_death();
  next_retry_ = now + kRetryInterval;
}

bool NICStreamOpener::run_due_timers(Time now) {
  if (now < next_retry_) return false;
  next_retry_ = now + kRetryInterval;
  if (!attach()) return false;
  next_retry_ = Time::never();
  note_return();
  return true;
}

Descriptor NICStreamOpener::listen(const TCPEndpoint& at, int backlog) {
  Descriptor listener = ask({.call = NICStreamCall::kListen,
                             .backlog = static_cast<u32>(std::max(backlog, 0)),
                             .ends = {.local = at.address, .local_port = at.port}});
  if (listener.is_open()) listeners_[listener.get()] = last_request_;
  return listener;
}

// Otherwise the NIC could accept a connection meanwhile, and reset it: its peer would not try
// again.
void NICStreamOpener::close_listener(Descriptor listener) {
  const auto found = listeners_.find(listener.get());
  if (found == listeners_.end()) return;
  const u32 number = found->second;
  listeners_.erase(found);
  (void)ask({.call = NICStreamCall::kClose, .closed = number});
}

Descriptor NICStreamOpener::connect(const TCPEndpoint& to, const TCPEndpoint& from) {
  return ask(
      {.call = NICStreamCall::kConnect, .ends = {from.address, to.address, from.port, to.port}});
}

// Without a NIC nobody is there who connects: the caller may ask again.
Descriptor NICStreamOpener::ask(NICStreamRequest request) {
  request.number = ++last_request_;
  if (::send(attachment_.socket.get(), &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      sizeof(request)) {
    errno = ECONNREFUSED;
    return {};
  }
  return await_answer(request.number);
}

Descriptor NICStreamOpener::await_answer(u32 number) {
  const Time end = monotonic_now() + kAnswerPatience;
  for (Time now = monotonic_now(); now < end; now = monotonic_now()) {
    pollfd waiting{.fd = attachment_.socket.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&waiting, 1, static_cast<int>((end - now).ns() / 1'000'000 + 1));
    auto answer = receive_nic_message<NICStreamAnswer>(attachment_.socket.get());
    if (!answer && errno == EAGAIN) continue;
    if (!answer) break;
    if (answer->body.number != number) continue;
    if (answer->body.error != 0) errno = answer->body.error;
    if (answer->body.error == 0 && !answer->descriptor.is_open()) errno = EMFILE;
    return std::move(answer->descriptor);
  }
  errno = ECONNREFUSED;
  return {};
}

// A connection whose descriptor this process has no room for is lost, as TCP's is that nobody
// accepts.
std::optional<OpenedStream> NICStreamOpener::accept(int listener) {
  auto message = receive_nic_message<NICStreamOpened>(listener);
  if (!message) return std::nullopt;
  std::optional<OpenedStream> opened = stream_of(std::move(*message));
  if (!opened) errno = ECONNABORTED;
  return opened;
}

std::optional<OpenedStream> NICStreamOpener::connected(Descriptor& connecting) {
  auto message = receive_nic_message<NICStreamOpened>(connecting.get());
  if (message) return stream_of(std::move(*message));
  if (errno != EAGAIN) errno = ECONNREFUSED;  // the NIC has ended, and may come back
  return std::nullopt;
}

void NICStreamOpener::abandon() {
  attachment_.socket.reset();
  next_retry_ = Time::never();
}

}  // namespace verbena::host
