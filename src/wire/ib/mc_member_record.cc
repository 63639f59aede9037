#include "wire/ib/mc_member_record.h"

#include <algorithm>

#include "base/bytes.h"

namespace verbena {

std::optional<MCMemberRecord> MCMemberRecord::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  MCMemberRecord record;
  std::copy_n(in.begin(), 16, record.mgid.bytes.begin());
  std::copy_n(in.begin() + 16, 16, record.port_gid.bytes.begin());
  record.q_key = load_be32(&in[32]);
  record.mlid = load_be16(&in[36]);
  record.mtu = in[38];
  record.traffic_class = in[39];
  record.p_key = load_be16(&in[40]);
  record.rate = in[42];
  record.packet_lifetime = in[43];
  record.sl = in[44] >> 4;
  record.flow_label = load_be32(&in[44]) >> 8 & 0xfffff;
  record.hop_limit = in[47];
  record.scope = in[48] >> 4;
  record.join_state = in[48] & 15;
  return record;
}

void MCMemberRecord::encode(std::span<u8, kSize> out) const {
  std::ranges::fill(out, u8{0});
  std::ranges::copy(mgid.bytes, out.begin());
  std::ranges::copy(port_gid.bytes, out.begin() + 16);
  store_be32(&out[32], q_key);
  store_be16(&out[36], mlid);
  out[38] = mtu;
  out[39] = traffic_class;
  store_be16(&out[40], p_key);
  out[42] = rate;
  out[43] = packet_lifetime;
  store_be32(&out[44], u32{sl} << 28 | (flow_label & 0xfffff) << 8 | hop_limit);
  out[48] = static_cast<u8>(scope << 4 | (join_state & 15));
}

}  // namespace verbena
