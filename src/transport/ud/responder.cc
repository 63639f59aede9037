#include "transport/ud/responder.h"

#include "transport/ud/grh_bytes.h"
#include "wire/ib/lid_address.h"

namespace verbena {

UDResponder::UDResponder(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault)
    : qp_(parts.attributes), counters_(counters), receives_(parts, counters, fault) {}

namespace {

// The headers' versions in a completion. IBTA A17.4.5.1 asks for them and leaves the field open.
// ConnectX uses the service level, which Ethernet has no other use for, and UCX reads it there. Bit
// 3: RoCEv2; bits 0-2: the IP version, 1 for IPv6, 2 for IPv4.
constexpr u8 kRoCEv2OverIPv6 = 0x9, kRoCEv2OverIPv4 = 0xa;

bool is_local(const RxContext& context) { return context.type == GIDType::kInfiniBand; }

constexpr u8 kind_of(const RxContext& context) {
  if (context.type == GIDType::kInfiniBand) return sl_of_traffic_class(context.traffic_class);
  return context.destination.is_ipv4() ? kRoCEv2OverIPv4 : kRoCEv2OverIPv6;
}

}  // namespace

void UDResponder::on_packet(const PacketView& packet, const RxContext& context) {
  if (acceptable(packet) && place(packet, context)) return finish(packet, context);
  ++counters_.rx_dropped;
}

bool UDResponder::acceptable(const PacketView& packet) const {
  const Opcode opcode = packet.headers.bth.opcode;
  return receives_.accepting() && opcode.service == Service::kUD && traits_of(opcode).valid &&
         packet.headers.deth.q_key == qp_.q_key && packet.payload.size() <= bytes(qp_.path_mtu);
}

bool UDResponder::place(const PacketView& packet, const RxContext& context) {
  if (!receives_.acquire()) return false;
  if (GRH::kSize + packet.payload.size() > receives_.held().length_bytes) {
    ++counters_.resp_local_length_error;
    receives_.abandon(WQEStatus::kLocalLength);
    return false;
  }
  // Within a subnet there is no GRH, and its 40 bytes stay as they are. IBTA 11.4.1.2
  return (is_local(context) || receives_.write(0, grh_bytes(context))) &&
         receives_.write(GRH::kSize, packet.payload);
}

void UDResponder::finish(const PacketView& packet, const RxContext& context) {
  const PacketHeaders& headers = packet.headers;
  const bool immediate = traits_of(headers.bth.opcode).imm_dt;
  receives_.complete({.op = CompletionOp::kReceive,
                      .with_immediate = immediate,
                      .with_grh = !is_local(context),
                      .solicited = headers.bth.solicited_event,
                      .service_level = kind_of(context),
                      .p_key_index = qp_.p_key_index,
                      .source_lid = is_local(context) ? lid_of_address(context.source) : u16{0},
                      .byte_length = static_cast<u32>(GRH::kSize + packet.payload.size()),
                      .immediate = immediate ? headers.imm.value : 0,
                      .qp = qp_.qpn,
                      .source_qp = headers.deth.source_qp});
}

}  // namespace verbena
