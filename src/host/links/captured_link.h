// CapturedLink: a Link whose frames are also written to a capture, both ways, as they are on the
// wire: frames that a fault has dropped above it never come here.
#pragma once

#include <memory>

#include "host/capture/capture_file.h"
#include "host/links/link.h"

namespace verbena::host {

class CapturedLink final : public Link {
 public:
  // The file outlives it.
  CapturedLink(std::unique_ptr<Link> below, CaptureFile& file, u32 interface)
      : below_(std::move(below)), file_(file), interface_(interface) {}

  void append(const EgressFrame& frame) override;
  void flush() override;
  [[nodiscard]] bool may_wait() const override { return below_->may_wait(); }
  [[nodiscard]] bool receive(Look look) override { return below_->receive(look); }
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] Time next_timer() const override { return below_->next_timer(); }
  [[nodiscard]] std::span<const int> descriptors() const override { return below_->descriptors(); }
  [[nodiscard]] bool on_listening(Listening listening) override {
    return below_->on_listening(listening);
  }
  [[nodiscard]] Expected<void> join_multicast(const GID& group) override {
    return below_->join_multicast(group);
  }
  void leave_multicast(const GID& group) override { below_->leave_multicast(group); }
  void leave() override;
  void abandon() override { below_->abandon(); }
  [[nodiscard]] const LinkCounters& counters() const override { return below_->counters(); }

 private:
  std::unique_ptr<Link> below_;
  CaptureFile& file_;
  const u32 interface_;
};

}  // namespace verbena::host
