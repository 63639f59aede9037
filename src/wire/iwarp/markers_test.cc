#include "wire/iwarp/markers.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace verbena::iwarp {
namespace {

// The plain bytes of an FPDU but its CRC.
std::vector<u8> plain_fpdu(u32 ulpdu, u8 seed) {
  std::vector<u8> out(fpdu_bytes(ulpdu) - 4);
  store_be16(out.data(), static_cast<u16>(ulpdu));
  for (u32 i = 0; i < ulpdu; ++i) out[2 + i] = static_cast<u8>(seed + i * 13);
  return out;
}

// RFC 5044, 4.3: from the first byte on, at each 512th.
TEST(MPAMarkers, StandAtEach512thByte) {
  std::vector<u8> stream;
  std::vector<std::size_t> begins;  // of ULPDU_Length
  for (const u32 ulpdu : {14u, 494u, 486u, 1400u, 2u, 3000u}) {
    begins.push_back(stream.size() + (stream.size() % 512 == 0 ? 4 : 0));
    const std::size_t before = stream.size();
    append_marked(plain_fpdu(ulpdu, 1), CRCUse::kUsed, before, stream);
    EXPECT_EQ(stream.size() - before, marked_bytes(fpdu_bytes(ulpdu), before)) << ulpdu;
  }
  for (std::size_t at = 0; at < stream.size(); at += 512) {
    std::size_t begin = at + 4;  // between two FPDUs: the next is meant, with 0
    for (const std::size_t known : begins)
      if (known < at) begin = known;
    const bool is_between = std::ranges::find(begins, at + 4) != begins.end();
    EXPECT_EQ(load_be16(stream.data() + at), 0u);
    EXPECT_EQ(load_be16(stream.data() + at + 2), is_between ? 0 : at - begin) << at;
  }
}

TEST(MPAMarkers, TheLongestFPDUFitsASegmentWhereverMarkersFall) {
  for (u32 mss = 128; mss < 3000; ++mss)
    for (u64 position = 0; position < 512; position += 4)
      ASSERT_LE(marked_bytes(fpdu_bytes(longest_marked_ulpdu(mss)), position), mss);
}

// Every split of the stream gives the same FPDUs.
TEST(MPAMarkers, AreTakenOutHoweverTheStreamIsCut) {
  const std::vector<u32> sizes{14, 494, 1, 486, 490, 1400, 2, 5000, 100};
  std::vector<u8> stream;
  for (const u32 ulpdu : sizes)
    append_marked(plain_fpdu(ulpdu, static_cast<u8>(ulpdu)), CRCUse::kUsed, stream.size(), stream);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    MarkedReader reader(CRCUse::kUsed);
    std::size_t found = 0;
    for (std::span<const u8> part :
         {std::span<const u8>(stream).first(cut), std::span<const u8>(stream).subspan(cut)})
      while (!part.empty()) {
        const MarkedReader::Step step = reader.read(part);
        if (step == MarkedReader::Step::kMore) continue;
        ASSERT_EQ(step, MarkedReader::Step::kFPDU);
        const std::vector<u8> expected = plain_fpdu(sizes[found], static_cast<u8>(sizes[found]));
        ASSERT_TRUE(std::ranges::equal(reader.fpdu(), expected)) << cut << " " << found;
        ++found;
      }
    ASSERT_EQ(found, sizes.size());
    ASSERT_TRUE(reader.is_at_boundary());
  }
}

MarkedReader::Step first_fault(std::span<const u8> stream, CRCUse crc) {
  MarkedReader reader(crc);
  while (!stream.empty()) {
    const MarkedReader::Step step = reader.read(stream);
    if (step == MarkedReader::Step::kBadMarker || step == MarkedReader::Step::kBadCRC) return step;
  }
  return MarkedReader::Step::kMore;
}

TEST(MPAMarkers, WrongPointersAndCRCsAreFound) {
  std::vector<u8> stream;
  append_marked(plain_fpdu(1400, 1), CRCUse::kUsed, 0, stream);
  for (const std::size_t at : {2u, 3u, 514u, 515u}) {
    std::vector<u8> wrong = stream;
    wrong[at] ^= 0x10;
    EXPECT_EQ(first_fault(wrong, CRCUse::kNotUsed), MarkedReader::Step::kBadMarker) << at;
  }
  std::vector<u8> low_bits = stream;
  low_bits[515] ^= 3;
  EXPECT_EQ(first_fault(low_bits, CRCUse::kNotUsed), MarkedReader::Step::kMore);
  for (const std::size_t at : {0u, 6u, 512u, 700u}) {  // reserved bytes and payload
    std::vector<u8> wrong = stream;
    wrong[at] ^= 0x10;
    EXPECT_EQ(first_fault(wrong, CRCUse::kUsed), MarkedReader::Step::kBadCRC) << at;
  }
}

// A peer that sends none although it was asked to.
TEST(MPAMarkers, AStreamWithoutThemIsAFault) {
  std::vector<u8> stream;
  for (u32 i = 0; i < 4; ++i) {
    const std::vector<u8> plain = plain_fpdu(1400, 1);
    append_fpdu(std::span<const u8>(plain).subspan(2, 1400), CRCUse::kUsed, stream);
  }
  EXPECT_NE(first_fault(stream, CRCUse::kUsed), MarkedReader::Step::kMore);
}

}  // namespace
}  // namespace verbena::iwarp
