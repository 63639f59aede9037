// MPA, DDP and RDMAP against the packets of Linux's soft-iWARP (tests/captures/siw-*.pcap).
#include <gtest/gtest.h>

#include <map>

#include "tests/support/pcap.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/tcp.h"
#include "wire/iwarp/ddp.h"
#include "wire/iwarp/mpa.h"
#include "wire/iwarp/rdmap.h"

namespace verbena::iwarp {
namespace {

// The bytes of each direction, by the sender's address. Nothing is lost or late in the captures.
std::map<u32, std::vector<u8>> streams_of(const std::string& name) {
  std::map<u32, std::vector<u8>> streams;
  for (const test::CapturedFrame& frame : test::read_capture(name)) {
    const std::span<const u8> packet = std::span(frame.bytes).subspan(EthernetHeader::kSize);
    const std::optional<IPv4Header> ip = IPv4Header::decode(packet);
    if (!ip) continue;
    const std::span<const u8> segment =
        packet.subspan(IPv4Header::kSize, ip->total_length - IPv4Header::kSize);
    const std::optional<TCPHeader> tcp = TCPHeader::decode(segment);
    if (!tcp) continue;
    const std::span<const u8> payload = segment.subspan(tcp->size());
    std::vector<u8>& stream = streams[ip->source];
    stream.insert(stream.end(), payload.begin(), payload.end());
  }
  return streams;
}

struct Unit {
  RDMAPOpcode opcode;
  bool last;
  std::size_t payload;
  friend bool operator==(const Unit&, const Unit&) = default;
};

// The sent messages in words; each header is also encoded again from its fields.
std::vector<Unit> units_of(std::span<const u8> stream, CRCUse crc) {
  std::vector<Unit> units;
  while (!stream.empty()) {
    const FPDUView fpdu = FPDUView::decode(stream, crc);
    EXPECT_EQ(fpdu.status, FPDUView::Status::kWhole);
    if (fpdu.status != FPDUView::Status::kWhole) return units;
    std::vector<u8> again;
    append_fpdu(fpdu.ulpdu, crc, again);
    EXPECT_TRUE(std::ranges::equal(again, stream.first(fpdu.size)));
    const auto tagged = DDPTagged::decode(fpdu.ulpdu);
    const auto untagged = DDPUntagged::decode(fpdu.ulpdu);
    EXPECT_NE(tagged.has_value(), untagged.has_value());
    const u8 control = tagged ? tagged->control : untagged->control;
    const std::optional<RDMAPOpcode> opcode = opcode_of(control);
    EXPECT_TRUE(opcode.has_value() && is_tagged(*opcode) == tagged.has_value());
    EXPECT_EQ(control_of(*opcode), control);
    const std::size_t header = tagged ? DDPTagged::kSize : DDPUntagged::kSize;
    units.push_back({*opcode, tagged ? tagged->last : untagged->last, fpdu.ulpdu.size() - header});
    stream = stream.subspan(fpdu.size);
  }
  return units;
}

// The request or reply, removed from the stream.
MPAFrame take_mpa(std::span<const u8>& stream) {
  const std::optional<MPAFrame> frame = MPAFrame::decode(stream);
  EXPECT_TRUE(frame.has_value());
  std::array<u8, MPAFrame::kSize> again{};
  frame->encode(again);
  EXPECT_TRUE(std::ranges::equal(again, stream.first(MPAFrame::kSize)));
  for (std::size_t n = 0; n < MPAFrame::kSize; ++n)
    EXPECT_FALSE(MPAFrame::decode(stream.first(n)).has_value()) << n;
  stream = stream.subspan(MPAFrame::kSize);
  return *frame;
}

constexpr u32 kGuest1 = 0x0a4d0002, kGuest2 = 0x0a4d0003;  // passive, active

using enum RDMAPOpcode;

// SEND of 1600 bytes both ways, WRITE 64 and 1600, READ 64 and 1600, SEND (README.md there).
const std::vector<Unit> kFromActive = {
    {kSend, false, 1424},     {kSend, true, 176},   {kWrite, true, 64},
    {kWrite, false, 1428},    {kWrite, true, 172},  {kReadRequest, true, 28},
    {kReadRequest, true, 28}, {kSend, false, 1424}, {kSend, true, 176}};
const std::vector<Unit> kFromPassive = {{kSend, false, 1424},
                                        {kSend, true, 176},
                                        {kReadResponse, true, 64},
                                        {kReadResponse, false, 1428},
                                        {kReadResponse, true, 172}};

TEST(IWARPCaptures, OperationsWithCRC) {
  std::map<u32, std::vector<u8>> streams = streams_of("siw-crc.pcap");
  for (const u32 guest : {kGuest1, kGuest2}) {
    std::span<const u8> stream = streams[guest];
    const MPAFrame frame = take_mpa(stream);
    EXPECT_EQ(frame, (MPAFrame{.is_reply = guest == kGuest1,
                               .crc = true,
                               .enhanced = true,
                               .revision = 2,
                               .private_data_length = 4}));
    EXPECT_EQ(MPAEnhancement::decode(stream), (MPAEnhancement{.ird = 4, .ord = 4}));
    EXPECT_EQ(units_of(stream.subspan(MPAEnhancement::kSize), CRCUse::kUsed),
              guest == kGuest1 ? kFromPassive : kFromActive);
  }
}

TEST(IWARPCaptures, OperationsWithoutCRC) {
  std::map<u32, std::vector<u8>> streams = streams_of("siw-ops.pcap");
  std::span<const u8> stream = streams[kGuest2];
  EXPECT_FALSE(take_mpa(stream).crc);
  EXPECT_EQ(units_of(stream.subspan(MPAEnhancement::kSize), CRCUse::kNotUsed), kFromActive);
}

TEST(IWARPCaptures, OlderAndPeerToPeerNegotiation) {
  std::map<u32, std::vector<u8>> streams = streams_of("siw-mpa1.pcap");
  std::span<const u8> stream = streams[kGuest2];
  EXPECT_EQ(take_mpa(stream), (MPAFrame{.revision = 1}));
  streams = streams_of("siw-p2p.pcap");
  stream = streams[kGuest2];
  (void)take_mpa(stream);
  EXPECT_EQ(MPAEnhancement::decode(stream),
            (MPAEnhancement{
                .peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 4, .ord = 4}));
  const std::vector<Unit> units = units_of(stream.subspan(MPAEnhancement::kSize), CRCUse::kNotUsed);
  ASSERT_FALSE(units.empty());
  EXPECT_EQ(units[0], (Unit{kWrite, true, 0}));  // ready to receive
}

// Returns the TERMINATE that guest 1 sends at the end of its stream.
std::optional<RDMAPTerminate> terminate_of(const char* capture) {
  std::map<u32, std::vector<u8>> streams = streams_of(capture);
  std::span<const u8> stream = streams[kGuest1];
  (void)take_mpa(stream);
  stream = stream.subspan(MPAEnhancement::kSize);
  std::span<const u8> last;
  for (FPDUView fpdu = FPDUView::decode(stream, CRCUse::kNotUsed);
       fpdu.status == FPDUView::Status::kWhole;
       stream = stream.subspan(fpdu.size), fpdu = FPDUView::decode(stream, CRCUse::kNotUsed))
    last = fpdu.ulpdu;
  const std::optional<DDPUntagged> ddp = DDPUntagged::decode(last);
  if (!ddp) return std::nullopt;
  EXPECT_EQ(opcode_of(ddp->control), kTerminate);
  EXPECT_EQ(ddp->queue, kTerminateQueueNumber);
  EXPECT_EQ(ddp->message, 1u);
  return RDMAPTerminate::decode(last.subspan(DDPUntagged::kSize));
}

// README.md there: layer DDP, tagged buffer error, invalid STag.
TEST(IWARPCaptures, ATerminationForAWrite) {
  EXPECT_EQ(terminate_of("siw-bad-write.pcap"),
            (RDMAPTerminate{
                .layer = 1, .type = 1, .code = 0, .has_length = true, .has_ddp_header = true}));
}

// Layer RDMAP, remote protection error, invalid STag: bytes 10 00 07 00.
TEST(IWARPCaptures, ATerminationForAReadHasItsBitsReversed) {
  EXPECT_EQ(terminate_of("siw-bad-read.pcap"), (RDMAPTerminate{.layer = 0,
                                                               .type = 1,
                                                               .code = 0,
                                                               .has_length = true,
                                                               .has_ddp_header = true,
                                                               .has_rdmap_header = true}));
}

// siw-probe.txt: a wrong CRC.
TEST(IWARPCaptures, ATerminationForACRCHasItsBitsReversed) {
  constexpr std::array<u8, RDMAPTerminate::kSize> kBytes = {0x02, 0x02, 0x00, 0x00};
  EXPECT_EQ(RDMAPTerminate::decode(kBytes), (RDMAPTerminate{.layer = 2, .type = 0, .code = 2}));
}

// The simulation's sizes equal the real ones: a WRITE of 1600 bytes in segments of 1448.
TEST(IWARPCaptures, FramingOfAWrite) {
  EXPECT_EQ(write_bytes(64, 1448), 84u);
  EXPECT_EQ(write_bytes(1600, 1448), 1448u + 192u);
}

TEST(MPA, AWrongCRCAndAShortStreamAreSeen) {
  std::vector<u8> stream;
  const std::array<u8, 5> ulpdu = {1, 2, 3, 4, 5};
  append_fpdu(ulpdu, CRCUse::kUsed, stream);
  EXPECT_EQ(stream.size(), 12u);
  for (std::size_t n = 0; n < stream.size(); ++n)
    EXPECT_EQ(FPDUView::decode(std::span(stream).first(n), CRCUse::kUsed).status,
              FPDUView::Status::kIncomplete);
  EXPECT_EQ(FPDUView::decode(stream, CRCUse::kUsed).status, FPDUView::Status::kWhole);
  stream[3] ^= 1;
  EXPECT_EQ(FPDUView::decode(stream, CRCUse::kUsed).status, FPDUView::Status::kBad);
  EXPECT_EQ(FPDUView::decode(stream, CRCUse::kNotUsed).status, FPDUView::Status::kWhole);
}

// RFC 3720, B.4: 32 bytes of zeros, and of ones.
TEST(MPA, CRC32C) {
  EXPECT_EQ(crc32c(std::vector<u8>(32, 0)), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<u8>(32, 0xff)), 0x62a8ab43u);
}

TEST(RDMAP, HeadersComeBack) {
  const RDMAPReadRequest read{.sink_stag = 1,
                              .sink_offset = 2,
                              .length = 3,
                              .source_stag = 4,
                              .source_offset = u64{5} << 40};
  std::array<u8, RDMAPReadRequest::kSize> bytes{};
  read.encode(bytes);
  EXPECT_EQ(RDMAPReadRequest::decode(bytes), read);
  EXPECT_EQ(opcode_of(0x4c), std::nullopt);  // no such opcode
  EXPECT_EQ(opcode_of(0x03), std::nullopt);  // version 0
}

}  // namespace
}  // namespace verbena::iwarp
