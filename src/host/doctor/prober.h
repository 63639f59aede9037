// Prober: real RoCEv2 packets from UDP port 4791 of our addresses, to ourselves or to a peer, and
// what comes back. It shares the port with all programs of this user, as they do among themselves.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/time.h"
#include "host/doctor/echo.h"
#include "host/links/udp_link.h"

namespace verbena::host {

struct ProbeResult {
  Duration round_trip;
  u8 traffic_class = 0;  // that the answer arrived with
  u8 hop_limit = 0;
  std::optional<EchoNote> note;  // what a doctor there says of our question
};

struct Probe {
  GID destination{};
  u8 traffic_class = 0, answer_traffic_class = 0;
  std::size_t payload_bytes = kMADSize;  // only doctors answer to more than kMADSize
};

class Prober {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<Prober>> open(const LocalAddress& address);

  // Sends from our address of the destination's family. Returns nullopt if no answer comes in time.
  [[nodiscard]] std::optional<ProbeResult> exchange(const Probe& probe, Duration patience);
  // Returns our address of that family, or nullopt if there is none.
  [[nodiscard]] std::optional<GID> source_for(const GID& destination) const;
  // Whether a packet for `other`'s QPs reaches `other` by the kernel's steering, not by us.
  [[nodiscard]] bool is_steered_to(Prober& other, Duration patience);

  // Answers others until `stop` is readable; calls `answered` after each answer.
  void serve(int stop, const std::function<void(const GID& asker)>& answered);

 private:
  Prober(const LocalAddress& address, std::unique_ptr<UDPLink> link)
      : address_(address), link_(std::move(link)) {}
  [[nodiscard]] CommId own_id() const;
  void send(const EgressFrame& frame);
  bool wait(Time deadline, int stop);  // false: it is too late, or `stop` is readable
  bool answer(const IngressFrame& frame);

  LocalAddress address_;
  std::unique_ptr<UDPLink> link_;
};

}  // namespace verbena::host
