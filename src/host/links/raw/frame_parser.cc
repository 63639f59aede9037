#include "host/links/raw/frame_parser.h"

#include <algorithm>

#include "wire/eth/ethernet.h"
#include "wire/roce/v1_packet.h"
#include "wire/roce/v2_packet.h"

namespace verbena::host {
namespace {

// With the ICRC, which lies behind it.
std::span<const u8> with_icrc(std::span<const u8> transport) {
  return {transport.data(), transport.size() + kICRCSize};
}

}  // namespace

void FrameParser::open(std::span<const u8> frame, u32 segment_size) {
  left_ = {};
  const std::optional<EthernetHeader> header = EthernetHeader::decode(frame);
  if (!header) return;
  const std::span<const u8> packet = frame.subspan(EthernetHeader::kSize);
  if (header->ether_type == EtherType::kRoCEv1)
    open_v1(packet);
  else
    open_v2(packet, segment_size);
}

void FrameParser::open_v2(std::span<const u8> packet, u32 segment_size) {
  const std::optional<RoCEv2View> view = RoCEv2View::decode(packet, udp_port_);
  if (!view) return;
  common_ = {.source = view->envelope.source,
             .destination = view->envelope.destination,
             .udp_source_port = view->envelope.udp_source_port,
             .traffic_class = traffic_class_of(view->masked.dscp, view->masked.ecn),
             .hop_limit = view->masked.hop_limit,
             .identification_known = true,
             .identification = view->envelope.identification,
             .transport = {}};
  left_ = with_icrc(view->transport);
  segment_size_ = segment_size != 0 ? segment_size : left_.size();
  place_ = 0;
}

void FrameParser::open_v1(std::span<const u8> packet) {
  const std::optional<RoCEv1View> view = RoCEv1View::decode(packet);
  if (!view) return;
  common_ = {.source = view->grh.sgid,
             .destination = view->grh.dgid,
             .type = GIDType::kRoCEv1,
             .traffic_class = view->grh.traffic_class,
             .hop_limit = view->grh.hop_limit,
             .transport = {}};
  left_ = with_icrc(view->transport);
  segment_size_ = left_.size();
  place_ = 0;
}

// Linux counts the Identification up where it cuts, and joins packets whose are all the same, too.
bool FrameParser::poll(IngressFrame& out) {
  if (left_.empty()) return false;
  const std::size_t size = std::min(segment_size_, left_.size());
  out = common_;
  out.transport = left_.first(size);
  if (place_ != 0) {
    out.identification = static_cast<u16>(common_.identification + place_);
    out.other_identification = common_.identification;
  }
  left_ = left_.subspan(size);
  ++place_;
  return true;
}

}  // namespace verbena::host
