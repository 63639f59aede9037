// Both sides of DH-HMAC-CHAP, against each other and against peers that do not keep to it.
#include <gtest/gtest.h>

#include "nvmf/authentication/controller_authentication.h"
#include "nvmf/authentication/cryptography_for_test.h"
#include "nvmf/authentication/host_authentication.h"

namespace verbena::nvmf {
namespace {

using nvme::AuthFailure;
using nvme::AuthHash;
using nvme::DHGroup;

AuthSecret chap_key(u8 first, std::optional<AuthHash> transform = std::nullopt) {
  AuthSecret secret{.key = std::vector<u8>(32), .transform = transform};
  for (std::size_t i = 0; i < secret.key.size(); ++i) secret.key[i] = static_cast<u8>(first + i);
  return secret;
}

// Runs the protocol until the host has ended it.
void converse(HostAuthentication& host, ControllerAuthentication& controller) {
  for (int round = 0; round < 10 && !host.is_over(); ++round) {
    if (const auto message = host.poll_message(); !message.empty())
      controller.on_message(message);
    else
      host.on_message(controller.poll_message());
  }
}

class AuthenticationTest : public testing::Test {
 protected:
  ControllerAuthentication controller() {
    return {cryptography_, controller_keys_, controller_policy_, parties_};
  }
  HostAuthentication host() { return {cryptography_, host_keys_, host_policy_, parties_, 7}; }
  // The explanation in the failure message of `controller`.
  static std::optional<AuthFailure> failure(ControllerAuthentication& controller) {
    const auto message = nvme::AuthFailureMessage::decode(controller.poll_message());
    return message ? std::optional(message->explanation) : std::nullopt;
  }

