#include "host/links/tcp/tcp_link.h"

#include <cerrno>

namespace verbena::host {

Expected<std::unique_ptr<TCPLink>> TCPLink::open(u64 random) {
  Expected<TCPPoll> poll = TCPPoll::open();
  if (!poll) return tl::unexpected(poll.error());
  Expected<ProcessChannel> channel = ProcessChannel::claim(random);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<TCPLink>(new TCPLink(std::move(*poll), std::move(*channel)));
}

Expected<void> TCPLink::join_multicast(const GID&) {
  return failure(EOPNOTSUPP, "iWARP has no multicast");
}

void TCPLink::abandon() {
  channel_.close();
  poll_.close();
}

}  // namespace verbena::host
