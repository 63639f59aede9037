// NICFunction: a virtual function of `verbena nic` and the programs that are attached to it. Each
// program has a UDPLink of its own, so that the kernel steers what comes to it; all of them share
// the function's rates and counters. Not thread-safe: the NIC has one thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/links/raw/vlan_link.h"
#include "host/links/udp_link.h"
#include "host/nic/nic_config.h"
#include "host/nic/nic_filter.h"
#include "host/nic/nic_protocol.h"
#include "host/nic/nic_streams.h"
#include "host/nic/shared_port.h"
#include "host/nic/token_bucket.h"

namespace verbena::host {

struct NICFunctionCounters {
  u64 sent_packets = 0, sent_bytes = 0, received_packets = 0, received_bytes = 0;
  u64 receive_dropped = 0;      // the program did not take them
  u64 refused_connections = 0;  // requests beyond the limit
  u64 broken_rings = 0;         // programs detached, since their ring made no sense
  u64 attached = 0, detached = 0, refused_programs = 0;
  u64 sent_to_groups = 0, received_from_groups = 0;  // packets
  u64 refused_joins = 0;
  std::array<u64, kNICRefusals> refused_sent{}, refused_received{};
  std::array<u64, kTrafficClasses> sent_packets_of_class{}, sent_bytes_of_class{};
};

class NICFunction;

// The functions of a NIC, where one of them sends to another of its VLAN.
class NICVLANs {
 public:
  virtual ~NICVLANs() = default;
  [[nodiscard]] virtual NICFunction* function_at(u16 vlan, const GID& address) = 0;  // or nullptr
};

class NICFunction {
 public:
  // The program at the other end of a control socket.
  struct Program {
    Descriptor socket;
    pid_t pid = 0;
    uid_t user = 0;
    std::unique_ptr<Link> link;
    UDPLink* udp = nullptr;    // the link, or the one below it
    VLANLink* vlan = nullptr;  // the link, if it is one of a VLAN
    Descriptor memory, doorbell_of_nic;
    // The ends of the pipe. The NIC has the reading one, too, so that it is never the only one.
    Descriptor doorbell_of_program, heard_by_program;
    Mapping rings;
    std::optional<ClassReaders> from_program;
    std::optional<FrameRingWriter> to_program;
    SeenFrames seen;
    std::vector<GID> groups{};  // that it has joined
    [[nodiscard]] NICRings& shared() { return *reinterpret_cast<NICRings*>(rings.data()); }
  };

  [[nodiscard]] static Expected<NICFunction> open(const NICFunctionConfig& config,
                                                  NICStreamHost& host);
  // Takes another configuration of the same name and address; programs stay attached.
  void reconfigure(const NICFunctionConfig& config);

  [[nodiscard]] const NICFunctionConfig& config() const { return config_; }
  [[nodiscard]] const LocalAddress& local_address() const { return address_; }
  // The port of its programs' links, where the link is kXDP. It outlives the programs.
  void use(SharedPort* port) { port_ = port; }
  [[nodiscard]] const SharedPort* shared_port() const { return port_; }
  [[nodiscard]] bool admits(uid_t user, gid_t group) const;
  // Whether `wanted` is its name, its address as the configuration has it, or one of its addresses.
  [[nodiscard]] bool is_called(const std::string& wanted) const;
  // A new program, which then has the socket. `wanted_slot`: 0, or where it was attached before.
  [[nodiscard]] Expected<Program*> attach(Descriptor& socket, const ucred& who, u32 wanted_slot,
                                          const std::optional<EncryptionSettings>& encryption);
  void detach(const Program& program);
  // A multicast group that it is in is joined once. EOPNOTSUPP: the function has no multicast.
  [[nodiscard]] Expected<void> join(Program& program, const GID& group);
  void leave(Program& program, const GID& group);
  [[nodiscard]] bool is_full() const { return program_count() >= config_.max_programs; }
  [[nodiscard]] std::size_t program_count() const {
    return programs_.size() + streams_->program_count();
  }
  [[nodiscard]] std::vector<std::unique_ptr<Program>>& programs() { return programs_; }
  [[nodiscard]] NICAttached description_of(
      const Program* program, const std::optional<EncryptionSettings>& encryption) const;

  // Whether another program with an iWARP device may attach to streams().
  [[nodiscard]] Expected<void> admit_streams();
  [[nodiscard]] NICStreams& streams() { return *streams_; }
  // `max_streams`: unless the configuration says how many.
  void limit_streams(u32 max_streams);

