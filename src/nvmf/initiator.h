// Initiator: a host's association with one controller: an admin queue and I/O queues over
// application::Node. It runs live and in the simulator.
//
// It connects, enables the controller, learns its namespaces, connects the I/O queues, and sends
// keep-alives. When a connection is lost, it connects again every `reconnect_delay` and submits
// outstanding requests again, so that users see a delay and no error until `loss_timeout`. Reads,
// writes and the others may be executed twice therefore, as the same hosts of Linux do.
//
// Contract: the driver calls on_ready() for events of the node. Requests end as results of
// poll_result(), in any order. Data of a request lies in one slice of memory that was registered
// with Access::kRemoteReadWrite and that stays valid until its result.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "application/node.h"
#include "nvmf/authentication/host_authentication.h"
#include "wire/nvme/identify.h"

namespace verbena::nvmf {

struct InitiatorConfig {
  application::Address target{};
  std::string subsystem_nqn{};
  std::string host_nqn{};
  std::array<u8, 16> host_id{};
  u16 queue_entries = 128;
  u16 io_queues = 1;
  u16 admin_entries = 32;
  Duration keep_alive = sec(5);  // 0: none
  Duration reconnect_delay = sec(1);
  Duration loss_timeout = sec(600);   // ctrl_loss_tmo; 0: a loss ends it at once
  Duration attempt_timeout = sec(5);  // of each step while it connects
  bool reports_events = false;        // asks for asynchronous events
  std::optional<CHAPKeys> keys{};     // for DH-HMAC-CHAP
  CHAPPolicy authentication{};
  Cryptography* cryptography = nullptr;  // not nullptr if there are keys
};

// A part of memory that the target may access, and its key for that.
struct DataSlice {
  u64 address = 0;
  u32 bytes = 0;
  u32 l_key = 0, r_key = 0;
};

class Initiator final : public application::Program {
 public:
  enum class State : u8 { kIdle, kConnecting, kLive, kWaiting, kFailed };
  struct Request {
    nvme::IOOpcode opcode = nvme::IOOpcode::kRead;
    u32 nsid = 1;
    u64 lba = 0;
    u32 blocks = 0;  // 1 .. 65536 where the command has a range
    DataSlice data{};
    u64 tag = 0;
    u32 cdw11 = 0;        // Dataset Management
    u32 cdw12_flags = 0;  // FUA and its like
  };
  struct Result {
    u64 tag = 0;
    nvme::Status status = nvme::Status::kSuccess;
    u64 value = 0;  // DW0 and DW1
  };

  Initiator(application::Node& node, const InitiatorConfig& config);

  void start();
  void on_ready() override;

  void submit(const Request& request);
  // `command` without CID and SGL. For state kLive only; it ends with an error if that is lost.
  void submit_admin(const nvme::Command& command, const DataSlice& data, u64 tag);
  [[nodiscard]] bool poll_result(Result& out);
  [[nodiscard]] std::optional<u32> poll_event();  // DW0 of an Asynchronous Event

  void disconnect();  // shuts the controller down

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }  // the last one
  [[nodiscard]] const nvme::IdentifyController& controller() const { return controller_; }
  [[nodiscard]] const std::map<u32, nvme::IdentifyNamespace>& namespaces() const {
    return namespaces_;
  }
  [[nodiscard]] u32 max_transfer_bytes() const { return max_transfer_bytes_; }
  [[nodiscard]] std::size_t outstanding() const { return outstanding_ + pending_.size(); }
  [[nodiscard]] u64 reconnects() const { return reconnects_; }
  [[nodiscard]] u32 queues() const { return static_cast<u32>(queues_.size()); }

 private:
  enum class Step : u8 {
    kConnect,
    kReadCapabilities,
    kEnable,
    kWaitReady,
    kIdentify,
    kAskQueues,
    kListNamespaces,
    kIdentifyNamespace,
    kConnectQueues,
    kLive
  };
  enum class Owner : u8 { kFree, kSetUp, kKeepAlive, kEvent, kUser, kAdminUser, kShutdown };
  struct Slot {
    Owner owner = Owner::kFree;
    Request request{};
  };
  struct Queue {
    application::ConnectionId connection = 0;
    u16 qid = 0, entries = 0;
    u16 tail = 0, head = 0;  // of the submission queue
    bool is_ready = false;
    application::Region commands{}, completions{};
    std::vector<Slot> slots{};
    std::vector<u16> free{};
  };

  // --- association (initiator.cc)
  void begin_attempt();
  [[nodiscard]] bool open_queue(u16 qid);
  void lose(std::string why);
  void fail_all();
  void tear_down();
  void finish_disconnect();
  void on_event(const application::Event& event);
  void on_alarm();
  void arm();
  Queue* find(application::ConnectionId connection);
  void on_connected(Queue& queue);
  void send_connect(Queue& queue);
  void on_set_up(Queue& queue, const nvme::Completion& completion);
  void finish_set_up(Queue& queue, const nvme::Completion& completion);
  void next_step(const nvme::Completion& completion);
  void send_step(const nvme::Command& command, u32 bytes);
  void become_live();
  [[nodiscard]] std::span<const u8, nvme::kIdentifySize> page() const;

  // --- authentication (initiator_authentication.cc)
  [[nodiscard]] bool must_authenticate(const nvme::Completion& connect) const;
  void begin_authentication(Queue& queue);
  void send_authentication(Queue& queue);
  void on_authentication(Queue& queue, const nvme::Completion& completion);

  // --- commands (initiator_io.cc)
  [[nodiscard]] static bool has_room(const Queue& queue);
  void send(Queue& queue, nvme::Command command, const DataSlice& data, const Slot& slot);
  [[nodiscard]] bool fits_capsule(const Queue& queue, const nvme::Command& command,
                                  const DataSlice& data) const;
  void send_pending();
  void send_io(Queue& queue, const Request& request);
  void on_response(Queue& queue, u32 receive);
  void finish(Queue& queue, u16 cid, const nvme::Completion& completion);
  void send_keep_alive();
  void send_event_request();

  application::Node& node_;
  const InitiatorConfig config_;
  State state_ = State::kIdle;
  Step step_ = Step::kConnect;
  std::string failure_;
  std::deque<Queue> queues_;       // the admin queue first
  application::Region scratch_{};  // data of set-up commands
  nvme::IdentifyController controller_{};
  std::map<u32, nvme::IdentifyNamespace> namespaces_;
  std::vector<u32> unidentified_;
  std::unique_ptr<HostAuthentication> authentication_;  // of the queue that is set up
  bool awaits_message_ = false;                         // an Authentication Receive is outstanding
  u16 last_transaction_ = 0;
  u64 capabilities_ = 0;
  u16 controller_id_ = nvme::kDynamicController;
  u16 io_entries_ = 0, io_queues_ = 1;
  u32 in_capsule_bytes_ = 0;
  u32 max_transfer_bytes_ = 4096;
  std::deque<Request> pending_;
  std::size_t outstanding_ = 0;
  std::size_t next_queue_ = 1;
  std::deque<Result> results_;
  std::deque<u32> events_;
  Time lost_at_, step_began_, next_attempt_ = Time::never();
  Time next_keep_alive_ = Time::never();
  Time keep_alive_sent_ = Time::never();
  Time next_ready_poll_ = Time::never();
  Time armed_ = Time::never();
  bool was_live_ = false, is_final_ = false;
  u64 reconnects_ = 0;
};

}  // namespace verbena::nvmf
