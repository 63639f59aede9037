// The same application on both drivers of application::Node.
#include "application/key_value.h"

#include <gtest/gtest.h>

#include "verbs/two_nodes_for_test.h"

namespace verbena {
namespace {

using application::Address;
using application::KeyValueClient;
using application::KeyValueServer;

constexpr u16 kPort = 7471;

class KeyValue : public testing::TestWithParam<std::unique_ptr<test::TwoNodes> (*)()> {};

TEST_P(KeyValue, PutsByMessagesAndGetsByReads) {
  const std::unique_ptr<test::TwoNodes> nodes = GetParam()();
  KeyValueServer server(nodes->server(), nodes->server_address(kPort), 64);
  KeyValueClient client(nodes->client(), nodes->server_address(kPort));
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

TEST_P(KeyValue, APlaceThatAnotherKeyHasIsNoValue) {
  const std::unique_ptr<test::TwoNodes> nodes = GetParam()();
  KeyValueServer server(nodes->server(), nodes->server_address(kPort), 1);
  KeyValueClient client(nodes->client(), nodes->server_address(kPort));
  nodes->run(server, client, [&] { return client.is_connected(); });
  const auto finish = [&] { nodes->run(server, client, [&] { return client.is_done(); }); };
  client.put("one", "1");
  finish();
  client.get("another");
  finish();
  EXPECT_EQ(client.value(), std::nullopt);
  client.get("one");
  finish();
  EXPECT_EQ(client.value(), "1");
}

TEST_P(KeyValue, NobodyListensOnThatPort) {
  const std::unique_ptr<test::TwoNodes> nodes = GetParam()();
  KeyValueServer server(nodes->server(), nodes->server_address(kPort), 64);
  Address wrong = nodes->server_address(kPort);
  ++wrong.port;
  KeyValueClient client(nodes->client(), wrong);
  nodes->run(server, client, [&] { return client.is_closed(); });
  EXPECT_FALSE(client.is_connected());
}

INSTANTIATE_TEST_SUITE_P(Drivers, KeyValue, testing::Values(test::simulated_pair, test::live_pair),
                         test::driver_name);

}  // namespace
}  // namespace verbena
