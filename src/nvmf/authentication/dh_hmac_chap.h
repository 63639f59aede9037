// The values that DH-HMAC-CHAP computes. NVM Express Base 2.0, 8.13.5.
#pragma once

#include <string>

#include "nvmf/authentication/secret.h"

namespace verbena::nvmf {

// Both sides of a transaction know these.
struct CHAPParties {
  std::string host_nqn{}, subsystem_nqn{};
};

// The keys of the two sides. `controller`: it authenticates itself too.
struct CHAPKeys {
  AuthSecret host{};
  std::optional<AuthSecret> controller{};
};

// The cheapest group that is one, and the NULL group where the peer has no other.
inline constexpr std::array kPreferredGroups{nvme::DHGroup::kFFDHE2048, nvme::DHGroup::kFFDHE3072,
                                             nvme::DHGroup::kFFDHE4096, nvme::DHGroup::kFFDHE6144,
                                             nvme::DHGroup::kFFDHE8192, nvme::DHGroup::kNull};

// The hashes and groups that a side offers or accepts, in its order of preference.
struct CHAPPolicy {
  std::vector<nvme::AuthHash> hashes{nvme::kAuthHashes.begin(), nvme::kAuthHashes.end()};
  std::vector<nvme::DHGroup> groups{kPreferredGroups.begin(), kPreferredGroups.end()};
};

// The part of a transaction that the responses depend on.
struct CHAPTerms {
  nvme::AuthHash hash = nvme::AuthHash::kSHA256;
  u16 t_id = 0;
  std::vector<u8> shared_secret{};  // empty: the NULL group
};

enum class CHAPRole : u8 { kHost, kController };

// The response of the side `role` to `challenge`: R1 of the host, R2 of the controller.
[[nodiscard]] std::vector<u8> chap_response(const Cryptography& cryptography, CHAPRole role,
                                            const CHAPParties& parties, const CHAPTerms& terms,
                                            const AuthSecret& key, u32 seqnum, Bytes challenge);
// Compares in a time that does not depend on the contents.
[[nodiscard]] bool are_equal_secrets(Bytes a, Bytes b);

}  // namespace verbena::nvmf
