// The same application on both drivers of application::Node.
#include "application/key_value.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "fabric/nodes/simulated_nodes.h"
#include "verbs/live_node.h"

namespace verbena {
namespace {

using application::Address;
using application::KeyValueClient;
using application::KeyValueServer;
using application::Node;

constexpr u16 kPort = 7471;

// Two nodes and their drivers' way to go on.
class TwoNodes {
 public:
  virtual ~TwoNodes() = default;
  virtual Node& server() = 0;
  virtual Node& client() = 0;
  virtual Address server_address() = 0;
  virtual void run(application::Program& server, application::Program& client,
                   const std::function<bool()>& is_over) = 0;
};

class SimulatedPair final : public TwoNodes {
 public:
  SimulatedPair() : topology_(line()), network_(topology_, {}), nodes_(network_, {{{0, 1, 2}}}) {
    network_.set_application(&nodes_);
  }
  Node& server() override { return nodes_.node(1); }
  Node& client() override { return nodes_.node(0); }
  Address server_address() override { return fabric::SimulatedNodes::address_of(1, kPort); }
  void run(application::Program& server, application::Program& client,
           const std::function<bool()>& is_over) override {
    nodes_.run_on(1, server);
    nodes_.run_on(0, client);
    while (!is_over() && network_.run(network_.now() + us(10))) {
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
  fabric::Topology topology_;
  fabric::Network network_;
  fabric::SimulatedNodes nodes_;
};

class LivePair final : public TwoNodes {
 public:
  LivePair() {
    setenv("VERBENA_ADDRESS", "127.0.0.1", 1);
    server_ = verbs::LiveNode::open_local(server_address());
    client_ = verbs::LiveNode::open_towards(server_address());
    EXPECT_TRUE(server_ && client_);
  }
  Node& server() override { return *server_.value(); }
  Node& client() override { return *client_.value(); }
  Address server_address() override { return {*GID::parse("127.0.0.1"), kPort}; }
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

class KeyValue : public testing::TestWithParam<std::function<std::unique_ptr<TwoNodes>()>> {};

TEST_P(KeyValue, PutsByMessagesAndGetsByReads) {
  const std::unique_ptr<TwoNodes> nodes = GetParam()();
  KeyValueServer server(nodes->server(), nodes->server_address(), 64);
  KeyValueClient client(nodes->client(), nodes->server_address());
  nodes->run(server, client, [&] { return client.is_connected(); });
  const auto finish = [&] { nodes->run(server, client, [&] { return client.is_done(); }); };
  client.get("absent");
  finish();
  EXPECT_EQ(client.value(), std::nullopt);
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key" + std::to_string(i), value = "value" + std::to_string(i * i);
    client.put(key, value);
    finish();
    client.get(key);
    finish();
    EXPECT_EQ(client.value(), value);
  }
  client.close();
  nodes->run(server, client, [&] { return client.is_closed(); });
}

TEST_P(KeyValue, NobodyListensOnThatPort) {
  const std::unique_ptr<TwoNodes> nodes = GetParam()();
  KeyValueServer server(nodes->server(), nodes->server_address(), 64);
  Address wrong = nodes->server_address();
  ++wrong.port;
  KeyValueClient client(nodes->client(), wrong);
  nodes->run(server, client, [&] { return client.is_closed(); });
  EXPECT_FALSE(client.is_connected());
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, KeyValue,
    testing::Values([] { return std::unique_ptr<TwoNodes>(new SimulatedPair); },
                    [] { return std::unique_ptr<TwoNodes>(new LivePair); }),
    [](const auto& tested) { return tested.index == 0 ? "Simulated" : "Live"; });

}  // namespace
}  // namespace verbena
