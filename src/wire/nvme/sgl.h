// SGLDescriptor: 16 bytes that say where a command's data is. NVM Express Base 2.0, 4.1.2. The
// RDMA transport has two kinds: a keyed data block in the host's memory, and an offset in the
// capsule.
//    0                          7 8          11 12          15
//   |        Address             |   Length    |  | type|sub |   data block (types 0)
//   |        Address             | Length |   Key   | type|sub|  keyed data block (type 4)
// Little endian. Reserved bytes: sent as 0, ignored on receipt.
#pragma once

#include "base/little_endian.h"

namespace verbena::nvme {

struct SGLDescriptor {
  static constexpr std::size_t kSize = 16;
  enum class Type : u8 { kDataBlock = 0, kKeyedDataBlock = 4 };
  // The subtypes of a data block, and of a keyed one.
  static constexpr u8 kSubtypeAddress = 0, kSubtypeOffset = 1, kSubtypeInvalidateKey = 0xf;

  u8 type = 0;  // Type, or a value that we do not know
  u8 subtype = 0;
  u64 address = 0;  // or the offset
  u32 length = 0;   // 24 bits where it is keyed
  u32 key = 0;

  [[nodiscard]] static SGLDescriptor decode(std::span<const u8, kSize> in) {
    const LEReader<kSize> r(in);
    SGLDescriptor d;
    d.type = in[15] >> 4;
    d.subtype = in[15] & 0xf;
    d.address = r.get<u64, 0>();
    d.length = r.get<u32, 8>();
    if (d.type != static_cast<u8>(Type::kKeyedDataBlock)) return d;
    d.length &= 0xffffff;
    d.key = r.get<u32, 11>();
    return d;
  }
  void encode(std::span<u8, kSize> out) const {
    const LEWriter<kSize> w(out);
    w.put<u64, 0>(address);
    w.put<u32, 8>(length);
    w.put<u32, 12>(0);
    if (type == static_cast<u8>(Type::kKeyedDataBlock)) w.put<u32, 11>(key);
    out[15] = static_cast<u8>(type << 4 | subtype);
  }
  [[nodiscard]] static SGLDescriptor keyed(u64 address, u32 length, u32 key) {
    return {static_cast<u8>(Type::kKeyedDataBlock), 0, address, length, key};
  }
  [[nodiscard]] static SGLDescriptor in_capsule(u32 length) {
    return {static_cast<u8>(Type::kDataBlock), kSubtypeOffset, 0, length, 0};
  }
  friend bool operator==(const SGLDescriptor&, const SGLDescriptor&) = default;
};

}  // namespace verbena::nvme
