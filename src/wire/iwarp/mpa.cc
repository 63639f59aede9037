#include "wire/iwarp/mpa.h"

#include <algorithm>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/iwarp/crc32c.h"

namespace verbena::iwarp {
namespace {

constexpr std::string_view kRequestKey = "MPA ID Req Frame", kReplyKey = "MPA ID Rep Frame";
constexpr std::size_t kKeySize = 16, kLengthSize = 2, kCRCSize = 4;
constexpr u8 kMarkers = 0x80, kCRC = 0x40, kRejected = 0x20, kEnhanced = 0x10;
constexpr u8 kRFC7306OfRequest = 0x01, kRFC7306OfReply = 0x02;
constexpr u16 kDepth = 0x3fff;
constexpr u16 kUpper = 0x8000, kLower = 0x4000;

u8 rfc7306_bit(bool is_reply) { return is_reply ? kRFC7306OfReply : kRFC7306OfRequest; }

bool has_key(std::span<const u8> in, std::string_view key) {
  return std::equal(key.begin(), key.end(), in.begin(),
                    [](char c, u8 byte) { return static_cast<u8>(c) == byte; });
}

u32 load_le32(const u8* p) {
  return u32{p[0]} | u32{p[1]} << 8 | u32{p[2]} << 16 | u32{p[3]} << 24;
}

u16 with(u16 depth, bool upper, bool lower) {
  return static_cast<u16>((depth & kDepth) | (upper ? kUpper : 0) | (lower ? kLower : 0));
}

}  // namespace

u32 crc32c(std::span<const u8> bytes) {
  CRC32C crc;
  crc.add(bytes);
  return crc.value();
}

FPDUView FPDUView::decode(std::span<const u8> stream, CRCUse crc) {
  if (stream.size() < kLengthSize) return {};
  const u16 length = load_be16(stream.data());
  const std::size_t size = fpdu_bytes(length);
  if (stream.size() < size) return {};
  const std::size_t covered = size - kCRCSize;
  if (crc == CRCUse::kUsed && crc32c(stream.first(covered)) != load_le32(stream.data() + covered))
    return {.status = Status::kBad};
  return {.status = Status::kWhole, .ulpdu = stream.subspan(kLengthSize, length), .size = size};
}

void append_fpdu(std::span<const u8> ulpdu, CRCUse crc, std::vector<u8>& stream) {
  CHECK(ulpdu.size() <= 0xffff);
  const std::size_t begin = stream.size();
  stream.resize(begin + fpdu_bytes(static_cast<u32>(ulpdu.size())));
  const std::span<u8> fpdu = std::span(stream).subspan(begin);
  store_be16(fpdu.data(), static_cast<u16>(ulpdu.size()));
  std::ranges::copy(ulpdu, fpdu.begin() + kLengthSize);
  const std::size_t covered = fpdu.size() - kCRCSize;
  const u32 value = crc == CRCUse::kUsed ? crc32c(fpdu.first(covered)) : 0;
  for (std::size_t i = 0; i < kCRCSize; ++i) fpdu[covered + i] = static_cast<u8>(value >> 8 * i);
}

bool MPAFrame::may_begin(std::span<const u8> in, bool reply) {
  const std::string_view key = reply ? kReplyKey : kRequestKey;
  return has_key(in, key.substr(0, std::min(in.size(), key.size())));
}

std::optional<MPAFrame> MPAFrame::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const bool is_reply = has_key(in, kReplyKey);
  if (!is_reply && !has_key(in, kRequestKey)) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 flags = r.get8<16>();
  const MPAFrame frame{.is_reply = is_reply,
                       .markers = (flags & kMarkers) != 0,
                       .crc = (flags & kCRC) != 0,
                       .rejected = (flags & kRejected) != 0,
                       .enhanced = (flags & kEnhanced) != 0,
                       .rfc7306 = (flags & rfc7306_bit(is_reply)) != 0,
                       .revision = r.get8<17>(),
                       .private_data_length = r.get16<18>()};
  const bool is_known = frame.revision == 1 || frame.revision == 2;
  return is_known && frame.private_data_length <= kMostPrivateData ? std::optional(frame)
                                                                   : std::nullopt;
}

void MPAFrame::encode(std::span<u8, kSize> out) const {
  CHECK(private_data_length <= kMostPrivateData);
  std::ranges::copy(is_reply ? kReplyKey : kRequestKey, out.begin());
  Writer<kSize> w(out);
  w.put8<kKeySize>(static_cast<u8>((markers ? kMarkers : 0) | (crc ? kCRC : 0) |
                                   (rejected ? kRejected : 0) | (enhanced ? kEnhanced : 0) |
                                   (rfc7306 ? rfc7306_bit(is_reply) : 0)));
  w.put8<17>(revision);
  w.put16<18>(private_data_length);
}

std::optional<MPAEnhancement> MPAEnhancement::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u16 first = r.get16<0>(), second = r.get16<2>();
  return MPAEnhancement{.peer_to_peer = (first & kUpper) != 0,
                        .rtr_send = (first & kLower) != 0,
                        .rtr_write = (second & kUpper) != 0,
                        .rtr_read = (second & kLower) != 0,
                        .ird = static_cast<u16>(first & kDepth),
                        .ord = static_cast<u16>(second & kDepth)};
}

void MPAEnhancement::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put16<0>(with(ird, peer_to_peer, rtr_send));
  w.put16<2>(with(ord, rtr_write, rtr_read));
}

}  // namespace verbena::iwarp
