// Two nodes on either driver, for tests that run the same programs on both.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>

#include "fabric/nodes/simulated_nodes.h"
#include "verbs/live_node.h"

namespace verbena::test {

using application::Address;
using application::Node;

// Two nodes and their drivers' way to go on.
class TwoNodes {
 public:
  virtual ~TwoNodes() = default;
  virtual Node& server() = 0;
  virtual Node& client() = 0;
  virtual Address server_address(u16 port) = 0;
  virtual void run(application::Program& server, application::Program& client,
                   const std::function<bool()>& is_over) = 0;
};

class SimulatedPair final : public TwoNodes {
 public:
  SimulatedPair() : topology_(line()), network_(topology_, {}), nodes_(network_, {{{0, 1, 8}}}) {
    network_.set_application(&nodes_);
  }
  Node& server() override { return nodes_.node(1); }
  Node& client() override { return nodes_.node(0); }
  Address server_address(u16 port) override { return fabric::node_address(1, port); }
  void run(application::Program& server, application::Program& client,
           const std::function<bool()>& is_over) override {
    nodes_.run_on(1, server);
    nodes_.run_on(0, client);
    while (!is_over() && network_.run(end_ = end_ + us(10))) {
    }
    EXPECT_TRUE(is_over());
  }

 private:
  static fabric::Topology line() {
    fabric::Topology topology;
    const auto a = topology.add_host(), b = topology.add_host();
    topology.join(a, b, {.rate = gbps(100), .delay = us(1)});
    return topology;
  }
  Time end_{};
  fabric::Topology topology_;
  fabric::Network network_;
  fabric::SimulatedNodes nodes_;
};

class LivePair final : public TwoNodes {
 public:
  LivePair() {
    setenv("VERBENA_ADDRESS", "127.0.0.1", 1);
    server_ = verbs::LiveNode::open_local(server_address(0));
    client_ = verbs::LiveNode::open_towards(server_address(0));
    EXPECT_TRUE(server_ && client_);
  }
  Node& server() override { return *server_.value(); }
  Node& client() override { return *client_.value(); }
  Address server_address(u16 port) override { return {*GID::parse("127.0.0.1"), port}; }
  void run(application::Program& server, application::Program& client,
           const std::function<bool()>& is_over) override {
    const Time limit = server_.value()->now() + sec(20);
    while (!is_over() && server_.value()->now() < limit) {
      (*server_)->wait(us(50));
      server.on_ready();
      (*client_)->wait(us(50));
      client.on_ready();
    }
    EXPECT_TRUE(is_over());
  }

 private:
  verbs::LiveNode::Opened server_{}, client_{};
};

inline std::unique_ptr<TwoNodes> simulated_pair() { return std::make_unique<SimulatedPair>(); }
inline std::unique_ptr<TwoNodes> live_pair() { return std::make_unique<LivePair>(); }

inline std::string driver_name(
    const testing::TestParamInfo<std::unique_ptr<TwoNodes> (*)()>& info) {
  return info.index == 0 ? "Simulated" : "Live";
}

}  // namespace verbena::test
