// NICServer: the process that owns the links of all virtual functions. Programs attach to it by a
// Unix socket and exchange frames with it in shared rings; it checks each frame, and sends
// in the order of nic_scheduler.h. It trusts nothing that a program can write.
//
// One thread. It polls while there is something to do, and for kSpin after, unless programs want
// its core; then it sleeps until a doorbell or a link wakes it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "host/nic/nic_function.h"
#include "host/nic/nic_scheduler.h"
#include "host/progress/core_contention.h"

namespace verbena::host {

class NICServer final : private NICVLANs {
 public:
  static constexpr Duration kSpin = us(50);
  static constexpr u32 kMaxControls = 256;  // control sockets that have not asked yet

  // Listens, and opens all functions.
  [[nodiscard]] static Expected<std::unique_ptr<NICServer>> open(const NICConfig& config);
  ~NICServer() override;

  // Runs until `stop` is readable.
  void run(int stop, const std::function<void()>& between);
  // Takes another configuration while it runs. Functions that are in both keep their programs; the
  // programs of the others are detached.
  [[nodiscard]] Expected<void> reconfigure(const NICConfig& config);
  [[nodiscard]] std::string text() const;  // JSON

 private:
  explicit NICServer(const NICConfig& config) : config_(config), scheduler_(config.rate_bps) {}
  [[nodiscard]] Expected<void> listen();
  [[nodiscard]] Expected<void> open_streams();
  void watch_descriptor(int fd);
  void watch_program(const NICFunction::Program& program);
  void detach(NICFunction& function, const NICFunction::Program& program);
  void accept_controls();
  void serve_controls(Time now);
  [[nodiscard]] bool answer_control(Descriptor& socket);
  void attach_streams(Descriptor socket, const NICAttach& request, const ucred& who);
  void attach(Descriptor socket, const NICAttach& request, const ucred& who);
  [[nodiscard]] NICFunction* function_at(u16 vlan, const GID& address) override;
  void answer_status(const Descriptor& socket) const;
  void answer_with(const Descriptor& socket, const NICAttached& answer);
  // Answers the programs, and detaches those that have ended.
  void serve_programs();
  static void answer_program(NICFunction& function, NICFunction::Program& program);
  [[nodiscard]] NICFunction* function_for(const NICAttach& request, const ucred& who);
  bool transmit(Time now);
  bool receive(Look look, Time now);
  bool serve_streams(Time now);
  bool receive_of(SharedPort& port, Time now);
  // Opens the XDP ports of functions with these addresses; ports that are open take these alone.
  [[nodiscard]] Expected<void> open_ports(const std::vector<LocalAddress>& users);
  [[nodiscard]] SharedPort* port_on(u32 interface_index);
  void hand_out_ports();  // and closes those that no function needs
  void offer_core(Time now);
  bool sleep(Time now);
  bool wait_for_events(int wait_ms);
  [[nodiscard]] Time next_due(Time now);

  NICConfig config_;
  NICScheduler<NICFunction> scheduler_;
  CoreContention contention_;
  Descriptor listener_, poll_;
  std::vector<Descriptor> controls_;  // that have not asked yet
  NICStreamHost streams_;
  std::vector<std::unique_ptr<SharedPort>> ports_;  // end after the functions
  std::vector<NICFunction> functions_;
};

}  // namespace verbena::host
