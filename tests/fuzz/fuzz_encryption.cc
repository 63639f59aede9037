// Input: what a stranger sends to the ports of encryption, what a peer says inside of TLS, and what
// a tenant writes into its ring to the NIC, and on the socket of its iWARP device: the same bytes
// for each.
// The same bytes come to the port of VXLAN, too.
// Checked: what decodes encodes to the same; a packet that passes the NIC's filter is from the
// function; so is a connection that passes, and it goes to a host; a ring of any content ends, and
// gives no record that lies outside of it.
#include <cstring>
#include <memory>

#include "host/encryption/key_messages.h"
#include "host/encryption/psp_notice.h"
#include "host/links/vxlan_stage.h"
#include "host/local/frame_ring.h"
#include "host/nic/nic_filter.h"
#include "host/nic/nic_stream_filter.h"
#include "tests/fuzz/fuzz.h"
#include "wire/psp/psp_header.h"

namespace verbena::fuzz {
namespace {

const GID kOwn = GID::from_ipv4(0x0a000001), kOther = GID::from_ipv4(0x0a000002);
const GID kGroup = GID::from_ipv4(0xef010203);
constexpr u32 kSlotOfTenant = 5, kOwnVNI = 5001;

void check_psp(std::span<const u8> in) {
  const std::optional<PSPHeader> header = PSPHeader::decode(in);
  if (!header) return;
  CHECK(in.size() >= header->size());
  std::array<u8, PSPHeader::kSize + PSPHeader::kCookieSize> room{};
  const std::span<u8> bytes = std::span(room).first(header->size());
  header->encode(bytes);
  CHECK(PSPHeader::decode(bytes) == header);
}

void check_messages(std::span<const u8> in) {
  if (const auto notice = host::PSPNotice::decode(in))
    CHECK(host::PSPNotice::decode(notice->encode()) == notice);
  if (in.size() >= host::KeyQuestion::kSize) {
    const auto question = host::KeyQuestion::decode(in.first<host::KeyQuestion::kSize>());
    std::array<u8, host::KeyQuestion::kSize> bytes{};
    if (question) {
      question->encode(bytes);
      CHECK(host::KeyQuestion::decode(bytes) == question);
    }
  }
  if (in.size() >= host::KeyAnswer::kSize) {
    const auto answer = host::KeyAnswer::decode(in.first<host::KeyAnswer::kSize>());
    std::array<u8, host::KeyAnswer::kSize> bytes{};
    if (answer) {
      host::KeyAnswer::encode(*answer, bytes);
      CHECK(host::KeyAnswer::decode(bytes) == answer);
    }
  }
}

// A packet that a network takes is one of its own, and lies in the input.
void check_vxlan(std::span<const u8> in) {
  const std::optional<VXLANHeader> header = VXLANHeader::decode(in);
  const host::VXLANStage stage(kOwnVNI);
  host::LinkCounters counters;
  IngressFrame frame;
  frame.destination = kOwn;
  frame.transport = in;
  if (!stage.open_frame(frame, counters)) {
    CHECK(counters.refused_vni == 1);
    return;
  }
  CHECK(header && header->vni == kOwnVNI && frame.destination == kOwn);
  CHECK(frame.transport.data() > in.data() && frame.transport.size() >= BTH::kSize + kICRCSize);
  CHECK(frame.transport.data() + frame.transport.size() <= in.data() + in.size());
}

void check_filter(std::span<const u8> in) {
  const host::NICFilter filter({kOwn}, {PKey{0xffff}}, host::NICGroups::kAll);
  CHECK(filter.check_sent(kOther, kOwn, in, kSlotOfTenant) != host::NICRefusal::kNone);
  const bool passes = filter.check_sent(kOwn, kOther, in, kSlotOfTenant) == host::NICRefusal::kNone;
  if (passes) CHECK(BTH::decode(in)->p_key == PKey{0xffff});
  if (filter.check_sent(kOwn, kGroup, in, kSlotOfTenant) == host::NICRefusal::kNone)
    CHECK(BTH::decode(in)->dest_qp == kMulticastQPN);
  (void)host::asks_for_connection(in);
}

// The bytes as they are, and as the rest of a request whose head a hostile tenant gets right.
void check_stream_request(std::span<const u8> in) {
  constexpr u16 kFirstPort = 1024;
  const host::NICStreamFilter filter({kOwn});
  (void)host::NICStreamRequest::decode(in);
  host::NICStreamRequest request{.call = host::NICStreamCall::kConnect};
  auto* const ends = reinterpret_cast<u8*>(&request.ends);
  std::memcpy(ends, in.data(), std::min(in.size(), sizeof(request.ends)));
  std::array<u8, sizeof(request)> message;
  std::memcpy(message.data(), &request, sizeof(request));
  const auto decoded = host::NICStreamRequest::decode(message);
  CHECK(decoded && decoded->ends == request.ends);
  if (filter.check(*decoded, kFirstPort) != host::NICStreamRefusal::kNone) return;
  CHECK(decoded->ends.local == kOwn && !decoded->ends.remote.is_multicast());
  CHECK(decoded->ends.remote.is_ipv4() && decoded->ends.remote.ipv4() >> 24 != 127);
  CHECK(decoded->ends.remote.ipv4() != 0);
}

// A ring of the tenant's making. Its reader's place is not the tenant's to choose, but may be any.
void check_ring(std::span<const u8> in) {
  static const auto ring = std::make_unique<host::FrameRing>();
  auto* const bytes = reinterpret_cast<u8*>(ring.get());
  const std::size_t size = std::min(in.size(), sizeof(host::FrameRing));
  std::memset(bytes, 0, 8192);
  std::memcpy(bytes, in.data(), size);
  host::FrameRingReader reader(*ring);
  host::FrameRingReader::Record record;
  for (u32 i = 0; i < 64 && reader.poll(record); ++i) {
    CHECK(record.body.size() <= host::FrameRing::kMaxBody);
    CHECK(record.body.data() >= bytes);
    CHECK(record.body.data() + record.body.size() <= bytes + sizeof(host::FrameRing));
  }
}

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const verbena::u8> in(data, size);
  verbena::fuzz::check_psp(in);
  verbena::fuzz::check_messages(in);
  verbena::fuzz::check_vxlan(in);
  verbena::fuzz::check_filter(in);
  verbena::fuzz::check_stream_request(in);
  verbena::fuzz::check_ring(in);
  return 0;
}
