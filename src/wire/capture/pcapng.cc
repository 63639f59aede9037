#include "wire/capture/pcapng.h"

#include <algorithm>

namespace verbena::pcapng {
namespace {

constexpr u32 kSectionHeader = 0x0a0d0d0a, kInterfaceDescription = 1, kEnhancedPacket = 6;
constexpr u32 kByteOrderMagic = 0x1a2b3c4d;
constexpr u16 kMajor = 1, kMinor = 0;
enum Option : u16 {
  kEnd = 0,
  kComment = 1,
  kFlags = 2,
  kName = 2,
  kApplication = 4,
  kResolution = 9
};
constexpr u8 kNanoseconds = 9;  // 10^-9
constexpr std::size_t kMaxComment = 1024;

// One block, from its type to the second of its lengths.
class Block {
 public:
  Block(u32 type, std::vector<u8>& out) : out_(out), start_(out.size()) {
    put(type);
    put(u32{0});  // the length, which end() fills in
  }
  template <typename T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      out_.push_back(static_cast<u8>(static_cast<u64>(value) >> (8 * i)));
  }
  void put_bytes(std::span<const u8> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void pad() {
    while ((out_.size() - start_) % 4 != 0) out_.push_back(0);
  }
  void option(Option code, std::span<const u8> value) {
    put(static_cast<u16>(code));
    put(static_cast<u16>(value.size()));
    put_bytes(value);
    pad();
  }
  void option(Option code, std::string_view text) {
    option(code, std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  }
  void end() {
    put(u32{kEnd});  // of the options
    const u32 length = static_cast<u32>(out_.size() - start_ + sizeof(u32));
    put(length);
    for (std::size_t i = 0; i < sizeof length; ++i)
      out_[start_ + 4 + i] = static_cast<u8>(length >> (8 * i));
  }

 private:
  std::vector<u8>& out_;
  const std::size_t start_;
};

}  // namespace

void append_section(std::string_view application, std::vector<u8>& out) {
  Block block(kSectionHeader, out);
  block.put(kByteOrderMagic);
  block.put(kMajor);
  block.put(kMinor);
  block.put(~u64{0});  // of unknown length
  block.option(kApplication, application);
  block.end();
}

void append_interface(std::string_view name, std::vector<u8>& out, LinkType type) {
  Block block(kInterfaceDescription, out);
  block.put(static_cast<u16>(type));
  block.put(u16{0});
  block.put(u32{0});  // packets are never truncated
  block.option(kName, name);
  block.option(kResolution, std::span(&kNanoseconds, 1));
  block.end();
}

void append_packet(const Packet& packet, std::span<const std::span<const u8>> parts,
                   std::vector<u8>& out) {
  u32 size = 0;
  for (const std::span<const u8> part : parts) size += static_cast<u32>(part.size());
  Block block(kEnhancedPacket, out);
  block.put(packet.interface);
  block.put(static_cast<u32>(static_cast<u64>(packet.time_ns) >> 32));
  block.put(static_cast<u32>(packet.time_ns));
  block.put(size);
  block.put(size);
  for (const std::span<const u8> part : parts) block.put_bytes(part);
  block.pad();
  const std::array<u8, 4> flags{static_cast<u8>(packet.direction), 0, 0, 0};
  block.option(kFlags, flags);
  if (!packet.comment.empty()) block.option(kComment, packet.comment.substr(0, kMaxComment));
  block.end();
}

}  // namespace verbena::pcapng
