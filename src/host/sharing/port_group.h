// PortGroup: this process's place among all that receive on UDP port 4791 of one address. Each
// binds its own socket (SO_REUSEPORT); a program in the kernel steers every datagram to the process
// whose slot its destination QPN names (qpn_slot.h). The program speaks of sockets by index: the
// order of bind(), where a closed socket's place is taken by the last one. So every join and leave
// computes the new order from the Directory and attaches a new program, under the Directory's lock.
// After a process was killed the order is not known; then all members are probed (layout_probe.h).
// A process that is alone needs no program, which costs each datagram 0.1 us. Until the next
// process that joins has attached its own program, the kernel chooses between the two at random. A
// process forwards frames that are not its own. Not thread-safe; the adapter's lock guards it.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "faults/held_frame.h"
#include "host/links/datagram_receiver.h"
#include "host/links/source_ports.h"
#include "host/sharing/directory.h"
#include "host/sharing/layout_probe.h"
#include "host/sharing/probe_packet.h"

namespace verbena::host {

class PortGroup {
 public:
  // All of them outlive the group. `receiver` is open and not yet bound.
  struct Parts {
    Directory& directory;
    ProcessChannel& channel;
    DatagramReceiver& receiver;
    SourcePorts& sender;  // probes go out here
    u32 interface_index = 0;
    SteerBy steer_by = SteerBy::kDestQP;
  };
  explicit PortGroup(const Parts& parts) : parts_(parts) {}

  // Binds and joins; `lock` shows that the directory is locked. Bounded in time.
  [[nodiscard]] Expected<void> join(const Directory::Lock& lock);
  // Takes our socket out of the kernel's group, after all its datagrams were received. Afterwards
  // the owner of the receiver forwards the frames that came for others meanwhile, and closes it.
  // `lock` is null if it was not available in time: the others will find out.
  void leave(const Directory::Lock* lock);
  // Takes the next frame that came while we joined, valid until the next call. Returns false if
  // there is none.
  [[nodiscard]] bool poll_early(IngressFrame& out);
  [[nodiscard]] bool has_early() const { return !early_.empty(); }

  // A frame for another live slot came to us: the program is out of date. Starts or goes on with a
  // probe of the layout, at most once in kProbeInterval, and never waits.
  void on_misdirected(Time now);
  // A probe came to our socket: tells the prober.
  void on_probe(const ProbePacket& probe);
  void on_answer(const ProbeAnswer& answer);

 private:
  static constexpr Duration kProbeInterval = ms(50);
  static constexpr std::size_t kMaxEarly = 256;  // what is beyond is lost

  [[nodiscard]] bool attach(const std::vector<Steer>& layout);
  void leave_to(const std::vector<Steer>& rest);
  void send_probe(u32 index);
  [[nodiscard]] bool is_at(u32 index);
  [[nodiscard]] std::vector<Steer> discover();
  void receive_while_joining();
  void finish_probe();
  void store(DirectoryTable& table, const std::vector<Steer>& layout);

  Parts parts_;
  LayoutProbe probe_;
  bool probing_ = false;  // for on_misdirected()
  std::vector<faults::HeldFrame> early_;
  std::size_t next_early_ = 0;
  u64 generation_ = 0;  // of the directory when that probe began
  Time next_probe_;
};

}  // namespace verbena::host
