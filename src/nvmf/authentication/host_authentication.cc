#include "nvmf/authentication/host_authentication.h"

#include <utility>

namespace verbena::nvmf {
namespace {

std::string words_of(nvme::AuthFailure explanation) {
  using nvme::AuthFailure;
  switch (explanation) {
    case AuthFailure::kAuthenticationFailed: return "the key is not the right one";
    case AuthFailure::kProtocolNotUsable: return "it does not offer DH-HMAC-CHAP";
    case AuthFailure::kConcatenationMismatch: return "it asks for a secure channel";
    case AuthFailure::kHashNotUsable: return "no hash is common to both sides";
    case AuthFailure::kDHGroupNotUsable: return "no DH group is common to both sides";
    case AuthFailure::kIncorrectPayload: return "a message was malformed";
    case AuthFailure::kIncorrectMessage: return "a message was out of sequence";
  }
  return "reason " + std::to_string(static_cast<unsigned>(explanation));
}

}  // namespace

HostAuthentication::HostAuthentication(Cryptography& cryptography, const CHAPKeys& keys,
                                       const CHAPPolicy& policy, CHAPParties parties, u16 t_id)
    : cryptography_(cryptography),
      keys_(keys),
      policy_(policy),
      parties_(std::move(parties)),
      terms_{.t_id = t_id} {
  outgoing_ =
      nvme::AuthNegotiate{.t_id = t_id, .hashes = policy.hashes, .groups = policy.groups}.encode();
}

std::vector<u8> HostAuthentication::poll_message() { return std::exchange(outgoing_, {}); }

void HostAuthentication::on_message(Bytes message) {
  using nvme::AuthFailure;
  if (!wants_message()) return;
  if (const auto failure = nvme::AuthFailureMessage::decode(message)) {
    step_ = Step::kFailed;
    failure_ = "the target refuses: " + words_of(failure->explanation);
    return;
  }
  const auto challenge = nvme::AuthChallenge::decode(message);
  if (step_ == Step::kChallenge && challenge && challenge->t_id == terms_.t_id)
    return on_challenge(*challenge);
  const auto success = nvme::AuthSuccess1::decode(message);
  if (step_ == Step::kSuccess1 && success && success->t_id == terms_.t_id)
    return on_success1(*success);
  fail(AuthFailure::kIncorrectMessage, "the target sent a message out of sequence");
}

// False: the DH value is not valid, or the group is not the challenge's.
bool HostAuthentication::compute_secret(const nvme::AuthChallenge& message,
                                        nvme::AuthReply& reply) {
  if (message.group == nvme::DHGroup::kNull) return message.dh_value.empty();
  const auto exchange = cryptography_.begin_exchange(message.group);
  if (exchange == nullptr) return false;
  reply.dh_value = exchange->public_value();
  terms_.shared_secret = exchange->shared_secret(message.dh_value);
  return !terms_.shared_secret.empty();
}

void HostAuthentication::on_challenge(const nvme::AuthChallenge& message) {
  using nvme::AuthFailure;
  if (std::ranges::find(policy_.hashes, message.hash) == policy_.hashes.end())
    return fail(AuthFailure::kHashNotUsable, "the target chose a hash that was not offered");
  if (std::ranges::find(policy_.groups, message.group) == policy_.groups.end())
    return fail(AuthFailure::kDHGroupNotUsable, "the target chose a DH group that was not offered");
  if (message.challenge.size() != nvme::hash_bytes(message.hash))
    return fail(AuthFailure::kIncorrectPayload, "the target's challenge has a wrong length");
  terms_.hash = message.hash;
  nvme::AuthReply reply{.t_id = terms_.t_id};
  if (!compute_secret(message, reply))
    return fail(AuthFailure::kIncorrectPayload, "the target's DH value is not valid");
  reply.response = chap_response(cryptography_, CHAPRole::kHost, parties_, terms_, keys_.host,
                                 message.seqnum, message.challenge);
  if (keys_.controller) {
    std::array<u8, 4> random{};
    cryptography_.fill_random(random);
    seqnum_ = load_le<u32>(random.data()) | 1;  // not 0
    challenge_.resize(message.challenge.size());
    cryptography_.fill_random(challenge_);
    reply.has_challenge = true;
    reply.seqnum = seqnum_;
    reply.challenge = challenge_;
  }
  outgoing_ = reply.encode();
  step_ = Step::kSuccess1;
}

void HostAuthentication::on_success1(const nvme::AuthSuccess1& message) {
  if (keys_.controller) {
    const std::vector<u8> expected = chap_response(cryptography_, CHAPRole::kController, parties_,
                                                   terms_, *keys_.controller, seqnum_, challenge_);
    if (!are_equal_secrets(expected, message.response))
      return fail(nvme::AuthFailure::kAuthenticationFailed,
                  "the target does not know the controller's key");
    outgoing_ = nvme::AuthSuccess2{terms_.t_id}.encode();
  }
  terms_.shared_secret.clear();
  step_ = Step::kDone;
}

void HostAuthentication::fail(nvme::AuthFailure explanation, std::string words) {
  outgoing_ = nvme::AuthFailureMessage{nvme::AuthId::kFailure2, terms_.t_id, explanation}.encode();
  failure_ = std::move(words);
  step_ = Step::kFailed;
}

}  // namespace verbena::nvmf
