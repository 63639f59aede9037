// UDPLink: RoCEv2 over ordinary UDP sockets; needs no privilege. Port 4791 of each address of a
// LocalAddress. Shares the port with the other processes of this user
// (PortGroup): frames for their QPs that come here are handed on to them, once.
//
// While one UDP port of one host keeps sending, a socket of its own that is connected to it
// (`follower`) receives its datagrams. The kernel then knows where the next datagram goes and looks
// up no route, which is a tenth of the cost of a small datagram.
//
// If it encrypts, all this is true of PSP's port, and each packet is PSP's (PSPStage): nothing else
// is received.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "host/cm/mad_router.h"
#include "host/encryption/psp_stage.h"
#include "host/links/datagram_receiver.h"
#include "host/links/link.h"
#include "host/links/multicast_groups.h"
#include "host/links/udp_sender.h"
#include "host/links/vxlan_stage.h"
#include "host/network/local_address.h"
#include "host/os/error.h"
#include "host/sharing/directory.h"
#include "host/sharing/port_group.h"

namespace verbena::host {

class UDPLink final : public Link {
 public:
  // Bounded in time. `random`: where the search for a free slot begins.
  [[nodiscard]] static Expected<std::unique_ptr<UDPLink>> open(
      const LocalAddress& address, u64 random,
      const std::optional<EncryptionSettings>& encryption = std::nullopt);
  // The same with a directory of one's own; all that share the port on this address must use it.
  [[nodiscard]] static Expected<std::unique_ptr<UDPLink>> open(
      const LocalAddress& address, u64 random, Directory directory,
      const std::optional<EncryptionSettings>& encryption = std::nullopt);
  // The same for the virtual network `vni`: in VXLAN, or encrypted, with the VNI in PSP's cookie.
  [[nodiscard]] static Expected<std::unique_ptr<UDPLink>> open_in_network(
      const LocalAddress& address, u64 random, u32 vni,
      const std::optional<EncryptionSettings>& encryption);
  // For a VLANLink that stands on it: sends nothing, and refuses the frames of its sockets, because
  // the kernel gives them frames without a tag.
  [[nodiscard]] static Expected<std::unique_ptr<UDPLink>> open_for_vlan(const LocalAddress& address,
                                                                        u64 random);
  ~UDPLink() override { leave(); }

  [[nodiscard]] u32 slot() const { return channel_.slot(); }  // of our QPNs, see qpn_slot.h
  [[nodiscard]] std::span<const int> receivers() const {      // one socket of each address
    return std::span(descriptors_).first(ports_.size());
  }
  [[nodiscard]] u32 receive_buffer_bytes() const { return receive_buffer_bytes_; }
  [[nodiscard]] u16 udp_port() const {
    if (vxlan_) return kVXLANPort;
    return psp_ == nullptr ? kRoCEv2Port : psp_->port();
  }
  [[nodiscard]] SteerBy steered_by() const {
    return psp_ == nullptr ? SteerBy::kDestQP : SteerBy::kSPI;
  }
  // For a raw link that stands on this one. Where this encrypts: the association for a frame, as
  // PSPStage::sender_for(), and a packet that came past the sockets, opened; false: it is not
  // authentic, or no frame for this process.
  [[nodiscard]] bool encrypts() const { return psp_ != nullptr; }
  [[nodiscard]] PSPSender* sealer_for(const EgressFrame& frame) {
    return psp_->sender_for(frame, counters_);
  }
  [[nodiscard]] bool open_raw(IngressFrame& frame, Time now);
  // A frame of the VLAN that came past the sockets; false: it was for another process.
  [[nodiscard]] bool is_for_our_device(const IngressFrame& frame, Time now);
  [[nodiscard]] bool follows() const {  // somebody, on some address
    return std::ranges::any_of(ports_, [](const auto& port) { return port->follower.follows(); });
  }

  void append(const EgressFrame& frame) override {
    if (has_left_) return;
    is_encapsulated_ ? append_encapsulated(frame) : sender_->append(frame);
  }
  [[nodiscard]] Trains takes() const override { return Trains::kYes; }
  void flush() override {
    if (!has_left_) sender_->flush();
  }
  [[nodiscard]] bool may_wait() const override { return !has_left_ && sender_->may_wait(); }
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] QPN upcoming(u32 frames) const override;
  [[nodiscard]] Time next_timer() const override;
  [[nodiscard]] std::span<const int> descriptors() const override { return descriptors_; }
  [[nodiscard]] Expected<void> join_multicast(const GID& group) override;
  void leave_multicast(const GID& group) override { groups_.leave(group); }
  void leave() override;
  void abandon() override;
  [[nodiscard]] const LinkCounters& counters() const override {
    if (psp_ != nullptr) psp_->add_counters(counters_);
    return counters_;
  }

