// IDs, channels, options and names.
#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

using IdTest = RDMACMTest;

TEST_F(IdTest, KnowWhatTheyWereMadeFor) {
  rdma_cm_id* tcp = make_id(RDMA_PS_TCP);
  EXPECT_EQ(tcp->channel, channel);
  EXPECT_EQ(tcp->context, this);
  EXPECT_EQ(tcp->ps, RDMA_PS_TCP);
  EXPECT_EQ(tcp->qp_type, IBV_QPT_RC);
  EXPECT_EQ(tcp->verbs, nullptr);
  EXPECT_EQ(make_id(RDMA_PS_UDP)->qp_type, IBV_QPT_UD);
  rdma_cm_id* none = nullptr;
  EXPECT_EQ(rdma_create_id(channel, &none, nullptr, static_cast<rdma_port_space>(0x42)), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(IdTest, ANonblockingChannelSaysThatItIsEmpty) {
  EXPECT_FALSE(has_event(0));
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rdma_get_cm_event(channel, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_ack_cm_event(nullptr), -1);
}

TEST_F(IdTest, AChannelThatIsGoneHasNoEvents) {
  rdma_event_channel* gone = rdma_create_event_channel();
  rdma_destroy_event_channel(gone);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(gone, &event), -1);
  EXPECT_EQ(errno, EBADF);
}

// As rping leaves: its other thread takes an error for a reason to exit(255).
TEST_F(IdTest, WhoReadsADestroyedChannelDoesNotDisturbTheEndOfTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto leave = [] {
    rdma_event_channel* const gone = rdma_create_event_channel();
    std::atexit([] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
    rdma_destroy_event_channel(gone);
    std::thread([gone] {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(gone, &event) != 0) std::exit(255);
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::exit(0);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "");
}

TEST_F(IdTest, UnreadEventsGoWithTheirId) {
  sockaddr_in there = address(own_address(), 7);
  rdma_cm_id* id = make_id();
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), 0);
  EXPECT_TRUE(has_event(0));
  destroy(id);
  EXPECT_FALSE(has_event(0));
}

TEST_F(IdTest, MovesToAnotherChannelWithItsEvents) {
  rdma_event_channel* other = rdma_create_event_channel();
  ASSERT_NE(other, nullptr);
  rdma_cm_id* id = make_id();
  sockaddr_in there = address(own_address(), 7);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), 0);
  ASSERT_EQ(rdma_migrate_id(id, other), 0);
  EXPECT_FALSE(has_event(0));
  EXPECT_EQ(id->channel, other);
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(rdma_get_cm_event(other, &event), 0);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  destroy(id);
  rdma_destroy_event_channel(other);
}

// rdma_migrate_id(3): "will block while there are any unacknowledged events on the current
// channel".
TEST_F(IdTest, WaitsForWhatWasReadOfItBeforeItMoves) {
  rdma_event_channel* other = rdma_create_event_channel();
  rdma_cm_id* id = make_id();
  sockaddr_in there = address(own_address(), 7);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), 0);
  rdma_cm_event* read = nullptr;
  ASSERT_EQ(rdma_get_cm_event(channel, &read), 0);
  ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
  ASSERT_TRUE(has_event(5000)) << "one that is not read";
  std::atomic<bool> acknowledged{false};
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    acknowledged = true;
    rdma_ack_cm_event(read);
  });
  EXPECT_EQ(rdma_migrate_id(id, other), 0);
  EXPECT_TRUE(acknowledged);
  reader.join();
  ASSERT_EQ(rdma_get_cm_event(other, &read), 0);
  EXPECT_EQ(read->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(rdma_ack_cm_event(read), 0);
  destroy(id);
  rdma_destroy_event_channel(other);
}

TEST_F(IdTest, ASynchronousOneBecomesAsynchronousAndBack) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(rdma_migrate_id(id, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  sockaddr_in there = address(own_address(), 7);
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), 0) << "waits for its event";
  ASSERT_NE(id->event, nullptr);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_migrate_id(id, channel), 0);
  EXPECT_EQ(id->event, nullptr);
  EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
  expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(rdma_migrate_id(id, nullptr), 0);
  EXPECT_NE(id->channel, channel);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(IdTest, OptionsAreChecked) {
  rdma_cm_id* id = make_id();
  std::uint8_t byte = 0x20;
  int number = 1;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, sizeof byte), 0);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &number, sizeof number), 0);
  byte = 31;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
  byte = 32;
  const auto refused = [&](int level, int name, void* value, std::size_t size) {
    EXPECT_EQ(rdma_set_option(id, level, name, value, size), -1);
    return errno;
  };
  EXPECT_EQ(refused(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL);
  EXPECT_EQ(refused(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &number, sizeof number), EINVAL);
  EXPECT_EQ(refused(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &byte, 1), EINVAL);
  EXPECT_EQ(refused(RDMA_OPTION_ID, 99, &number, sizeof number), ENOSYS);
  EXPECT_EQ(refused(RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &number, sizeof number), ENOSYS);
}

TEST_F(IdTest, DevicesAreOpen) {
  int count = 0;
  ibv_context** devices = rdma_get_devices(&count);
  ASSERT_NE(devices, nullptr);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(devices[1], nullptr);
  ibv_device_attr attr{};
  EXPECT_EQ(ibv_query_device(devices[0], &attr), 0);
  rdma_cm_id* id = make_listener();
  EXPECT_EQ(id->verbs, devices[0]) << "the same in all IDs";
  EXPECT_NE(id->pd, nullptr);
  EXPECT_EQ(id->port_num, 1);
  rdma_free_devices(devices);
}

TEST_F(IdTest, EventsHaveNames) {
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
  for (const int other : {-1, 18, 255})
    EXPECT_STREQ(rdma_event_str(static_cast<rdma_cm_event_type>(other)), "UNKNOWN EVENT") << other;
}

}  // namespace
}  // namespace verbena::test
