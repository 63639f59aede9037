// PeerAnswer against Linux: REQ and REP of a captured connection, and the packets that followed.
#include "abi/rdmacm/connection_path.h"

#include <gtest/gtest.h>

#include "tests/support/pcap.h"
#include "wire/ib/bth.h"
#include "wire/ib/cm/message.h"

namespace verbena::rdmacm {
namespace {

constexpr const char* kRping = "rxe-cm-rping.pcap";  // guest 2 asks; frame 4 is its first SEND
constexpr std::size_t kBTHAt = 42, kMADAt = 62;

template <typename T>
T message(std::size_t frame) {
  const std::vector<u8> bytes = test::captured_frame(kRping, frame);
  return std::get<T>(cm::Message::decode(std::span(bytes).subspan(kMADAt))->body);
}

PSN psn_of(std::size_t frame) {
  const std::vector<u8> bytes = test::captured_frame(kRping, frame);
  return BTH::decode(std::span(bytes).subspan(kBTHAt))->psn;
}

TEST(PeerAnswerTest, TheRequestersFirstPacketHasTheStartingPSNOfTheREP) {
  EXPECT_EQ(PeerAnswer::from(message<cm::REP>(2), {}, 7).sq_psn, psn_of(4));
}

TEST(PeerAnswerTest, TheRespondersFirstPacketHasTheStartingPSNOfTheREQ) {
  EXPECT_EQ(PeerAnswer::from(message<cm::REQ>(1)).sq_psn, psn_of(6));
}

}  // namespace
}  // namespace verbena::rdmacm
