// PSPStage: encryption as a stage of a UDP link: all that it sends and receives is PSP in transport
// mode around RoCEv2. It has the associations of this process to the processes of its peers, and
// holds the first packets to a process until the key is agreed. Off, a link has none.
// Not thread-safe, but that the KeyAgent's thread works beside it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "faults/held_frame.h"
#include "host/encryption/key_agent.h"
#include "host/encryption/psp_notice.h"
#include "host/encryption/psp_receiver.h"
#include "host/encryption/psp_sender.h"
#include "host/links/link.h"

namespace verbena::host {

class PSPStage {
 public:
  static constexpr std::size_t kMaxHeld = 1024;  // frames that wait for keys
  static constexpr Duration kNoticeInterval = ms(10);

  // `slot`: of this process. `vni`: of the virtual network that packets carry; nullopt: none.
  // Associations of its owner before are valid no more.
  [[nodiscard]] static Expected<std::unique_ptr<PSPStage>> open(const EncryptionSettings& settings,
                                                                const LocalAddress& address,
                                                                u32 slot, std::optional<u32> vni);

  [[nodiscard]] u16 port() const { return settings_.port; }
  [[nodiscard]] int fd() const { return agent_->fd(); }  // readable: take_keys()

  // Returns the association for the frame, or nullptr if there is none yet. Then the frame is held,
  // or dropped and counted if too many are held.
  [[nodiscard]] PSPSender* sender_for(const EgressFrame& frame, LinkCounters& counters);
  [[nodiscard]] bool has_keys() const { return agent_->has_agreed(); }
  // Takes the keys that were agreed. Returns the frames that waited for them, to be sent before all
  // later ones.
  [[nodiscard]] std::vector<faults::HeldFrame> take_keys(LinkCounters& counters);

  // Decrypts the frame. Returns false if it is not authentic; then it is counted.
  [[nodiscard]] bool open_frame(IngressFrame& frame, LinkCounters& counters);
  // Returns the notice to the sender of the frame that was refused last; once, and not too often.
  [[nodiscard]] std::optional<PSPNotice> take_notice(Time now);
  void on_notice(const PSPNotice& notice);

  void add_counters(LinkCounters& counters) const;  // the agent's
  void leave() { agent_->stop(); }
  void abandon() { agent_->abandon(); }

 private:
  struct TargetHash {
    std::size_t operator()(const AssociationTarget& target) const;
  };
  struct Outgoing {
    std::unique_ptr<PSPSender> sender;  // nullptr: no key yet
    bool is_asked_for = false;
    std::deque<faults::HeldFrame> held{};
  };

  PSPStage(const OpenSSL& ssl, const EncryptionSettings& settings, u32 slot, HostKeys keys,
           std::unique_ptr<TLSCredentials> credentials, std::optional<u32> vni)
      : ssl_(ssl),
        settings_(settings),
        slot_(slot),
        keys_(std::move(keys)),
        credentials_(std::move(credentials)),
        vni_(vni),
        receiver_(ssl, keys_, vni) {}
  void ask_for(const AssociationTarget& target, Outgoing& outgoing);
  void hold(const EgressFrame& frame, Outgoing& outgoing, LinkCounters& counters);
  [[nodiscard]] Expected<void> open_capture(const std::string& interface);
  void log_key(const KeyAgent::Agreed& agreed) const;

  const OpenSSL& ssl_;
  const EncryptionSettings settings_;
  const u32 slot_;
  HostKeys keys_;
  std::unique_ptr<TLSCredentials> credentials_;
  const std::optional<u32> vni_;
  PSPReceiver receiver_;
  std::unique_ptr<PSPCapture> capture_;  // nullptr: none is wanted
  std::unique_ptr<KeyAgent> agent_;      // after what it refers to
  std::unordered_map<AssociationTarget, Outgoing, TargetHash> outgoing_;
  std::size_t held_ = 0;
  AssociationTarget last_target_{};
  Outgoing* last_ = nullptr;
  std::optional<PSPNotice> notice_;
  Time next_notice_;
};

}  // namespace verbena::host
