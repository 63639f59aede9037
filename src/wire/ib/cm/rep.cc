#include "wire/ib/cm/rep.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<REP> REP::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  const u8 delay = r.get8<26>();
  const u8 rnr = r.get8<27>();
  return REP{.local_comm_id = CommId{r.get32<0>()},
             .remote_comm_id = CommId{r.get32<4>()},
             .local_q_key = QKey{r.get32<8>()},
             .local_qpn = QPN{r.get24<12>()},
             .local_eecn = r.get24<16>(),
             .vendor_id = u32{r.get8<15>()} << 16 | u32{r.get8<19>()} << 8 | r.get8<23>(),
             .starting_psn = PSN{r.get24<20>()},
             .responder_resources = r.get8<24>(),
             .initiator_depth = r.get8<25>(),
             .target_ack_delay = get_bits(delay, 3, 5),
             .failover = Failover{get_bits(delay, 1, 2)},
             .end_to_end_flow_control = get_bits(delay, 0, 1) != 0,
             .rnr_retry_count = get_bits(rnr, 5, 3),
             .srq = get_bits(rnr, 4, 1) != 0,
             .local_ca_guid = GUID{r.get64<28>()},
             .private_data = get_bytes<36, kPrivateDataSize>(bytes)};
}

void REP::encode(std::span<u8, kSize> out) const {
  CHECK(local_qpn.value <= kMask24 && local_eecn <= kMask24 && vendor_id <= kMask24);
  Writer<kSize> w(out);
  w.put32<0>(local_comm_id.value);
  w.put32<4>(remote_comm_id.value);
  w.put32<8>(local_q_key.value);
  w.put32<12>(local_qpn.value << 8 | vendor_id >> 16);
  w.put32<16>(local_eecn << 8 | (vendor_id >> 8 & 0xff));
  w.put32<20>(starting_psn.value() << 8 | (vendor_id & 0xff));
  w.put8<24>(responder_resources);
  w.put8<25>(initiator_depth);
  w.put8<26>(static_cast<u8>(put_bits(target_ack_delay, 3, 5) |
                             put_bits(static_cast<u8>(failover), 1, 2) |
                             put_bits(end_to_end_flow_control, 0, 1)));
  w.put8<27>(static_cast<u8>(put_bits(rnr_retry_count, 5, 3) | put_bits(srq, 4, 1)));
  w.put64<28>(local_ca_guid.value);
  put_bytes<36>(out, private_data);
}

}  // namespace verbena::cm
