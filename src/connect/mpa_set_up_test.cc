#include "connect/mpa_set_up.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

using State = MPASetUp::State;
using iwarp::MPAEnhancement;
using iwarp::MPAFrame;

std::vector<u8> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
std::vector<u8> take(MPASetUp& from) {
  const std::vector<u8> bytes(from.to_send().begin(), from.to_send().end());
  from.on_sent(bytes.size());
  return bytes;
}

TEST(MPASetUp, AgreesInBothRevisions) {
  for (const u8 revision : {u8{1}, u8{2}}) {
    const std::vector<u8> hello = bytes_of("hello"), welcome = bytes_of("welcome!");
    MPASetUp active =
        MPASetUp::active({.revision = revision, .crc = false, .ird = 5, .ord = 9}, hello);
    MPASetUp passive = MPASetUp::passive({.crc = false, .ird = 16, .ord = 16});
    EXPECT_EQ(active.state(), State::kSending);
    EXPECT_TRUE(passive.on_bytes(take(active)).empty());
    EXPECT_EQ(active.state(), State::kAwaitsReply);
    ASSERT_EQ(passive.state(), State::kRequested);
    EXPECT_TRUE(std::ranges::equal(passive.private_data(), hello));
    passive.accept(7, 16, welcome);
    std::vector<u8> reply = take(passive);
    reply.push_back(0xaa);  // the stream begins
    EXPECT_EQ(active.on_bytes(reply).size(), 1u);
    ASSERT_EQ(active.state(), State::kAgreed);
    EXPECT_TRUE(std::ranges::equal(active.private_data(), welcome));
    const StreamAgreement a = active.agreement(1448), b = passive.agreement(1448);
    EXPECT_FALSE(a.crc || b.crc);
    EXPECT_TRUE(a.atomics_and_immediate && b.atomics_and_immediate);
    EXPECT_EQ(a.ird, 5);
    EXPECT_TRUE(b.awaits_ready);  // RFC 5044, 7.1.2
    if (revision == 2) {
      EXPECT_EQ(a.ord, 7);
      EXPECT_EQ(b.ord, 5);
      EXPECT_EQ(a.to_send, ReadyToReceive::kWrite);
      EXPECT_FALSE(b.ready_patience.has_value());
    } else {
      EXPECT_EQ(a.to_send, ReadyToReceive::kNone);
      EXPECT_TRUE(b.ready_patience.has_value());
    }
  }
}

TEST(MPASetUp, CRCsAreUsedWhereOneEndAsks) {
  for (const auto& [a, b] : {std::pair{true, false}, {false, true}}) {
    MPASetUp active = MPASetUp::active({.crc = a}, {});
    MPASetUp passive = MPASetUp::passive({.crc = b});
    (void)passive.on_bytes(take(active));
    passive.accept(0, 0, {});
    (void)active.on_bytes(take(passive));
    EXPECT_TRUE(active.agreement(1448).crc);
    EXPECT_TRUE(passive.agreement(1448).crc);
  }
}

TEST(MPASetUp, AnotherPeerHasTimeToTakeTheReadyMessage) {
  for (const bool is_verbena : {true, false}) {
    MPASetUp active = MPASetUp::active({}, {});
    MPASetUp passive = MPASetUp::passive({.rfc7306 = is_verbena});
    (void)passive.on_bytes(take(active));
    passive.accept(1, 1, {});
    (void)active.on_bytes(take(passive));
    const StreamAgreement agreement = active.agreement(1448);
    EXPECT_EQ(agreement.to_send, ReadyToReceive::kWrite);
    EXPECT_EQ(agreement.awaits_ready, !is_verbena);
    EXPECT_EQ(agreement.ready_patience.has_value(), !is_verbena);
  }
}

// Linux's siw replies with the flags of the request, reserved ones too.
TEST(MPASetUp, AnEchoOfOurMarkIsNoAnswerToIt) {
  MPASetUp active = MPASetUp::active({.ird = 1, .ord = 1}, {});
  std::vector<u8> echo = take(active);
  const std::vector<u8> key = bytes_of("MPA ID Rep Frame");
  std::ranges::copy(key, echo.begin());
  (void)active.on_bytes(echo);
  ASSERT_EQ(active.state(), State::kAgreed);
  EXPECT_FALSE(active.agreement(1448).atomics_and_immediate);
}