  test::ToyCryptography cryptography_;
  CHAPParties parties_{.host_nqn = "nqn.h", .subsystem_nqn = "nqn.a"};
  CHAPKeys host_keys_{chap_key(1), std::nullopt}, controller_keys_ = host_keys_;
  CHAPPolicy host_policy_, controller_policy_;
};

TEST_F(AuthenticationTest, EachHashAndGroupWorksInBothDirections) {
  for (const AuthHash hash : nvme::kAuthHashes)
    for (const DHGroup group : nvme::kDHGroups)
      for (const bool is_mutual : {false, true}) {
        controller_policy_ = {{hash}, {group}};
        host_keys_ = {chap_key(1, AuthHash::kSHA384), std::nullopt};
        if (is_mutual) host_keys_.controller = chap_key(9);
        controller_keys_ = host_keys_;
        auto ours = controller();
        auto theirs = host();
        EXPECT_FALSE(ours.is_authenticated());
        converse(theirs, ours);
        EXPECT_TRUE(theirs.is_authenticated()) << theirs.failure();
        EXPECT_TRUE(ours.is_authenticated());
      }
}

TEST_F(AuthenticationTest, AWrongKeyIsRefused) {
  host_keys_.host = chap_key(2);
  auto ours = controller();
  auto theirs = host();
  converse(theirs, ours);
  EXPECT_FALSE(ours.is_authenticated());
  EXPECT_TRUE(ours.has_failed());
  EXPECT_EQ(theirs.failure(), "the target refuses: the key is not the right one");
}

TEST_F(AuthenticationTest, AFailedTransactionIsTheLast) {
  host_keys_.host = chap_key(2);
  auto ours = controller();
  auto theirs = host();
  converse(theirs, ours);
  host_keys_.host = chap_key(1);
  auto again = host();
  ours.on_message(again.poll_message());
  EXPECT_EQ(ours.next_bytes(), 0u);
  EXPECT_FALSE(ours.is_authenticated());
}

TEST_F(AuthenticationTest, AHostMayAuthenticateAgain) {
  auto ours = controller();
  for (int i = 0; i < 2; ++i) {
    auto theirs = host();
    converse(theirs, ours);
    EXPECT_TRUE(ours.is_authenticated());
  }
  host_keys_.host = chap_key(2);
  auto theirs = host();
  converse(theirs, ours);
  EXPECT_FALSE(ours.is_authenticated());
}

TEST_F(AuthenticationTest, AControllerWithAnotherKeyIsRefused) {
  host_keys_.controller = chap_key(3);
  controller_keys_.controller = chap_key(4);
  auto ours = controller();
  auto theirs = host();
  converse(theirs, ours);
  EXPECT_FALSE(theirs.is_authenticated());
  EXPECT_FALSE(ours.is_authenticated());  // the host has sent AUTH_Failure2
  EXPECT_EQ(theirs.failure(), "the target does not know the controller's key");
}

TEST_F(AuthenticationTest, AControllerWithoutAKeyCannotAuthenticateItself) {
  host_keys_.controller = chap_key(3);
  auto ours = controller();
  auto theirs = host();
  converse(theirs, ours);
  EXPECT_FALSE(ours.is_authenticated());
  EXPECT_FALSE(theirs.is_authenticated());
}

TEST_F(AuthenticationTest, AHostThatSkipsTheResponseIsRefused) {
  auto ours = controller();
  ours.on_message(nvme::AuthSuccess2{7}.encode());
  EXPECT_EQ(failure(ours), AuthFailure::kIncorrectMessage);
  EXPECT_FALSE(ours.is_authenticated());
}

TEST_F(AuthenticationTest, NothingInCommonIsRefused) {
  controller_policy_.groups = {DHGroup::kFFDHE8192};
  host_policy_.groups = {DHGroup::kNull};
  auto ours = controller();
  ours.on_message(host().poll_message());
  EXPECT_EQ(failure(ours), AuthFailure::kDHGroupNotUsable);
  host_policy_ = {{AuthHash::kSHA512}, {DHGroup::kFFDHE8192}};
  controller_policy_.hashes = {AuthHash::kSHA256};
  auto other = controller();
  other.on_message(host().poll_message());
  EXPECT_EQ(failure(other), AuthFailure::kHashNotUsable);
}

TEST_F(AuthenticationTest, ASecureChannelIsNotOffered) {
  auto ours = controller();
  ours.on_message(
      nvme::AuthNegotiate{.sc_c = 1, .hashes = {AuthHash::kSHA256}, .groups = {DHGroup::kNull}}
          .encode());
  EXPECT_EQ(failure(ours), AuthFailure::kConcatenationMismatch);
}

TEST_F(AuthenticationTest, OurOwnChallengeIsNotAnswered) {
  controller_keys_.controller = chap_key(1);  // the same key for both directions
  controller_policy_.groups = {DHGroup::kNull};
  auto ours = controller();
  ours.on_message(host().poll_message());
  const auto challenge = nvme::AuthChallenge::decode(ours.poll_message());
  ASSERT_TRUE(challenge.has_value());
  nvme::AuthReply reply{.t_id = 7,
                        .has_challenge = true,
                        .seqnum = challenge->seqnum,
                        .challenge = challenge->challenge};
  reply.response =
      chap_response(cryptography_, CHAPRole::kHost, parties_, {.hash = challenge->hash, .t_id = 7},
                    chap_key(1), challenge->seqnum, challenge->challenge);
  ours.on_message(reply.encode());
  EXPECT_EQ(failure(ours), AuthFailure::kAuthenticationFailed);
}

TEST_F(AuthenticationTest, DHValuesThatGiveAKnownSecretAreRefused) {
  controller_policy_.groups = {DHGroup::kFFDHE2048};
  for (const u8 value : {u8{0}, u8{1}}) {
    auto ours = controller();
    ours.on_message(host().poll_message());
    nvme::AuthReply reply{.t_id = 7, .response = std::vector<u8>(32)};
    reply.dh_value.resize(256);
    reply.dh_value[0] = value;
    ours.on_message(reply.encode());
    EXPECT_EQ(failure(ours), AuthFailure::kIncorrectPayload);
  }
}

TEST_F(AuthenticationTest, AReplyOfAnotherLengthOrTransactionIsRefused) {
  controller_policy_.groups = {DHGroup::kNull};
  for (const nvme::AuthReply& reply :
       {nvme::AuthReply{.t_id = 7, .response = std::vector<u8>(31)},
        nvme::AuthReply{.t_id = 8, .response = std::vector<u8>(32)},
        nvme::AuthReply{.t_id = 7, .response = std::vector<u8>(32), .dh_value = {1, 2, 3}}}) {
    auto ours = controller();
    ours.on_message(host().poll_message());
    ours.on_message(reply.encode());
    EXPECT_EQ(failure(ours), AuthFailure::kIncorrectPayload);
    EXPECT_FALSE(ours.is_authenticated());
  }
}

TEST_F(AuthenticationTest, AHostTakesOnlyWhatItHasOffered) {
  host_policy_ = {{AuthHash::kSHA512}, {DHGroup::kFFDHE2048}};
  auto theirs = host();
  (void)theirs.poll_message();
  theirs.on_message(
      nvme::AuthChallenge{.t_id = 7, .hash = AuthHash::kSHA512, .challenge = std::vector<u8>(64)}
          .encode());
  EXPECT_EQ(theirs.failure(), "the target chose a DH group that was not offered");
  const auto told = nvme::AuthFailureMessage::decode(theirs.poll_message());
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->id, nvme::AuthId::kFailure2);
  EXPECT_EQ(told->explanation, AuthFailure::kDHGroupNotUsable);
}

// Texts of `nvme gen-dhchap-key`.
TEST(AuthSecretTest, HasAHashAKeyAndACRC) {
  const auto secret = AuthSecret::parse(
      "DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v"
      "cSEgBQ==:\n");
  ASSERT_TRUE(secret.has_value());
  EXPECT_EQ(secret->transform, AuthHash::kSHA384);
  ASSERT_EQ(secret->key.size(), 48u);
  EXPECT_EQ(secret->key[47], 47);
  for (const std::string_view wrong :
       {"", "DHHC-1:", "DHHC-1:00:", "DHHC-1:00::", "DHHC-1:00:AAAA:",
        "DHHC-1:04:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
        "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaS:",
        "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR",
        "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh-KfiaR:"})
    EXPECT_FALSE(AuthSecret::parse(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace verbena::nvmf
