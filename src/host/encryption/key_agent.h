// KeyAgent: agrees on the keys of PSP associations with other hosts, in a thread of its own, so
// that no packet waits for a handshake of another. It asks for the keys of associations to peers,
// asks again before they expire, and answers the questions of peers from HostKeys. Requests and
// agreed keys cross by two queues under a lock; fd() wakes the owner.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "host/encryption/key_connection.h"
#include "host/encryption/peers_told.h"
#include "host/network/local_address.h"

namespace verbena::host {

// An association of this host's to a process of a peer.
struct AssociationTarget {
  AssociationEnds ends{};
  u16 slot = 0;
  friend bool operator==(const AssociationTarget&, const AssociationTarget&) = default;
};

struct KeyAgentCounters {
  std::atomic<u64> agreed{0};   // handshakes in which this host got a key
  std::atomic<u64> issued{0};   // in which it gave one
  std::atomic<u64> failed{0};   // as the side that asks
  std::atomic<u64> refused{0};  // as the side that is asked: by TLS, or as there were too many
};

class KeyAgent {
 public:
  static constexpr std::size_t kMaxConnections = 128;
  static constexpr std::size_t kMaxTargets = 8192;
  static constexpr Duration kMinInterval = ms(500);  // between two handshakes for one target

  struct Parts {
    const OpenSSL& ssl;
    HostKeys& keys;
    const TLSCredentials& credentials;
    const EncryptionSettings& settings;
    u32 interface_index = 0;
  };
  // Listens on the TCP port at each address. What `parts` refers to outlives it.
  [[nodiscard]] static Expected<std::unique_ptr<KeyAgent>> start(const Parts& parts,
                                                                 std::span<const GID> addresses);
  ~KeyAgent() { stop(); }

  // Asks for a new key, now or when kMinInterval has gone by. Never blocks for long.
  void request(const AssociationTarget& target);
  struct Agreed {
    AssociationTarget target;
    std::optional<IssuedAssociation> issued;  // nullopt: the peer could not be agreed with
    std::string error;
  };
  // Takes what has been agreed since; empties fd().
  [[nodiscard]] std::vector<Agreed> take_agreed();
  [[nodiscard]] bool has_agreed() const { return has_agreed_.load(std::memory_order_relaxed); }
  [[nodiscard]] int fd() const { return result_event_.get(); }  // readable: there is some
  [[nodiscard]] const KeyAgentCounters& counters() const { return counters_; }

  void stop();     // ends the thread
  void abandon();  // in a child after fork(), where there is no thread

 private:
  struct Target {
    AssociationTarget target;
    Time due;          // of the next question; never(): one is on its way
    Time earliest{};   // that kMinInterval allows
    Time expires{};    // of the key that is there
    u32 failures = 0;  // in a row
  };

  explicit KeyAgent(const Parts& parts) : parts_(parts) {}
  [[nodiscard]] Expected<void> listen_on(const GID& address);
  [[nodiscard]] Expected<void> start_thread();
  void run();
  void accept_from(const Descriptor& listener, Time now);
  void take_requests(Time now);
  void begin_due(Time now);
  void begin(Target& target, Time now);
  void serve(KeyConnection& connection, Time now);
  void on_failure(const AssociationTarget& target, std::string why, Time now);
  void on_agreed(const AssociationTarget& target, const IssuedAssociation& issued, Time now);
  void post(Agreed agreed);
  [[nodiscard]] Target* find(const AssociationTarget& target);
  [[nodiscard]] Time next_due() const;

  Parts parts_;
  std::vector<Descriptor> listeners_;
  std::vector<KeyConnection> connections_;
  std::vector<Target> targets_;
  PeersTold told_;    // by the thread
  std::mutex mutex_;  // of the two queues
  std::vector<AssociationTarget> requests_;
  std::vector<Agreed> agreed_;
  std::atomic<bool> has_agreed_{false};  // agreed_ is not empty
  Descriptor wake_event_, result_event_;
  KeyAgentCounters counters_;
  std::atomic<bool> stopping_{false};
  pthread_t thread_{};
  bool running_ = false;
};

// One handshake of a process that has no agent, to see whether and how a peer encrypts. Waits.
[[nodiscard]] Expected<IssuedAssociation> agree_once(const OpenSSL& ssl,
                                                     const TLSCredentials& credentials,
                                                     const EncryptionSettings& settings,
                                                     const AssociationEnds& ends,
                                                     u32 interface_index);

}  // namespace verbena::host