TEST(MPASetUp, RejectsWithPrivateData) {
  MPASetUp active = MPASetUp::active({}, {});
  MPASetUp passive = MPASetUp::passive({});
  (void)passive.on_bytes(take(active));
  passive.reject(bytes_of("no"));
  (void)active.on_bytes(take(passive));
  EXPECT_EQ(active.state(), State::kRejected);
  EXPECT_TRUE(std::ranges::equal(active.private_data(), bytes_of("no")));
}

TEST(MPASetUp, TheLongestPrivateDataFits) {
  const std::vector<u8> longest(MPASetUp::kMaxPrivateData, 0x5a);
  MPASetUp active = MPASetUp::active({}, longest);
  MPASetUp passive = MPASetUp::passive({});
  const std::vector<u8> request = take(active);
  for (const u8 byte : request) EXPECT_TRUE(passive.on_bytes({&byte, 1}).empty());  // one by one
  ASSERT_EQ(passive.state(), State::kRequested);
  EXPECT_TRUE(std::ranges::equal(passive.private_data(), longest));
}

TEST(MPASetUp, GarbageFailsAtItsFirstByte) {
  MPASetUp passive = MPASetUp::passive({});
  (void)passive.on_bytes(bytes_of("G"));
  EXPECT_EQ(passive.state(), State::kFailed);
  EXPECT_TRUE(passive.to_send().empty());
}

TEST(MPASetUp, AReplyIsNoRequest) {
  MPASetUp active = MPASetUp::active({}, {});
  MPASetUp passive = MPASetUp::passive({});
  (void)passive.on_bytes(take(active));
  passive.accept(0, 0, {});
  MPASetUp other = MPASetUp::passive({});
  (void)other.on_bytes(take(passive));
  EXPECT_EQ(other.state(), State::kFailed);
}

TEST(MPASetUp, AnUnknownRevisionIsToldTheHighest) {
  MPASetUp active = MPASetUp::active({}, {});
  std::vector<u8> request = take(active);
  request[17] = 3;
  MPASetUp passive = MPASetUp::passive({});
  (void)passive.on_bytes(request);
  EXPECT_EQ(passive.state(), State::kFailed);
  const std::optional<MPAFrame> reply = MPAFrame::decode(passive.to_send());
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->is_reply && reply->rejected);
  EXPECT_EQ(reply->revision, 2);
}

// RFC 5044, 7.1: each end says what it wants to receive.
TEST(MPASetUp, EachEndAsksForMarkersByItself) {
  for (const bool active_asks : {false, true})
    for (const bool passive_asks : {false, true}) {
      MPASetUp active = MPASetUp::active({.markers = active_asks}, {});
      MPASetUp passive = MPASetUp::passive({.markers = passive_asks});
      (void)passive.on_bytes(active.to_send());
      active.on_sent(active.to_send().size());
      ASSERT_EQ(passive.state(), State::kRequested);
      passive.accept(1, 1, {});
      (void)active.on_bytes(passive.to_send());
      ASSERT_EQ(active.state(), State::kAgreed);
      const StreamAgreement of_active = active.agreement(1448),
                            of_passive = passive.agreement(1448);
      EXPECT_EQ(of_active.sends_markers, passive_asks);
      EXPECT_EQ(of_active.receives_markers, active_asks);
      EXPECT_EQ(of_passive.sends_markers, active_asks);
      EXPECT_EQ(of_passive.receives_markers, passive_asks);
    }
}

TEST(MPASetUp, UnknownReadyMessagesAreRefused) {
  std::vector<u8> request(MPAFrame::kSize + MPAEnhancement::kSize);
  MPAFrame{.enhanced = true, .revision = 2, .private_data_length = 4}.encode(
      std::span(request).first<MPAFrame::kSize>());
  MPAEnhancement{.peer_to_peer = true}.encode(std::span(request).last<MPAEnhancement::kSize>());
  MPASetUp other = MPASetUp::passive({});
  (void)other.on_bytes(request);
  EXPECT_EQ(other.state(), State::kFailed);
}

}  // namespace
}  // namespace verbena
