// Every RoCEv2 frame that Linux's rxe put on the wire (tests/captures/rxe-*.pcap), through all
// decoders and encoders and the ICRC, and beside tshark's reading of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tests/support/pcap.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/internet_checksum.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/udp.h"
#include "wire/roce/v2_packet.h"

namespace verbena {
namespace {

constexpr std::size_t kFrames = 252;  // in all files together

// Calls check(ip_packet, what) for each frame; `what` names it in failures.
template <typename Check>
void for_each_ip_packet(Check check) {
  for (const std::string& name : test::capture_names("rxe-"))
    for (const test::CapturedFrame& frame : test::read_capture(name)) {
      const std::string what = name + " frame " + std::to_string(frame.number);
      SCOPED_TRACE(what);
      check(std::span(frame.bytes).subspan(EthernetHeader::kSize), what);
      if (testing::Test::HasFatalFailure()) return;
    }
}

bool is_ipv4(std::span<const u8> packet) { return packet[0] >> 4 == 4; }

TEST(CapturesTest, AreAllThere) {
  std::size_t frames = 0;
  for_each_ip_packet([&frames](std::span<const u8>, const std::string&) { ++frames; });
  EXPECT_EQ(frames, kFrames);
}

TEST(CapturesTest, EveryFrameReencodesToTheSameBytes) {
  for_each_ip_packet([](std::span<const u8> packet, const std::string&) {
    const std::optional<RoCEv2View> view = RoCEv2View::decode(packet);
    ASSERT_TRUE(view.has_value());
    const std::optional<PacketView> transport = PacketView::decode(view->transport);
    ASSERT_TRUE(transport.has_value());

    std::vector<u8> again(envelope_size(view->envelope) + transport->headers.size());
    encode_envelope(view->envelope, view->masked, view->transport.size(), again);
    transport->headers.encode(std::span(again).subspan(envelope_size(view->envelope)));
    again.insert(again.end(), transport->payload.begin(), transport->payload.end());
    again.resize(again.size() + transport->headers.bth.pad_count);
    again.resize(again.size() + kICRCSize);
    store_icrc(view->icrc, std::span(again).last<kICRCSize>());
    EXPECT_TRUE(std::ranges::equal(again, packet));
  });
}

TEST(CapturesTest, EveryICRCIsRight) {
  for_each_ip_packet([](std::span<const u8> packet, const std::string&) {
    const std::optional<RoCEv2View> view = RoCEv2View::decode(packet);
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(icrc_of(view->envelope, view->transport), view->icrc);
  });
}

TEST(CapturesTest, EveryIdentificationIsSolvedFor) {  // as a UDP socket must
  for_each_ip_packet([](std::span<const u8> packet, const std::string&) {
    const std::optional<RoCEv2View> view = RoCEv2View::decode(packet);
    ASSERT_TRUE(view.has_value());
    if (!view->envelope.source.is_ipv4()) return;
    RoCEv2Envelope unknown = view->envelope;
    unknown.identification = 0;
    const u32 computed = icrc_of(unknown, view->transport);
    EXPECT_EQ(solve_identification(computed, view->icrc, view->transport.size()),
              view->envelope.identification);
  });
}

// The bits of the IP packet that may change in flight: those that the ICRC does not cover. The IPv4
// checksum follows the header.
bool is_masked(std::span<const u8> packet, std::size_t byte, int bit) {
  const std::size_t ip = is_ipv4(packet) ? 20 : 40;
  if (byte == ip + 6 || byte == ip + 7) return true;  // UDP checksum
  if (byte == ip + 8 + 4) return true;                // FECN, BECN, reserved
  if (is_ipv4(packet)) return byte == 1 || byte == 8 || byte == 10 || byte == 11;
  return (byte == 0 && bit < 4) || (byte >= 1 && byte <= 3) || byte == 7;
}

void make_checksum_right(std::span<u8> packet) {
  if (!is_ipv4(packet)) return;
  store_be16(packet.data() + 10, 0);
  InternetChecksum sum;
  sum.add(packet.first(IPv4Header::kSize));
  store_be16(packet.data() + 10, sum.finish());
}

TEST(CapturesTest, AnyFlippedBitOfTheCoveredPartIsFound) {
  for_each_ip_packet([](std::span<const u8> packet, const std::string&) {
    std::vector<u8> bytes(packet.begin(), packet.end());
    for (std::size_t at = 0; at < bytes.size(); ++at)
      for (int bit = 0; bit < 8; ++bit) {
        const std::vector<u8> header(bytes.begin(), bytes.begin() + IPv4Header::kSize);
        bytes[at] ^= static_cast<u8>(1u << bit);
        make_checksum_right(bytes);  // as a router does; else the checksum would find it
        const std::optional<RoCEv2View> view = RoCEv2View::decode(bytes);
        const bool good = view && icrc_of(view->envelope, view->transport) == view->icrc;
        ASSERT_EQ(good, is_masked(packet, at, bit)) << "byte " << at << " bit " << bit;
        if (at >= header.size()) bytes[at] ^= static_cast<u8>(1u << bit);
        std::ranges::copy(header, bytes.begin());
      }
  });
}

// One line of rxe-tshark.tsv: what tshark printed, by field name; "" for a field it did not print.
using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> columns(1);
  for (const char c : line) {
    if (c == '\t')
      columns.emplace_back();
    else
      columns.back() += c;
  }
  return columns;
}

std::map<std::string, Row> tshark_rows() {
  std::ifstream in(std::string(VERBENA_CAPTURES_DIR) + "/rxe-tshark.tsv");
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = split(line);
  std::map<std::string, Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> columns = split(line);
    Row row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[names[i]] = columns[i];
    rows[row["file"] + " frame " + row["frame.number"]] = row;
  }
  return rows;
}

