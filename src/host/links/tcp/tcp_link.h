// TCPLink: the Link of an iWARP adapter. Its QPs have connections of their own (tcp_streams.h), so
// no frame goes through it; it holds the adapter's slot among the processes of this host, and the
// epoll that says when a socket has something.
#pragma once

#include <memory>

#include "base/check.h"
#include "host/links/link.h"
#include "host/links/tcp/tcp_poll.h"
#include "host/sharing/process_channel.h"

namespace verbena::host {

class TCPLink final : public Link {
 public:
  // `random`: where the search for a free slot begins.
  [[nodiscard]] static Expected<std::unique_ptr<TCPLink>> open(u64 random);

  [[nodiscard]] u32 slot() const { return channel_.slot(); }
  [[nodiscard]] TCPPoll& poll() { return poll_; }
  [[nodiscard]] ProcessChannel& channel() { return channel_; }

  void append(const EgressFrame&) override { CHECK_UNREACHABLE(); }
  void flush() override {}
  [[nodiscard]] bool receive(Look) override { return false; }
  [[nodiscard]] bool poll_frame(IngressFrame&, Time) override { return false; }
  [[nodiscard]] std::span<const int> descriptors() const override { return {&descriptor_, 1}; }
  [[nodiscard]] Expected<void> join_multicast(const GID&) override;
  void leave_multicast(const GID&) override {}
  void leave() override { channel_.close(); }
  void abandon() override;
  [[nodiscard]] const LinkCounters& counters() const override { return counters_; }
  // Sets the counters that TCPStreams keeps.
  void set_counters(const LinkCounters& counters) { counters_ = counters; }

 private:
  TCPLink(TCPPoll poll, ProcessChannel channel)
      : poll_(std::move(poll)), channel_(std::move(channel)), descriptor_(poll_.fd()) {}

  TCPPoll poll_;
  ProcessChannel channel_;
  int descriptor_;
  LinkCounters counters_;
};

}  // namespace verbena::host
