// NICStreamOpener: a StreamOpener by `verbena nic`, which owns the TCP sockets: an iWARP device on
// a virtual function. When the NIC ends, all connections end, and nothing opens until a new NIC
// takes the function back.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "host/links/nic/nic_presence.h"
#include "host/links/tcp/ready_call.h"
#include "host/links/tcp/stream_opener.h"
#include "host/nic/nic_stream_protocol.h"

namespace verbena::host {

class NICStreamOpener final : public StreamOpener, public NICPresence {
 public:
  static constexpr Duration kRetryInterval = ms(100);
  static constexpr Duration kAnswerPatience = ms(1000);  // the caller waits for the NIC

  // `poll`: the adapter's, which outlives this. `function`: its name or address.
  [[nodiscard]] static Expected<std::unique_ptr<NICStreamOpener>> open(const std::string& path,
                                                                       const std::string& function,
                                                                       TCPPoll& poll);

  [[nodiscard]] const NICAttached& function() const { return attachment_.attached; }

  [[nodiscard]] Descriptor listen(const TCPEndpoint& at, int backlog) override;
  void close_listener(Descriptor listener) override;
  [[nodiscard]] std::optional<OpenedStream> accept(int listener) override;
  [[nodiscard]] Descriptor connect(const TCPEndpoint& to, const TCPEndpoint& from) override;
  [[nodiscard]] u32 connecting_events() const override { return EPOLLIN; }
  [[nodiscard]] std::optional<OpenedStream> connected(Descriptor& connecting) override;
  [[nodiscard]] Time next_timer() const override { return next_retry_; }
  [[nodiscard]] bool run_due_timers(Time now) override;
  void abandon() override;

 private:
  NICStreamOpener(std::string path, std::string function, TCPPoll& poll)
      : path_(std::move(path)), function_(std::move(function)), ready_(*this, poll) {}
  [[nodiscard]] Expected<void> attach();
  void on_ready(u32 events, Time now);
  [[nodiscard]] Descriptor ask(NICStreamRequest request);
  [[nodiscard]] Descriptor await_answer(u32 number);

  const std::string path_, function_;
  NICStreamAttachment attachment_;
  u32 last_request_ = 0;
  std::map<int, u32> listeners_;  // the request of each
  Time next_retry_ = Time::never();
  ReadyCall<NICStreamOpener, &NICStreamOpener::on_ready> ready_;
};

}  // namespace verbena::host
