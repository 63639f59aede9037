// The programs on simulated GPUs' NICs: a prefill instance's writes the blocks of each layer to the
// decode instances' when it is computed, with one notification behind the last layer. They are
// written to application::Node, and use the transfers of the live agents (transfer/flow.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "application/node.h"
#include "transfer/kv_layout.h"
#include "transfer/node_flow.h"

namespace verbena::jobs {

// KVSend: one request's part of a prefill instance.
struct KVSend {
  u32 request = 0;  // of the plan: the notification's tag
  u32 decode = 0;   // the peer's number
  Time begin{}, end{};
  std::vector<u32> from{}, to{};  // blocks
};

class KVSender final : public application::Program {
 public:
  struct Config {
    transfer::KVLayout layout{};
    std::vector<application::Address> peers{};
    std::vector<KVSend> sends{};  // by begin
    bool by_layer = true;
  };
  KVSender(application::Node& node, Config config);
  void on_ready() override;
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

 private:
  struct Peer {
    application::ConnectionId connection = 0;
    std::unique_ptr<transfer::NodeFlow> flow{};
    u64 base = 0;  // of its cache
    bool is_connected = false;
  };
  struct Due {
    Time at{};
    u32 send = 0, layer = 0;
  };
  void on_event(const application::Event& event);
  void start_due();
  void start(const Due& due);
  [[nodiscard]] bool is_connected() const;

  application::Node& node_;
  Config config_;
  application::Region cache_{};
  std::vector<Peer> peers_{};
  std::vector<Due> due_{};  // by time
  std::size_t next_due_ = 0;
  u32 next_transfer_ = 0;
  std::string mistake_{};
};

class KVReceiver final : public application::Program {
 public:
  // `on_complete` gets the request's number: all of it has come from one sender.
  KVReceiver(application::Node& node, const application::Address& at, u64 cache_bytes,
             std::function<void(u32 request, Time now)> on_complete);
  void on_ready() override;

 private:
  static constexpr u32 kReceives = 64;  // of a connection
  void accept(application::ConnectionId connection);
  void post_receive(application::ConnectionId connection, u32 slot);

  application::Node& node_;
  application::Region cache_{};
  std::map<application::ConnectionId, application::Region> inboxes_{};
  std::function<void(u32, Time)> on_complete_;
};

}  // namespace verbena::jobs
