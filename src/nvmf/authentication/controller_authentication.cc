#include "nvmf/authentication/controller_authentication.h"

#include <utility>

namespace verbena::nvmf {

using nvme::AuthFailure;
using nvme::DHGroup;

ControllerAuthentication::ControllerAuthentication(Cryptography& cryptography, const CHAPKeys& keys,
                                                   const CHAPPolicy& policy, CHAPParties parties)
    : cryptography_(cryptography), keys_(keys), policy_(policy), parties_(std::move(parties)) {
  std::array<u8, 4> random{};
  cryptography_.fill_random(random);
  seqnum_ = load_le<u32>(random.data());
}

void ControllerAuthentication::on_message(Bytes message) {
  if (has_failed()) return;
  if (const auto failure = nvme::AuthFailureMessage::decode(message)) {  // the host refuses us
    is_authenticated_ = false;
    step_ = Step::kFailed;
    return;
  }
  if (const auto negotiate = nvme::AuthNegotiate::decode(message)) return on_negotiate(*negotiate);
  const auto reply = nvme::AuthReply::decode(message);
  if (step_ == Step::kReply && reply) return on_reply(*reply);
  const auto success = nvme::AuthSuccess2::decode(message);
  if (step_ == Step::kSuccess2 && success && success->t_id == terms_.t_id) return succeed();
  const bool is_known = message.size() >= 6 && (reply || success);
  fail(is_known ? AuthFailure::kIncorrectMessage : AuthFailure::kIncorrectPayload);
}

std::vector<u8> ControllerAuthentication::poll_message() { return std::exchange(outgoing_, {}); }

void ControllerAuthentication::on_negotiate(const nvme::AuthNegotiate& message) {
  if (step_ != Step::kNegotiate) return fail(AuthFailure::kIncorrectMessage);
  terms_ = {.t_id = message.t_id};
  is_authenticated_ = false;
  if (message.sc_c != 0) return fail(AuthFailure::kConcatenationMismatch);
  if (message.hashes.empty()) return fail(AuthFailure::kProtocolNotUsable);
  const auto offers = [](const auto& offered) {
    return [&offered](auto id) { return std::ranges::find(offered, id) != offered.end(); };
  };
  const auto hash = std::ranges::find_if(policy_.hashes, offers(message.hashes));
  if (hash == policy_.hashes.end()) return fail(AuthFailure::kHashNotUsable);
  const auto group = std::ranges::find_if(policy_.groups, offers(message.groups));
  if (group == policy_.groups.end()) return fail(AuthFailure::kDHGroupNotUsable);
  terms_.hash = *hash;
  nvme::AuthChallenge challenge{.t_id = terms_.t_id, .hash = *hash, .group = *group};
  if (*group != DHGroup::kNull) {
    exchange_ = cryptography_.begin_exchange(*group);
    if (exchange_ == nullptr) return fail(AuthFailure::kDHGroupNotUsable);
    challenge.dh_value = exchange_->public_value();
  }
  challenge_.resize(nvme::hash_bytes(*hash));
  cryptography_.fill_random(challenge_);
  if (++seqnum_ == 0) ++seqnum_;  // 0 is reserved
  challenge.seqnum = seqnum_;
  challenge.challenge = challenge_;
  outgoing_ = challenge.encode();
  step_ = Step::kReply;
}

void ControllerAuthentication::on_reply(const nvme::AuthReply& message) {
  const auto exchange = std::exchange(exchange_, nullptr);
  if (message.t_id != terms_.t_id || message.response.size() != challenge_.size())
    return fail(AuthFailure::kIncorrectPayload);
  if ((exchange != nullptr) != !message.dh_value.empty())
    return fail(AuthFailure::kIncorrectPayload);
  if (exchange != nullptr) {
    terms_.shared_secret = exchange->shared_secret(message.dh_value);
    if (terms_.shared_secret.empty()) return fail(AuthFailure::kIncorrectPayload);
  }
  const std::vector<u8> expected = chap_response(cryptography_, CHAPRole::kHost, parties_, terms_,
                                                 keys_.host, seqnum_, challenge_);
  if (!are_equal_secrets(expected, message.response))
    return fail(AuthFailure::kAuthenticationFailed);
  nvme::AuthSuccess1 success{.t_id = terms_.t_id, .hash_bytes = static_cast<u8>(challenge_.size())};
  if (!message.has_challenge) {
    outgoing_ = success.encode();
    return succeed();
  }
  // Our own challenge as the host's would make us compute the response that we have asked for.
  if (!keys_.controller || are_equal_secrets(message.challenge, challenge_))
    return fail(AuthFailure::kAuthenticationFailed);
  success.response = chap_response(cryptography_, CHAPRole::kController, parties_, terms_,
                                   *keys_.controller, message.seqnum, message.challenge);
  outgoing_ = success.encode();
  step_ = Step::kSuccess2;
}

void ControllerAuthentication::succeed() {
  is_authenticated_ = true;
  step_ = Step::kNegotiate;
  terms_.shared_secret.clear();
}

void ControllerAuthentication::fail(AuthFailure explanation) {
  outgoing_ = nvme::AuthFailureMessage{.t_id = terms_.t_id, .explanation = explanation}.encode();
  is_authenticated_ = false;
  exchange_.reset();
  step_ = Step::kFailed;
}

}  // namespace verbena::nvmf
