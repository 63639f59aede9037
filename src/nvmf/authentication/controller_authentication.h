// ControllerAuthentication: the controller's side of DH-HMAC-CHAP on one queue.
// NVM Express Base 2.0, 8.13.5.
//
// Sans-IO. The data of Authentication Send goes into on_message(); poll_message() returns the data
// of Authentication Receive. A host may authenticate again on a queue that is authenticated.
// A transaction that fails is the last one: the target closes the connection.
#pragma once

#include "nvmf/authentication/dh_hmac_chap.h"

namespace verbena::nvmf {

class ControllerAuthentication {
 public:
  // All outlive it.
  ControllerAuthentication(Cryptography& cryptography, const CHAPKeys& keys,
                           const CHAPPolicy& policy, CHAPParties parties);

  void on_message(Bytes message);
  // Empty: there is none, because the host has to send.
  [[nodiscard]] std::vector<u8> poll_message();
  [[nodiscard]] std::size_t next_bytes() const { return outgoing_.size(); }
  [[nodiscard]] bool is_authenticated() const { return is_authenticated_; }
  [[nodiscard]] bool has_failed() const { return step_ == Step::kFailed; }

 private:
  enum class Step : u8 { kNegotiate, kReply, kSuccess2, kFailed };

  void on_negotiate(const nvme::AuthNegotiate& message);
  void on_reply(const nvme::AuthReply& message);
  void succeed();
  void fail(nvme::AuthFailure explanation);

  Cryptography& cryptography_;
  const CHAPKeys& keys_;
  const CHAPPolicy& policy_;
  const CHAPParties parties_;
  Step step_ = Step::kNegotiate;
  bool is_authenticated_ = false;
  CHAPTerms terms_{};
  u32 seqnum_ = 0;
  std::vector<u8> challenge_{};
  std::unique_ptr<DHExchange> exchange_{};
  std::vector<u8> outgoing_{};
};

}  // namespace verbena::nvmf
