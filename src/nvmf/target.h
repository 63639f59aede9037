// Target: the controllers and queues of NVMe over Fabrics subsystems behind one address, as a
// program on an application::Node. It runs live and in the simulator.
//
// A command capsule is a SEND; data goes by RDMA WRITE to, or RDMA READ from, the keyed SGL of the
// command, or comes in the capsule; the response capsule is a SEND, with invalidate if the SGL says
// so. NVMe RDMA Transport 1.0a.
//
// Several targets may serve one address, each on its own node and thread, with stores and
// subsystems of their own and one registry. One of them has all admin queues; connection requests
// for I/O queues go to any.
//
// Contract: the driver calls on_ready() for events of the node and after a controller of the
// registry has ended, and on_store() when a store may have results. Stores and subsystems outlive
// it.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "nvmf/controller_registry.h"
#include "nvmf/target_queue.h"

namespace verbena::nvmf {

struct TargetConfig {
  application::Address listen{};
  std::string address_text{};  // in the discovery log
  nvme::DiscoveryEntry::Provider provider = nvme::DiscoveryEntry::Provider::kUnspecified;
  ControllerLimits limits{};
  application::Content content = application::Content::kBytes;  // of data buffers
  u32 admin_data_bytes = 64 * 1024;  // of each task of an admin queue: the longest log page
  u32 small_buffers = 512, large_buffers = 64;
  Duration connect_limit = sec(10);         // a connection without a Connect command ends then
  Duration authentication_limit = sec(60);  // and one without authentication after Connect
  Cryptography* cryptography = nullptr;     // not nullptr if a host has to authenticate itself
  CHAPPolicy authentication{};
};

struct TargetCounters {
  u64 connections = 0, refused_connections = 0, commands = 0, errors = 0,
      keep_alive_expirations = 0;
  u64 bytes_read = 0, bytes_written = 0;

  TargetCounters& operator+=(const TargetCounters& other);
};

class Target final : public application::Program {
 public:
  Target(application::Node& node, const TargetConfig& config,
         std::shared_ptr<ControllerRegistry> registry = std::make_shared<ControllerRegistry>());
  ~Target() override;

  void add_subsystem(const Subsystem& subsystem);
  [[nodiscard]] verbena::Status start();  // listens

  void on_ready() override;
  void on_store();
  // No new connection or command is taken; outstanding ones end. Then connections are closed.
  void drain();
  [[nodiscard]] bool is_drained() const;
  // The size of a namespace has changed: hosts that asked for events are told.
  void on_namespace_changed(const Subsystem& subsystem, u32 nsid);

  [[nodiscard]] const TargetCounters& counters() const { return counters_; }
  [[nodiscard]] std::vector<SubsystemStats> stats() const;  // in the order of add_subsystem()
  [[nodiscard]] std::size_t controllers() const { return controllers_.size(); }
  [[nodiscard]] std::size_t queues() const { return queues_.size(); }

 private:
  using Queue = TargetQueue;

  // --- connections (target.cc)
  void on_event(const application::Event& event);
  void on_request(const application::Event& event);
  void admit(application::ConnectionId connection, const nvme::RDMARequestData& data);
  void on_closed(Queue& queue);
  void remove_if_idle(Queue& queue);
  void post_capsule_receive(const Queue& queue, u32 task);
  void close_if_drained();
  void on_alarm();
  void end_controller(u16 id);
  void close_queues_of_ended();
  [[nodiscard]] const Subsystem* find_subsystem(std::string_view nqn) const;
  void arm();
  Queue* find(application::ConnectionId connection);

