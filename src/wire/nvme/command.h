// Command: a submission queue entry, the first 64 bytes of a command capsule; and Completion, the
// 16 bytes of a response capsule. NVM Express Base 2.0, 3.3.3.
#pragma once

#include <array>

#include "wire/nvme/sgl.h"
#include "wire/nvme/status.h"

namespace verbena::nvme {

enum class AdminOpcode : u8 {
  kGetLogPage = 0x02,
  kIdentify = 0x06,
  kAbort = 0x08,
  kSetFeatures = 0x09,
  kGetFeatures = 0x0a,
  kAsyncEventRequest = 0x0c,
  kKeepAlive = 0x18,
};
enum class IOOpcode : u8 {
  kFlush = 0x00,
  kWrite = 0x01,
  kRead = 0x02,
  kCompare = 0x05,
  kWriteZeroes = 0x08,
  kDatasetManagement = 0x09,
};
inline constexpr u8 kFabricsOpcode = 0x7f;
// Where an opcode's data goes: bits 1:0. A Fabrics command has it in its type.
[[nodiscard]] constexpr bool sends_data_to_controller(u8 opcode) { return (opcode & 3) == 1; }

inline constexpr u32 kAllNamespaces = 0xffffffff;

//    0      opcode, flags (FUSE 1:0, PSDT 7:6), CID      4  NSID, or the type of a Fabrics command
//   24      SGL 1                                        40  CDW10 .. CDW15
struct Command {
  static constexpr std::size_t kSize = 64;

  u8 opcode = 0;
  u8 flags = 0x40;  // PSDT: SGLs. Base 2.0, figure 86
  u16 cid = 0;
  u32 nsid = 0;
  SGLDescriptor sgl{};
  std::array<u32, 6> cdw{};  // CDW10 .. CDW15

  [[nodiscard]] u32 cdw10() const { return cdw[0]; }
  [[nodiscard]] u32 cdw11() const { return cdw[1]; }
  [[nodiscard]] u32 cdw12() const { return cdw[2]; }
  [[nodiscard]] u64 slba() const { return u64{cdw[1]} << 32 | cdw[0]; }
  [[nodiscard]] u32 blocks() const { return (cdw[2] & 0xffff) + 1; }
  [[nodiscard]] u8 fabrics_type() const { return static_cast<u8>(nsid); }

  [[nodiscard]] static Command decode(std::span<const u8, kSize> in) {
    const LEReader<kSize> r(in);
    Command c{.opcode = in[0],
              .flags = in[1],
              .cid = r.get<u16, 2>(),
              .nsid = r.get<u32, 4>(),
              .sgl = SGLDescriptor::decode(in.subspan<24, SGLDescriptor::kSize>())};
    for (std::size_t i = 0; i < c.cdw.size(); ++i) c.cdw[i] = load_le<u32>(in.data() + 40 + 4 * i);
    return c;
  }
  void encode(std::span<u8, kSize> out) const {
    std::ranges::fill(out, u8{0});
    const LEWriter<kSize> w(out);
    out[0] = opcode;
    out[1] = flags;
    w.put<u16, 2>(cid);
    w.put<u32, 4>(nsid);
    sgl.encode(out.subspan<24, SGLDescriptor::kSize>());
    for (std::size_t i = 0; i < cdw.size(); ++i) store_le<u32>(out.data() + 40 + 4 * i, cdw[i]);
  }
  friend bool operator==(const Command&, const Command&) = default;
};

struct Completion {
  static constexpr std::size_t kSize = 16;

  u64 result = 0;  // DW0 and DW1
  u16 sq_head = 0, sq_id = 0;
  u16 cid = 0;
  u16 status = 0;  // Status, with kDoNotRetry or without

  [[nodiscard]] Status code() const { return static_cast<Status>(status & 0x7ff); }
  [[nodiscard]] static Completion decode(std::span<const u8, kSize> in) {
    const LEReader<kSize> r(in);
    return {r.get<u64, 0>(), r.get<u16, 8>(), r.get<u16, 10>(), r.get<u16, 12>(),
            static_cast<u16>(r.get<u16, 14>() >> 1)};
  }
  void encode(std::span<u8, kSize> out) const {
    const LEWriter<kSize> w(out);
    w.put<u64, 0>(result);
    w.put<u16, 8>(sq_head);
    w.put<u16, 10>(sq_id);
    w.put<u16, 12>(cid);
    w.put<u16, 14>(static_cast<u16>(status << 1));
  }
  friend bool operator==(const Completion&, const Completion&) = default;
};

}  // namespace verbena::nvme
