// HostAuthentication: the host's side of DH-HMAC-CHAP on one queue. NVM Express Base 2.0, 8.13.5.
//
// Sans-IO. Contract: poll_message() returns the data of an Authentication Send; once it is empty
// and wants_message() holds, the data of an Authentication Receive goes into on_message(); and so
// on until is_over().
#pragma once

#include "nvmf/authentication/dh_hmac_chap.h"

namespace verbena::nvmf {

class HostAuthentication {
 public:
  // All outlive it, but `parties`.
  HostAuthentication(Cryptography& cryptography, const CHAPKeys& keys, const CHAPPolicy& policy,
                     CHAPParties parties, u16 t_id);

  [[nodiscard]] std::vector<u8> poll_message();
  void on_message(Bytes message);
  [[nodiscard]] bool wants_message() const {
    return step_ == Step::kChallenge || step_ == Step::kSuccess1;
  }
  [[nodiscard]] bool is_over() const { return !wants_message() && outgoing_.empty(); }
  [[nodiscard]] bool is_authenticated() const { return step_ == Step::kDone; }
  [[nodiscard]] const std::string& failure() const { return failure_; }  // in words

 private:
  enum class Step : u8 { kChallenge, kSuccess1, kDone, kFailed };

  void on_challenge(const nvme::AuthChallenge& message);
  [[nodiscard]] bool compute_secret(const nvme::AuthChallenge& message, nvme::AuthReply& reply);
  void on_success1(const nvme::AuthSuccess1& message);
  void fail(nvme::AuthFailure explanation, std::string words);

  Cryptography& cryptography_;
  const CHAPKeys& keys_;
  const CHAPPolicy& policy_;
  const CHAPParties parties_;
  Step step_ = Step::kChallenge;
  CHAPTerms terms_{};
  u32 seqnum_ = 0;
  std::vector<u8> challenge_{};  // C2, if the controller has to authenticate itself
  std::vector<u8> outgoing_{};
  std::string failure_{};
};

}  // namespace verbena::nvmf