std::string text(u64 value) { return std::to_string(value); }
std::string text(bool value) { return value ? "1" : "0"; }
std::string text(const std::string& value) { return value; }

// Hexadecimal with leading zeros, as tshark prints it.
std::string hex(u64 value, int digits, const char* prefix = "0x") {
  std::string out(static_cast<std::size_t>(digits), '0');
  for (auto digit = out.rbegin(); digit != out.rend(); ++digit, value >>= 4)
    *digit = "0123456789abcdef"[value & 15];
  return prefix + out;
}

// Stores the decoded fields under tshark's names, without those that the packet does not have.
class OurRow {
 public:
  template <typename Value>
  void put(bool present, const char* name, const Value& value) {
    if (present) row_[name] = text(value);
  }
  const Row& row() const { return row_; }

 private:
  Row row_;
};

void put_network(OurRow& ours, const RoCEv2View& view) {
  const bool ipv4 = view.envelope.source.is_ipv4();
  const u8 traffic_class = traffic_class_of(view.masked.dscp, view.masked.ecn);
  const u64 udp_length = UDPHeader::kSize + view.transport.size() + kICRCSize;
  ours.put(ipv4, "ip.src", view.envelope.source.to_string());
  ours.put(ipv4, "ip.dst", view.envelope.destination.to_string());
  ours.put(ipv4, "ip.dsfield", hex(traffic_class, 2));
  ours.put(ipv4, "ip.len", udp_length + IPv4Header::kSize);
  ours.put(ipv4, "ip.id", hex(view.envelope.identification, 4));
  ours.put(ipv4, "ip.flags.df", view.envelope.dont_fragment);
  ours.put(ipv4, "ip.ttl", u64{view.masked.hop_limit});
  ours.put(!ipv4, "ipv6.src", view.envelope.source.to_string());
  ours.put(!ipv4, "ipv6.dst", view.envelope.destination.to_string());
  ours.put(!ipv4, "ipv6.tclass", hex(traffic_class, 8));
  ours.put(!ipv4, "ipv6.flow", hex(view.masked.flow_label, 6));
  ours.put(!ipv4, "ipv6.plen", udp_length);
  ours.put(!ipv4, "ipv6.hlim", u64{view.masked.hop_limit});
  ours.put(true, "udp.srcport", u64{view.envelope.udp_source_port});
  ours.put(true, "udp.dstport", u64{view.envelope.udp_destination_port});
  ours.put(true, "udp.length", udp_length);
  ours.put(true, "udp.checksum", hex(view.masked.udp_checksum, 4));
}