  // --- capsules and Fabrics commands (target.cc)
  void on_capsule(Queue& queue, u32 task, u32 bytes);
  [[nodiscard]] std::optional<nvme::Status> find_data(Task& task, u32 capsule_bytes,
                                                      u32 needed) const;
  void on_fabrics(Queue& queue, u32 task, u32 bytes);
  void on_connect(Queue& queue, u32 task, u32 bytes);
  void on_connect_data(Queue& queue, u32 task);
  [[nodiscard]] AdminAnswer connect_admin(Queue& queue, const nvme::ConnectCommand& command,
                                          const nvme::ConnectData& data);
  [[nodiscard]] AdminAnswer connect_io(Queue& queue, const nvme::ConnectCommand& command,
                                       const nvme::ConnectData& data);
  void on_admin(Queue& queue, u32 task);
  void finish_admin(Queue& queue, u32 task, const AdminAnswer& answer);
  [[nodiscard]] std::vector<nvme::DiscoveryEntry> discovery_for(const std::string& host) const;
  void send_events(Queue& queue);
  Queue* admin_queue_of(const Controller& controller);
  [[nodiscard]] u16 new_controller_id();

  // --- authentication (target_authentication.cc)
  [[nodiscard]] u32 begin_authentication(Queue& queue);
  void on_authentication_send(Queue& queue, u32 task, u32 capsule_bytes);
  void on_authentication_message(Queue& queue, u32 task);
  void on_authentication_receive(Queue& queue, u32 task);

  // --- I/O commands (target_io.cc)
  void on_io(Queue& queue, u32 task, u32 capsule_bytes);
  [[nodiscard]] nvme::Status check_io(Queue& queue, Task& task, u32 capsule_bytes) const;
  void begin_io(Queue& queue, u32 task);
  void begin_transfer(Queue& queue, u32 task);
  void fetch(Queue& queue, u32 task, const application::Slice& into);
  void fetch_admin_data(Queue& queue, u32 task);
  [[nodiscard]] u64 admin_offset(const Queue& queue, u32 task) const;
  void begin_store(Queue& queue, u32 task);
  void begin_dataset_management(Queue& queue, u32 task);
  void on_fetched(Queue& queue, u32 task);
  void finish_store(Queue& queue, u32 task);
  void submit(Queue& queue, u32 task, const BlockStore::Request& request);
  void send_data_and_answer(Queue& queue, u32 task);
  void answer(Queue& queue, u32 task, nvme::Status status, u64 result = 0);
  void queue_answer(Queue& queue, u32 task, nvme::Status status, u64 result);
  void send_answers();
  void send_answer(Queue& queue, u32 task);
  void release(Queue& queue, Task& task);
  void give_back_buffers(Task& task);
  void serve_waiting();
  void poll_store(BlockStore& store);
  [[nodiscard]] std::span<const u8> data_of(const Task& task) const;

  // A request of a store, by its tag. Queues that have closed wait for theirs.
  struct StoreRequest {
    application::ConnectionId queue = 0;
    u32 task = 0;
    BlockStore::Kind kind = BlockStore::Kind::kRead;
  };

  application::Node& node_;
  const TargetConfig config_;
  BufferPool buffers_;
  std::vector<const Subsystem*> subsystems_;
  std::vector<BlockStore*> stores_;
  std::map<application::ConnectionId, std::unique_ptr<Queue>> queues_;
  const std::shared_ptr<ControllerRegistry> registry_;
  u64 ended_ = 0;                                           // as last seen in the registry
  std::map<u16, std::shared_ptr<Controller>> controllers_;  // whose admin queues are here
  std::map<const Subsystem*, CommandCounts> past_counts_;   // of controllers that have ended
  u16 last_controller_ = 0;
  struct TaskId {
    application::ConnectionId queue = 0;
    u32 task = 0;
  };
  std::deque<TaskId> waiting_;  // for a buffer
  // Responses that are encoded and not yet posted. Those of several commands are posted behind the
  // data of all: the node then has lists of equal requests, which cost less than a mixed list.
  std::deque<TaskId> answers_;
  u32 unanswered_bytes_ = 0;  // data that was sent before them
  std::vector<StoreRequest> store_requests_;
  std::vector<u32> free_store_requests_;
  TargetCounters counters_;
  Time armed_ = Time::never();
  bool must_arm_ = true;
  bool serves_waiting_ = false;
  bool drains_ = false;
};

}  // namespace verbena::nvmf
