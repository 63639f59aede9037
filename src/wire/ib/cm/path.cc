#include "wire/ib/cm/path.h"

#include "base/bytes.h"
#include "wire/ib/cm/fields.h"

namespace verbena::cm {
namespace {

constexpr int kFlowLabelShift = 12;
constexpr u32 kMaxPacketRate = 0x3f;

}  // namespace

std::optional<Path> Path::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  const u32 flow = r.get32<36>();
  const u8 service = r.get8<42>();
  return Path{.local_lid = r.get16<0>(),
              .remote_lid = r.get16<2>(),
              .local_gid = get_gid<4>(bytes),
              .remote_gid = get_gid<20>(bytes),
              .flow_label = flow >> kFlowLabelShift,
              .packet_rate = static_cast<u8>(flow & kMaxPacketRate),
              .traffic_class = r.get8<40>(),
              .hop_limit = r.get8<41>(),
              .sl = get_bits(service, 4, 4),
              .subnet_local = get_bits(service, 3, 1) != 0,
              .local_ack_timeout = get_bits(r.get8<43>(), 3, 5)};
}

void Path::encode(std::span<u8, kSize> out) const {
  CHECK(flow_label <= kMaxFlowLabel && packet_rate <= kMaxPacketRate);
  Writer<kSize> w(out);
  w.put16<0>(local_lid);
  w.put16<2>(remote_lid);
  put_gid<4>(out, local_gid);
  put_gid<20>(out, remote_gid);
  w.put32<36>((flow_label << kFlowLabelShift) | packet_rate);
  w.put8<40>(traffic_class);
  w.put8<41>(hop_limit);
  w.put8<42>(static_cast<u8>(put_bits(sl, 4, 4) | put_bits(subnet_local, 3, 1)));
  w.put8<43>(put_bits(local_ack_timeout, 3, 5));
}

}  // namespace verbena::cm