 private:
  // One address.
  struct Port {
    Port(DatagramReceiver r, DatagramReceiver f, std::unique_ptr<SourcePorts> s,
         Directory& directory, ProcessChannel& channel, u32 interface_index, SteerBy steer_by)
        : receiver(std::move(r)),
          follower(std::move(f)),
          sender(std::move(s)),
          group({directory, channel, receiver, *sender, interface_index, steer_by}) {}
    [[nodiscard]] bool poll_frame(IngressFrame& out) {
      return group.poll_early(out) || receiver.poll_frame(out) || follower.poll_frame(out);
    }
    void close();
    DatagramReceiver receiver;
    DatagramReceiver follower;
    bool is_shared = false;  // whom it followed sends to other processes of this host, too
    std::unique_ptr<SourcePorts> sender;
    PortGroup group;
  };

  explicit UDPLink(Directory directory) : directory_(std::move(directory)) {}
  [[nodiscard]] Expected<void> join(const LocalAddress& address, u64 random,
                                    const std::optional<EncryptionSettings>& encryption,
                                    const Directory::Lock& lock);
  [[nodiscard]] static Expected<std::unique_ptr<UDPLink>> start_link(
      std::unique_ptr<UDPLink> link, const LocalAddress& address, u64 random,
      const std::optional<EncryptionSettings>& encryption);
  [[nodiscard]] Expected<void> add_port(const GID& address, u32 interface_index,
                                        const Directory::Lock& lock);
  void start(const LocalAddress& address);
  void leave(const Directory::Lock* lock);  // nullptr: it could not be had
  void hand_on_the_rest();

  // Sources have the order of descriptors(): the ports' receivers, their followers, the processes,
  // the groups.
  [[nodiscard]] bool is_idle_follower(std::size_t source) const;
  std::size_t next_quiet();
  bool receive_from(std::size_t source);
  bool receive_from_port(std::size_t index);
  bool receive_followed(std::size_t index);
  void follow_steady(std::size_t index);
  bool receive_from_processes();
  bool poll_multicast(IngressFrame& out);
  bool poll_taken_over(IngressFrame& out);
  bool is_for_us(Port& port, IngressFrame& frame, Time now);
  bool is_for_our_device(Port& port, const IngressFrame& frame, Time now);
  [[nodiscard]] SteerBy steered_by(const GID& address) const;
  void append_encapsulated(const EgressFrame& frame);
  // Decapsulates the frame. Returns false if it is refused, or not for us.
  bool open_encapsulated(Port& port, IngressFrame& frame, Time now);
  // Where the link encrypts:
  void take_keys();
  bool open_sealed(Port& port, IngressFrame& frame, Time now);
  bool open_taken_over(IngressFrame& frame);
  void hand_on(Port& port, u32 slot, const IngressFrame& frame, Time now);

  Directory directory_;
  ProcessChannel channel_;
  MADRouter router_{channel_};
  std::vector<std::unique_ptr<Port>> ports_;
  MulticastGroups groups_;
  u32 interface_index_ = 0;
  std::vector<int> descriptors_;
  std::unique_ptr<UDPSender> sender_;
  mutable LinkCounters counters_;
  std::unique_ptr<PSPStage> psp_;    // nullptr: nothing is encrypted
  std::optional<u32> vni_;           // of the virtual network; nullopt: none
  std::optional<VXLANStage> vxlan_;  // of that where nothing is encrypted
  bool is_encapsulated_ = false;     // by one of them, or in a VLAN
  u32 receive_buffer_bytes_ = 0;
  u32 round_ = 0;
  std::vector<u32> quiet_rounds_;  // of each source, in a row, without anything received
  std::size_t favourite_ = 0, next_quiet_ = 0;
  std::size_t first_to_poll_ = 0;  // the ports before it have nothing, not what came early either
  std::optional<IngressFrame> taken_over_;  // from another process; in the channel's buffer
  Time patient_until_;                      // with the queues of others
  bool has_left_ = false;
};

}  // namespace verbena::host