  // Takes packets of the programs, up to `bytes`, as far as the rates allow, and gives them to the
  // links: of a higher class first, and in each class of the programs in turn. Returns the bytes
  // that it took.
  [[nodiscard]] u64 send(u64 bytes, Time now, NICVLANs& vlans);
  void flush();
  // Whether any program has something to send.
  [[nodiscard]] bool has_more() { return pending() != 0; }
  // Whether the rates allow any of it.
  [[nodiscard]] bool may_send(Time now);
  [[nodiscard]] bool is_guaranteed(Time now) {
    return guaranteed_.is_limited() && guaranteed_.may_send(now);
  }
  // When it may send what its programs have; never(): they have nothing.
  [[nodiscard]] Time next_due(Time now, const TokenBucket& of_all);
  void note_broken_ring() { ++counters_.broken_rings; }
  // Passes received packets to the programs. Returns false if there were none.
  bool receive(Look look, Time now);
  [[nodiscard]] const std::vector<GID>& addresses() const { return addresses_; }
  [[nodiscard]] bool has_address(const GID& address) const;
  // Gives a frame of the shared port to the program whose QP it names. Returns the program, whose
  // ring is to be published, or nullptr.
  [[nodiscard]] Program* take(const IngressFrame& frame, Time now);
  static void publish(Program& program);
  // Gives a program what another function of this NIC and VLAN sends. It has no ICRC.
  void receive_here(const IngressFrame& frame, Time now);
  // While the NIC polls, programs need not ring.
  void watch();
  void unwatch();

  i64 deficit = 0;  // of the scheduler
  [[nodiscard]] const NICFunctionCounters& counters() const { return counters_; }
  [[nodiscard]] std::string text() const;  // of its state, JSON

 private:
  explicit NICFunction(const NICFunctionConfig& config, LocalAddress address, NICStreamHost& host)
      : config_(config),
        address_(std::move(address)),
        addresses_(address_.all()),
        filter_(filter_of(config)),
        streams_(std::make_unique<NICStreams>(host, addresses_, address_.interface_index)) {
    set_rates();
  }
  [[nodiscard]] NICFilter filter_of(const NICFunctionConfig& config) const;
  void set_rates();
  [[nodiscard]] Expected<void> open_link(Program& program, u64 random,
                                         const std::optional<EncryptionSettings>& encryption) const;
  [[nodiscard]] Expected<void> refuse_if_full();
  // Puts the program's link on the UDP link, which the kernel steers by.
  [[nodiscard]] Expected<void> use_link(Program& program, std::unique_ptr<UDPLink> link) const;
  void share_management();
  void apply_multicast();
  // The classes of which any program has a packet: bit i for class i.
  [[nodiscard]] u32 pending();
  [[nodiscard]] u64 send_of_class(u32 traffic_class, u64 bytes, Time now, NICVLANs& vlans);
  [[nodiscard]] u64 send_of(Program& program, u32 traffic_class, u64 bytes, Time now,
                            NICVLANs& vlans);
  // `traffic_class`: of the ring.
  [[nodiscard]] u64 send_record(Program& program, u32 traffic_class,
                                const FrameRingReader::Record& record, Time now, NICVLANs& vlans);
  void note_sent(u64 bytes, u32 traffic_class, const GID& to);
  [[nodiscard]] u32 class_of_streams() const;
  [[nodiscard]] u64 send_streams(u64 bytes, Time now);
  [[nodiscard]] NICFunction* on_this_nic(const GID& destination, NICVLANs& vlans) const;
  bool receive_of(Program& program, Look look, Time now);
  void check_and_deliver(Program& program, const IngressFrame& frame);
  void deliver(Program& program, const IngressFrame& frame);
  // Adds the packets that a link refused before the NIC saw them.
  static void add_refused(const LinkCounters& of_link, LinkCounters& sum);

  static constexpr std::size_t kStaging = 256 << 10;
  static constexpr std::size_t kWholeBytes = 512;  // shorter packets are copied whole
  static constexpr std::size_t kHeadBytes = 128;   // of longer ones; all that is checked is there

  NICFunctionConfig config_;
  LocalAddress address_;
  std::vector<GID> addresses_;
  SharedPort* port_ = nullptr;
  NICFilter filter_;
  TokenBucket max_, guaranteed_, connections_;
  std::array<TokenBucket, kTrafficClasses> max_of_class_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::size_t next_program_ = 0;
  std::unique_ptr<NICStreams> streams_;
  // Copies of the heads of packets, which no program can change; read until flush(). A function
  // that sends nothing touches none of it.
  std::unique_ptr<std::array<u8, kStaging>> staging_ =
      std::make_unique_for_overwrite<std::array<u8, kStaging>>();
  std::size_t staged_ = 0;
  NICFunctionCounters counters_;
  LinkCounters refused_by_gone_;  // by the links of programs that have ended
};

}  // namespace verbena::host
