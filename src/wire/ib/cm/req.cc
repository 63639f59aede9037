#include "wire/ib/cm/req.h"

#include "base/bytes.h"

namespace verbena::cm {
namespace {

constexpr std::size_t kPrimaryAt = 52;
constexpr std::size_t kAlternateAt = 96;
constexpr std::size_t kPrivateDataAt = 140;
constexpr std::size_t kSAPAt = 139;
constexpr int kSAPShift = 2;

void decode_numbers(const Reader<REQ::kSize>& r, REQ& req) {
  req.local_comm_id = CommId{r.get32<0>()};
  req.vendor_id = r.get24<5>();
  req.service_id = ServiceId{r.get64<8>()};
  req.local_ca_guid = GUID{r.get64<16>()};
  req.local_q_key = QKey{r.get32<28>()};
  req.local_qpn = QPN{r.get24<32>()};
  req.responder_resources = r.get8<35>();
  req.local_eecn = r.get24<36>();
  req.initiator_depth = r.get8<39>();
  req.remote_eecn = r.get24<40>();
  req.starting_psn = PSN{r.get24<44>()};
  req.p_key = PKey{r.get16<48>()};
}

void decode_bits(const Reader<REQ::kSize>& r, REQ& req) {
  req.remote_cm_response_timeout = get_bits(r.get8<43>(), 3, 5);
  req.transport_service = TransportService{get_bits(r.get8<43>(), 1, 2)};
  req.end_to_end_flow_control = get_bits(r.get8<43>(), 0, 1) != 0;
  req.local_cm_response_timeout = get_bits(r.get8<47>(), 3, 5);
  req.retry_count = get_bits(r.get8<47>(), 0, 3);
  req.path_mtu_code = get_bits(r.get8<50>(), 4, 4);
  req.rdc_exists = get_bits(r.get8<50>(), 3, 1) != 0;
  req.rnr_retry_count = get_bits(r.get8<50>(), 0, 3);
  req.max_cm_retries = get_bits(r.get8<51>(), 4, 4);
  req.srq = get_bits(r.get8<51>(), 3, 1) != 0;
  req.extended_transport = get_bits(r.get8<51>(), 0, 3);
  req.sap_supported = get_bits(r.get8<kSAPAt>(), kSAPShift, 1) != 0;
}

void encode_numbers(const REQ& req, Writer<REQ::kSize>& w) {
  CHECK(req.local_qpn.value <= kMask24 && req.local_eecn <= kMask24 && req.remote_eecn <= kMask24);
  CHECK(req.vendor_id <= kMask24);
  w.put32<0>(req.local_comm_id.value);
  w.put32<4>(req.vendor_id);
  w.put64<8>(req.service_id.value);
  w.put64<16>(req.local_ca_guid.value);
  w.put32<24>(0);
  w.put32<28>(req.local_q_key.value);
  w.put24<32>(req.local_qpn.value);
  w.put8<35>(req.responder_resources);
  w.put24<36>(req.local_eecn);
  w.put8<39>(req.initiator_depth);
  w.put24<40>(req.remote_eecn);
  w.put24<44>(req.starting_psn.value());
  w.put16<48>(req.p_key.value);
}

void encode_bits(const REQ& req, Writer<REQ::kSize>& w) {
  w.put8<43>(static_cast<u8>(put_bits(req.remote_cm_response_timeout, 3, 5) |
                             put_bits(static_cast<u8>(req.transport_service), 1, 2) |
                             put_bits(req.end_to_end_flow_control, 0, 1)));
  w.put8<47>(static_cast<u8>(put_bits(req.local_cm_response_timeout, 3, 5) |
                             put_bits(req.retry_count, 0, 3)));
  w.put8<50>(static_cast<u8>(put_bits(req.path_mtu_code, 4, 4) | put_bits(req.rdc_exists, 3, 1) |
                             put_bits(req.rnr_retry_count, 0, 3)));
  w.put8<51>(static_cast<u8>(put_bits(req.max_cm_retries, 4, 4) | put_bits(req.srq, 3, 1) |
                             put_bits(req.extended_transport, 0, 3)));
}

}  // namespace

std::optional<REQ> REQ::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  REQ req;
  decode_numbers(r, req);
  decode_bits(r, req);
  req.primary = *Path::decode(bytes.subspan<kPrimaryAt, Path::kSize>());
  req.alternate = *Path::decode(bytes.subspan<kAlternateAt, Path::kSize>());
  req.private_data = get_bytes<kPrivateDataAt, kPrivateDataSize>(bytes);
  return req;
}

void REQ::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  encode_numbers(*this, w);
  encode_bits(*this, w);
  primary.encode(out.subspan<kPrimaryAt, Path::kSize>());
  alternate.encode(out.subspan<kAlternateAt, Path::kSize>());
  out[kSAPAt] = static_cast<u8>(out[kSAPAt] | put_bits(sap_supported, kSAPShift, 1));
  put_bytes<kPrivateDataAt>(out, private_data);
}

}  // namespace verbena::cm
