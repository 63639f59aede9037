// The additions of NVMe over Fabrics: its commands, the data of Connect, properties, and the
// private data with which RDMA connections are made. NVMe over Fabrics 1.1a, 3 and 5; NVMe RDMA
// Transport 1.0a, 3.
#pragma once

#include <optional>
#include <string>

#include "wire/nvme/command.h"

namespace verbena::nvme {

inline constexpr std::string_view kDiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery";
inline constexpr std::size_t kMaxNQN = 223;  // bytes, without the NUL
inline constexpr u16 kDynamicController = 0xffff;
inline constexpr u16 kRDMAPort = 4420, kDiscoveryPort = 8009;

// Linux takes names that do not begin with "nqn.", and so do we.
[[nodiscard]] constexpr bool is_nqn(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNQN &&
         std::ranges::all_of(text, [](char c) { return static_cast<u8>(c) > ' ' && c != 0x7f; });
}

enum class FabricsType : u8 {
  kPropertySet = 0x00,
  kConnect = 0x01,
  kPropertyGet = 0x04,
  kAuthenticationSend = 0x05,
  kAuthenticationReceive = 0x06,
  kDisconnect = 0x08,
};

// Whether the host's data may come in the capsule of the command. Bits 1:0 say it of an opcode, and
// of the type of a Fabrics command.
[[nodiscard]] constexpr bool may_send_data(const Command& command) {
  return sends_data_to_controller(command.opcode == kFabricsOpcode ? command.fabrics_type()
                                                                   : command.opcode);
}

// The command-specific bytes 40 to 63 of Connect.
struct ConnectCommand {
  static constexpr u8 kDisablesSQFlowControl = 1 << 2;  // in cattr

  u16 record_format = 0, qid = 0;
  u16 sq_size = 0;  // 0's based
  u8 attributes = 0;
  u32 keep_alive_ms = 0;

  [[nodiscard]] static ConnectCommand from(const Command& c) {
    return {static_cast<u16>(c.cdw[0]), static_cast<u16>(c.cdw[0] >> 16),
            static_cast<u16>(c.cdw[1]), static_cast<u8>(c.cdw[1] >> 16), c.cdw[2]};
  }
  void put_into(Command& c) const {
    c.opcode = kFabricsOpcode;
    c.nsid = static_cast<u32>(FabricsType::kConnect);
    c.cdw[0] = record_format | u32{qid} << 16;
    c.cdw[1] = sq_size | u32{attributes} << 16;
    c.cdw[2] = keep_alive_ms;
  }
};

struct ConnectData {
  static constexpr std::size_t kSize = 1024;
  static constexpr u32 kControllerIdAt = 16, kSubsystemAt = 256, kHostAt = 512;  // for errors

  std::array<u8, 16> host_id{};
  u16 controller_id = kDynamicController;
  std::string subsystem_nqn, host_nqn;

  [[nodiscard]] static ConnectData decode(std::span<const u8, kSize> in) {
    const LEReader<kSize> r(in);
    ConnectData d;
    std::ranges::copy(in.first<16>(), d.host_id.begin());
    d.controller_id = r.get<u16, kControllerIdAt>();
    d.subsystem_nqn = r.text<kSubsystemAt, 256>();
    d.host_nqn = r.text<kHostAt, 256>();
    return d;
  }
  void encode(std::span<u8, kSize> out) const {
    std::ranges::fill(out, u8{0});
    const LEWriter<kSize> w(out);
    std::ranges::copy(host_id, out.begin());
    w.put<u16, kControllerIdAt>(controller_id);
    w.text<kSubsystemAt, 256>(subsystem_nqn);
    w.text<kHostAt, 256>(host_nqn);
  }
};

// Properties, by their offsets. Base 2.0, 3.1.3.
enum class Property : u32 { kCAP = 0x00, kVS = 0x08, kCC = 0x14, kCSTS = 0x1c, kNSSR = 0x20 };
inline constexpr u32 kVersion = 0x00020000;  // VS: 2.0
inline constexpr u32 kCCEnable = 1, kCCShutdownMask = 3 << 14;
inline constexpr u32 kCCFabrics = 6u << 16 | 4u << 20;  // IOSQES 64, IOCQES 16
inline constexpr u32 kCSTSReady = 1, kCSTSFatal = 2, kCSTSShutdownDone = 2 << 2;

// Private data of REQ. RDMA transport 1.0a, figure 10.
struct RDMARequestData {
  static constexpr std::size_t kSize = 32;

  u16 record_format = 0, qid = 0;
  u16 receive_queue_size = 0;  // HRQSIZE
  u16 send_queue_size = 0;     // HSQSIZE, 0's based
  u16 controller_id = 0;

  [[nodiscard]] static std::optional<RDMARequestData> decode(std::span<const u8> in) {
    if (in.size() < kSize) return std::nullopt;
    const LEReader<kSize> r(in.first<kSize>());
    return RDMARequestData{r.get<u16, 0>(), r.get<u16, 2>(), r.get<u16, 4>(), r.get<u16, 6>(),
                           r.get<u16, 8>()};
  }
  [[nodiscard]] std::array<u8, kSize> encode() const {
    std::array<u8, kSize> out{};
    const LEWriter<kSize> w(out);
    w.put<u16, 0>(record_format);
    w.put<u16, 2>(qid);
    w.put<u16, 4>(receive_queue_size);
    w.put<u16, 6>(send_queue_size);
    w.put<u16, 8>(controller_id);
    return out;
  }
};

// Private data of REP, figure 11: the record format and CRQSIZE.
[[nodiscard]] inline std::array<u8, 32> rdma_accept_data(u16 receive_queue_size) {
  std::array<u8, 32> out{};
  store_le<u16>(out.data() + 2, receive_queue_size);
  return out;
}

// Private data of REJ, figures 12 and 13.
enum class RDMAReject : u16 {
  kInvalidPrivateDataLength = 1,
  kInvalidRecordFormat = 2,
  kInvalidQueueId = 3,
  kInvalidHSQSize = 4,
  kInvalidHRQSize = 5,
  kNoResources = 6,
  kInvalidIRD = 7,
  kInvalidORD = 8,
  kInvalidControllerId = 9,
};
[[nodiscard]] inline std::array<u8, 4> rdma_reject_data(RDMAReject reason) {
  std::array<u8, 4> out{};
  store_le<u16>(out.data() + 2, static_cast<u16>(reason));
  return out;
}

}  // namespace verbena::nvme