void put_bth(OurRow& ours, const BTH& bth) {
  ours.put(true, "infiniband.bth.opcode", u64{bth.opcode.to_byte()});
  ours.put(true, "infiniband.bth.se", bth.solicited_event);
  ours.put(true, "infiniband.bth.m", bth.mig_req);
  ours.put(true, "infiniband.bth.padcnt", u64{bth.pad_count});
  ours.put(true, "infiniband.bth.tver", u64{0});
  ours.put(true, "infiniband.bth.p_key", u64{bth.p_key.value});
  ours.put(true, "infiniband.bth.destqp", hex(bth.dest_qp.value, 6));
  ours.put(true, "infiniband.bth.a", bth.ack_req);
  ours.put(true, "infiniband.bth.psn", u64{bth.psn.value()});
}

void put_extended(OurRow& ours, const PacketHeaders& h) {
  const OpcodeTraits& t = traits_of(h.bth.opcode);
  const u64 address = t.reth ? h.reth.virtual_address : h.atomic.virtual_address;
  const u32 r_key = t.reth ? h.reth.r_key.value : h.atomic.r_key.value;
  const u64 syndrome = (u64{static_cast<u8>(h.aeth.kind)} << 5) | h.aeth.value;
  ours.put(t.deth, "infiniband.deth.q_key", hex(h.deth.q_key.value, 16));
  ours.put(t.deth, "infiniband.deth.srcqp", hex(h.deth.source_qp.value, 8));
  ours.put(t.reth || t.atomic_eth, "infiniband.reth.va", hex(address, 16));
  ours.put(t.reth || t.atomic_eth, "infiniband.reth.r_key", hex(r_key, 8));
  ours.put(t.reth, "infiniband.reth.dmalen", u64{h.reth.dma_length});
  ours.put(t.atomic_eth, "infiniband.atomiceth.swapdt", h.atomic.swap_or_add);
  ours.put(t.atomic_eth, "infiniband.atomiceth.cmpdt", h.atomic.compare);
  ours.put(t.aeth, "infiniband.aeth.syndrome", syndrome);
  ours.put(t.aeth, "infiniband.aeth.msn", u64{h.aeth.msn.value()});
  ours.put(t.atomic_ack_eth, "infiniband.atomicacketh.origremdt", h.atomic_ack.original_data);
  ours.put(t.imm_dt, "infiniband.immdt", hex(h.imm.value, 8, ""));
  ours.put(t.ieth, "infiniband.ieth", hex(h.ieth.r_key.value, 8, ""));
}

TEST(CapturesTest, EveryFieldOfEveryFrameIsWhatTsharkReads) {
  std::map<std::string, Row> rows = tshark_rows();
  ASSERT_EQ(rows.size(), kFrames);
  for_each_ip_packet([&rows](std::span<const u8> packet, const std::string& what) {
    const std::optional<RoCEv2View> view = RoCEv2View::decode(packet);
    ASSERT_TRUE(view.has_value());
    const std::optional<PacketView> transport = PacketView::decode(view->transport);
    ASSERT_TRUE(transport.has_value());
    OurRow ours;
    put_network(ours, *view);
    put_bth(ours, transport->headers.bth);
    put_extended(ours, transport->headers);
    // tshark shows the ICRC's bytes in the order of the wire.
    ours.put(true, "infiniband.invariant.crc", hex(__builtin_bswap32(view->icrc), 8));

    for (const auto& [field, theirs] : rows[what]) {
      if (field == "file" || field == "frame.number" || field.starts_with("eth.")) continue;
      if (field == "ip.checksum") continue;  // checked by decoding, and by encoding again
      // tshark reads no ICRC where a SEND has less than 8 bytes of payload.
      if (field == "infiniband.invariant.crc" && theirs.empty()) continue;
      const auto it = ours.row().find(field);
      EXPECT_EQ(it == ours.row().end() ? "" : it->second, theirs) << field;
    }
    for (const auto& [field, value] : ours.row()) EXPECT_TRUE(rows[what].contains(field)) << field;
  });
}

}  // namespace
}  // namespace verbena
