// NICLink: a Link whose frames go through `verbena nic`, in shared rings: a device of this process
// on a virtual function. The NIC checks the packets that the device sends. It has also checked
// those that arrive: they carry no ICRC. When the NIC ends, the link is dead until a new one takes
// the function back at the same place, so that QPNs stay.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "host/links/link.h"
#include "host/links/nic/nic_presence.h"
#include "host/nic/nic_protocol.h"

namespace verbena::host {

class NICLink final : public Link, public NICPresence {
 public:
  static constexpr Duration kRetryInterval = ms(100);

  // `function`: its name or address.
  [[nodiscard]] static Expected<std::unique_ptr<NICLink>> open(const std::string& path,
                                                               const std::string& function);
  ~NICLink() override { leave(); }

  [[nodiscard]] const NICAttached& function() const { return attachment_.attached; }

  void append(const EgressFrame& frame) override;
  [[nodiscard]] Trains takes() const override { return Trains::kYes; }
  void flush() override;
  [[nodiscard]] bool may_wait() const override { return may_wait_; }
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] Time next_timer() const override { return next_retry_; }
  [[nodiscard]] std::span<const int> descriptors() const override { return descriptors_; }
  [[nodiscard]] bool on_listening(Listening listening) override;
  [[nodiscard]] Expected<void> join_multicast(const GID& group) override;
  void leave_multicast(const GID& group) override;
  void leave() override;
  void abandon() override { leave(); }
  [[nodiscard]] const LinkCounters& counters() const override { return counters_; }

 private:
  NICLink(std::string path, std::string function)
      : path_(std::move(path)), function_(std::move(function)) {}
  [[nodiscard]] Expected<void> attach(u32 wanted_slot);
  [[nodiscard]] NICRings& rings() { return *reinterpret_cast<NICRings*>(attachment_.rings.data()); }
  static constexpr u32 kMaxWaiting = 64;  // packets, as many as a link's burst takes
  // The NIC sends so much in one call, while this side copies the rest.
  static constexpr u32 kEnoughBytes = 60u << 10;
  bool append_packet(const EgressFrame& frame, u32 packet);
  void notice_death();
  void try_to_return(Time now);

  std::string path_, function_;
  NICAttachment attachment_{};
  std::optional<ClassWriters> writer_;
  std::optional<FrameRingReader> reader_;
  std::vector<GID> groups_;  // that the device has joined
  Descriptor poll_;          // an epoll of the doorbell and the socket, which may become others
  std::array<int, 1> descriptors_{-1};
  FrameRingReader::Record record_;
  Time next_retry_ = Time::never();
  u32 waiting_ = 0, waiting_bytes_ = 0;  // packets that are not published
  bool may_wait_ = true;
  u32 looks_ = 0;
  bool is_alive_ = false, has_left_ = false;
  LinkCounters counters_;
};

}  // namespace verbena::host
