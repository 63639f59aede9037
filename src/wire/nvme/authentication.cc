#include "wire/nvme/authentication.h"

namespace verbena::nvme {
namespace {

constexpr std::size_t kHashesAt = 4, kGroupsAt = 34;  // in a protocol descriptor
constexpr u8 kDHHMACCHAPProtocol = 1;                 // AuthID of a descriptor

std::vector<u8> auth_message(std::size_t bytes, AuthType type, AuthId id, u16 t_id) {
  std::vector<u8> out(bytes);
  out[0] = static_cast<u8>(type);
  out[1] = static_cast<u8>(id);
  store_le<u16>(out.data() + 4, t_id);
  return out;
}

bool is_auth_message(std::span<const u8> in, std::size_t least, AuthType type, AuthId id) {
  return in.size() >= least && in[0] == static_cast<u8>(type) && in[1] == static_cast<u8>(id);
}

u16 t_id_of(std::span<const u8> in) { return load_le<u16>(in.data() + 4); }

std::vector<u8> bytes_of(std::span<const u8> in, std::size_t at, std::size_t count) {
  const auto part = in.subspan(at, count);
  return {part.begin(), part.end()};
}

void put_bytes(std::vector<u8>& out, std::size_t at, std::span<const u8> bytes) {
  std::ranges::copy(bytes, out.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

std::vector<u8> AuthNegotiate::encode() const {
  std::vector<u8> out =
      auth_message(kHeader + kDescriptor, AuthType::kCommon, AuthId::kNegotiate, t_id);
  out[6] = sc_c;
  out[7] = 1;  // NAPD
  u8* const descriptor = out.data() + kHeader;
  descriptor[0] = kDHHMACCHAPProtocol;
  descriptor[2] = static_cast<u8>(std::min(hashes.size(), kMaxIds));
  descriptor[3] = static_cast<u8>(std::min(groups.size(), kMaxIds));
  for (std::size_t i = 0; i < descriptor[2]; ++i)
    descriptor[kHashesAt + i] = static_cast<u8>(hashes[i]);
  for (std::size_t i = 0; i < descriptor[3]; ++i)
    descriptor[kGroupsAt + i] = static_cast<u8>(groups[i]);
  return out;
}

std::optional<AuthNegotiate> AuthNegotiate::decode(std::span<const u8> in) {
  if (!is_auth_message(in, kHeader, AuthType::kCommon, AuthId::kNegotiate)) return std::nullopt;
  const std::size_t descriptors = in[7];
  if (descriptors == 0 || in.size() < kHeader + descriptors * kDescriptor) return std::nullopt;
  AuthNegotiate message{.t_id = t_id_of(in), .sc_c = in[6]};
  for (std::size_t i = 0; i < descriptors; ++i) {
    const auto descriptor = in.subspan(kHeader + i * kDescriptor, kDescriptor);
    if (descriptor[0] != kDHHMACCHAPProtocol) continue;
    if (descriptor[2] > kMaxIds || descriptor[3] > kMaxIds) return std::nullopt;
    for (const u8 id : descriptor.subspan(kHashesAt, descriptor[2]))
      message.hashes.push_back(static_cast<AuthHash>(id));
    for (const u8 id : descriptor.subspan(kGroupsAt, descriptor[3]))
      message.groups.push_back(static_cast<DHGroup>(id));
    break;
  }
  return message;
}

std::vector<u8> AuthChallenge::encode() const {
  std::vector<u8> out = auth_message(kHeader + challenge.size() + dh_value.size(),
                                     AuthType::kDHHMACCHAP, AuthId::kChallenge, t_id);
  out[6] = static_cast<u8>(challenge.size());
  out[8] = static_cast<u8>(hash);
  out[9] = static_cast<u8>(group);
  store_le<u16>(out.data() + 10, static_cast<u16>(dh_value.size()));
  store_le<u32>(out.data() + 12, seqnum);
  put_bytes(out, kHeader, challenge);
  put_bytes(out, kHeader + challenge.size(), dh_value);
  return out;
}

std::optional<AuthChallenge> AuthChallenge::decode(std::span<const u8> in) {
  if (!is_auth_message(in, kHeader, AuthType::kDHHMACCHAP, AuthId::kChallenge)) return std::nullopt;
  const std::size_t bytes = in[6], dh = load_le<u16>(in.data() + 10);
  if (in.size() < kHeader + bytes + dh) return std::nullopt;
  return AuthChallenge{.t_id = t_id_of(in),
                       .hash = static_cast<AuthHash>(in[8]),
                       .group = static_cast<DHGroup>(in[9]),
                       .seqnum = load_le<u32>(in.data() + 12),
                       .challenge = bytes_of(in, kHeader, bytes),
                       .dh_value = bytes_of(in, kHeader + bytes, dh)};
}

std::vector<u8> AuthReply::encode() const {
  const std::size_t hl = response.size();
  std::vector<u8> out =
      auth_message(kHeader + 2 * hl + dh_value.size(), AuthType::kDHHMACCHAP, AuthId::kReply, t_id);
  out[6] = static_cast<u8>(hl);
  out[8] = has_challenge ? 1 : 0;
  store_le<u16>(out.data() + 10, static_cast<u16>(dh_value.size()));
  store_le<u32>(out.data() + 12, seqnum);
  put_bytes(out, kHeader, response);
  if (has_challenge) put_bytes(out, kHeader + hl, challenge);
  put_bytes(out, kHeader + 2 * hl, dh_value);
  return out;
}

std::optional<AuthReply> AuthReply::decode(std::span<const u8> in) {
  if (!is_auth_message(in, kHeader, AuthType::kDHHMACCHAP, AuthId::kReply)) return std::nullopt;
  const std::size_t hl = in[6], dh = load_le<u16>(in.data() + 10);
  if (in.size() < kHeader + 2 * hl + dh) return std::nullopt;
  return AuthReply{.t_id = t_id_of(in),
                   .has_challenge = (in[8] & 1) != 0,
                   .seqnum = load_le<u32>(in.data() + 12),
                   .response = bytes_of(in, kHeader, hl),
                   .challenge = bytes_of(in, kHeader + hl, hl),
                   .dh_value = bytes_of(in, kHeader + 2 * hl, dh)};
}

std::vector<u8> AuthSuccess1::encode() const {
  std::vector<u8> out =
      auth_message(kHeader + hash_bytes, AuthType::kDHHMACCHAP, AuthId::kSuccess1, t_id);
  out[6] = hash_bytes;
  out[8] = response.empty() ? 0 : 1;
  put_bytes(out, kHeader,
            std::span(response).first(std::min<std::size_t>(hash_bytes, response.size())));
  return out;
}

std::optional<AuthSuccess1> AuthSuccess1::decode(std::span<const u8> in) {
  if (!is_auth_message(in, kHeader, AuthType::kDHHMACCHAP, AuthId::kSuccess1)) return std::nullopt;
  const std::size_t hl = in[6];
  const bool has_response = (in[8] & 1) != 0;
  if (has_response && in.size() < kHeader + hl) return std::nullopt;
  AuthSuccess1 message{.t_id = t_id_of(in), .hash_bytes = in[6]};
  if (has_response) message.response = bytes_of(in, kHeader, hl);
  return message;
}

std::vector<u8> AuthSuccess2::encode() const {
  return auth_message(kSize, AuthType::kDHHMACCHAP, AuthId::kSuccess2, t_id);
}

std::optional<AuthSuccess2> AuthSuccess2::decode(std::span<const u8> in) {
  if (!is_auth_message(in, kSize, AuthType::kDHHMACCHAP, AuthId::kSuccess2)) return std::nullopt;
  return AuthSuccess2{t_id_of(in)};
}

std::vector<u8> AuthFailureMessage::encode() const {
  std::vector<u8> out = auth_message(kSize, AuthType::kCommon, id, t_id);
  out[6] = 1;  // authentication failure
  out[7] = static_cast<u8>(explanation);
  return out;
}

std::optional<AuthFailureMessage> AuthFailureMessage::decode(std::span<const u8> in) {
  for (const AuthId id : {AuthId::kFailure1, AuthId::kFailure2})
    if (is_auth_message(in, kSize, AuthType::kCommon, id))
      return AuthFailureMessage{id, t_id_of(in), static_cast<AuthFailure>(in[7])};
  return std::nullopt;
}

}  // namespace verbena::nvme
