#include "wire/ib/mad.h"

#include "base/bytes.h"

namespace verbena {

std::optional<MADHeader> MADHeader::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  if (r.get8<0>() != kBaseVersion) return std::nullopt;
  return MADHeader{.mgmt_class = MgmtClass{r.get8<1>()},
                   .class_version = r.get8<2>(),
                   .method = MADMethod{r.get8<3>()},
                   .status = r.get16<4>(),
                   .class_specific = r.get16<6>(),
                   .transaction_id = r.get64<8>(),
                   .attribute_id = r.get16<16>(),
                   .attribute_modifier = r.get32<20>()};
}

void MADHeader::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put8<0>(kBaseVersion);
  w.put8<1>(static_cast<u8>(mgmt_class));
  w.put8<2>(class_version);
  w.put8<3>(static_cast<u8>(method));
  w.put16<4>(status);
  w.put16<6>(class_specific);
  w.put64<8>(transaction_id);
  w.put16<16>(attribute_id);
  w.put16<18>(0);
  w.put32<20>(attribute_modifier);
}

}  // namespace verbena
