#include "wire/ib/cm/lap.h"

#include "base/bytes.h"

namespace verbena::cm {
namespace {

Path decode_alternate(std::span<const u8, LAP::kSize> bytes) {
  const Reader<LAP::kSize> r(bytes);
  return Path{.local_lid = r.get16<20>(),
              .remote_lid = r.get16<22>(),
              .local_gid = get_gid<24>(bytes),
              .remote_gid = get_gid<40>(bytes),
              .flow_label = r.get24<56>() >> 4,
              .packet_rate = get_bits(r.get8<61>(), 0, 6),
              .traffic_class = r.get8<59>(),
              .hop_limit = r.get8<60>(),
              .sl = get_bits(r.get8<62>(), 4, 4),
              .subnet_local = get_bits(r.get8<62>(), 3, 1) != 0,
              .local_ack_timeout = get_bits(r.get8<63>(), 3, 5)};
}

void encode_alternate(const Path& path, std::span<u8, LAP::kSize> out) {
  CHECK(path.flow_label <= kMaxFlowLabel);
  Writer<LAP::kSize> w(out);
  w.put16<20>(path.local_lid);
  w.put16<22>(path.remote_lid);
  put_gid<24>(out, path.local_gid);
  put_gid<40>(out, path.remote_gid);
  w.put24<56>(path.flow_label << 4);
  w.put8<59>(path.traffic_class);
  w.put8<60>(path.hop_limit);
  w.put8<61>(put_bits(path.packet_rate, 0, 6));
  w.put8<62>(static_cast<u8>(put_bits(path.sl, 4, 4) | put_bits(path.subnet_local, 3, 1)));
  w.put8<63>(put_bits(path.local_ack_timeout, 3, 5));
}

}  // namespace

std::optional<LAP> LAP::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return LAP{.local_comm_id = CommId{r.get32<0>()},
             .remote_comm_id = CommId{r.get32<4>()},
             .remote_qpn = QPN{r.get24<12>()},
             .remote_cm_response_timeout = get_bits(r.get8<15>(), 3, 5),
             .alternate = decode_alternate(bytes),
             .private_data = get_bytes<64, kPrivateDataSize>(bytes)};
}

void LAP::encode(std::span<u8, kSize> out) const {
  CHECK(remote_qpn.value <= kMask24);
  Writer<kSize> w(out);
  w.put32<0>(local_comm_id.value);
  w.put32<4>(remote_comm_id.value);
  w.put32<8>(0);
  w.put24<12>(remote_qpn.value);
  w.put8<15>(put_bits(remote_cm_response_timeout, 3, 5));
  w.put32<16>(0);
  encode_alternate(alternate, out);
  put_bytes<64>(out, private_data);
}

}  // namespace verbena::cm
