// UDPSender: passes bursts to the kernel. If the network does not take a burst within a few
// milliseconds, it is dropped and counted: the transports above recover from loss.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "host/links/burst_assembler.h"
#include "host/links/link.h"
#include "host/links/send_message.h"
#include "host/links/source_ports.h"
#include "host/network/local_address.h"

namespace verbena::host {

class UDPSender {
 public:
  // Frames from other addresses than the ports' are dropped. Ports and counters outlive it.
  UDPSender(const LocalAddress& address, std::vector<SourcePorts*> ports, LinkCounters& counters);

  // `around`: what encapsulates it, or nullptr.
  void append(const EgressFrame& frame, Encapsulation* around = nullptr);
  void flush();
  [[nodiscard]] bool may_wait() const { return assembler_.may_wait(); }  // as Link's

 private:
  static constexpr std::size_t kMaxUnsegmented = 16;

  SourcePorts* ports_for(const EgressFrame& frame) const;
  u32 max_segment_size(const GID& destination) const;
  void send_run(std::span<const Burst> run);  // all from one socket, with one hop limit
  void prepare(std::span<const Burst> run, std::size_t from);
  void on_refused(const Burst& burst);  // by the kernel, errno says why
  bool wait_for_room(int fd);           // in the transmit queue
  void send_one_by_one(const Burst& burst);
  void count_sent(const Burst& burst);

  u32 mtu_, interface_index_;
  std::vector<SourcePorts*> ports_;
  LinkCounters& counters_;
  BurstAssembler assembler_;
  std::array<SendMessage, BurstAssembler::kMaxBursts> messages_;
  std::array<mmsghdr, BurstAssembler::kMaxBursts> headers_{};
  bool may_wait_ = true;          // once in a flush
  SourcePort* steady_ = nullptr;  // that is to be connected once all bursts have gone
  // Where the kernel would not cut a burst; a ring, the oldest is forgotten.
  std::array<GID, kMaxUnsegmented> unsegmented_{};
  u32 unsegmented_count_ = 0;
  std::unique_ptr<u8[]> flat_;  // one burst in one piece, for send_one_by_one()
};

}  // namespace verbena::host
