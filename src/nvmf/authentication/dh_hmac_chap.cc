#include "nvmf/authentication/dh_hmac_chap.h"

namespace verbena::nvmf {

std::vector<u8> chap_response(const Cryptography& cryptography, CHAPRole role,
                              const CHAPParties& parties, const CHAPTerms& terms,
                              const AuthSecret& key, u32 seqnum, Bytes challenge) {
  const bool is_host = role == CHAPRole::kHost;
  const std::string& own = is_host ? parties.host_nqn : parties.subsystem_nqn;
  const std::string& other = is_host ? parties.subsystem_nqn : parties.host_nqn;
  std::vector<u8> text(challenge.begin(), challenge.end());
  if (!terms.shared_secret.empty())  // the augmented challenge
    text = cryptography.hmac(terms.hash, cryptography.hash(terms.hash, terms.shared_secret),
                             challenge);
  const auto append = [&text](std::string_view part) {
    text.insert(text.end(), part.begin(), part.end());
  };
  std::array<u8, 7> numbers{};  // sequence number, T_ID, SC_C
  store_le<u32>(numbers.data(), seqnum);
  store_le<u16>(numbers.data() + 4, terms.t_id);
  text.insert(text.end(), numbers.begin(), numbers.end());
  append(is_host ? "HostHost" : "Controller");
  append(own);
  text.push_back(0);
  append(other);
  return cryptography.hmac(terms.hash, key.transformed(cryptography, own), text);
}

bool are_equal_secrets(Bytes a, Bytes b) {
  if (a.size() != b.size()) return false;
  u8 difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<u8>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace verbena::nvmf
