#include "host/encryption/psp_receiver.h"

#include "wire/eth/ipv4.h"
#include "wire/eth/udp.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

// Port and length of the packet's own UDP header, which is authenticated.
bool unwrap_roce(std::span<const u8> packet, IngressFrame& frame) {
  const std::optional<UDPHeader> udp = UDPHeader::decode(packet);
  if (!udp || udp->destination_port != kRoCEv2Port || udp->length > packet.size()) return false;
  frame.udp_source_port = udp->source_port;
  frame.transport = packet.first(udp->length).subspan(UDPHeader::kSize);
  frame.authenticated = true;
  return true;
}

}  // namespace

PSPFault PSPReceiver::open(IngressFrame& frame) {
  const std::optional<PSPHeader> header = PSPHeader::decode(frame.transport);
  if (!header || header->next_header != kProtocolUDP || !is_encrypted(header->version))
    return PSPFault::kNotEncrypted;
  Association* const association = find(*header);
  if (association == nullptr) return PSPFault::kUnknownSPI;
  if (association->ends != AssociationEnds{.sender = frame.source, .receiver = frame.destination})
    return PSPFault::kWrongAddress;
  if (!is_new(*header, *association)) return PSPFault::kReplayed;
  const std::span<u8> packet(const_cast<u8*>(frame.transport.data()), frame.transport.size());
  const std::size_t clear = PSPHeader::kSize + header->crypt_offset_bytes();
  if (!association->cipher.open(packet, clear)) return PSPFault::kNotAuthentic;
  if (!note(*header, *association)) return PSPFault::kReplayed;
  const std::span<const u8> inner = packet.first(packet.size() - PSPHeader::kICVSize);
  if (inner.size() < header->size()) return PSPFault::kNotRoCE;
  if (PSPHeader::decode(inner)->cookie != vni_) return PSPFault::kOtherNetwork;  // decrypted now
  return unwrap_roce(inner.subspan(header->size()), frame) ? PSPFault::kNone : PSPFault::kNotRoCE;
}

PSPReceiver::Association* PSPReceiver::find(const PSPHeader& header) {
  if (header.spi != last_spi_ || last_ == nullptr) {
    const auto found = associations_.find(header.spi);
    last_ = found == associations_.end() ? nullptr : found->second.get();
    last_spi_ = header.spi;
  }
  if (last_ != nullptr && last_->version == header.version &&
      keys_.is_valid(header.spi, last_->generation))
    return last_;
  return last_ = make(header);
}

PSPReceiver::Association* PSPReceiver::make(const PSPHeader& header) {
  const std::optional<HostKeys::Known> known = keys_.find(header.spi);
  if (!known || known->version != header.version) return nullptr;
  const std::optional<PSPKey> key = keys_.derive(header.spi, header.version);
  if (!key) return nullptr;
  if (associations_.size() >= kMaxAssociations) forget_invalid();
  if (associations_.size() >= kMaxAssociations && !associations_.contains(header.spi))
    return nullptr;
  auto& place = associations_[header.spi];
  place = std::make_unique<Association>(
      Association{.cipher = PSPCipher(ssl_, *key, PSPCipher::Direction::kOpen),
                  .version = header.version,
                  .ends = known->ends,
                  .generation = known->generation});
  return place.get();
}

void PSPReceiver::forget_invalid() {
  std::erase_if(associations_, [&](const auto& entry) {
    return !keys_.is_valid(entry.first, entry.second->generation);
  });
  last_ = nullptr;
}

// Any process of the host may receive a packet for QP 1: all processes share the replay window.
bool PSPReceiver::is_new(const PSPHeader& header, const Association& association) const {
  return slot_of_spi(header.spi) == 0 || association.window.is_new(header.iv);
}

bool PSPReceiver::note(const PSPHeader& header, Association& association) {
  if (slot_of_spi(header.spi) == 0) return keys_.note_shared(header.spi, header.iv);
  association.window.note(header.iv);
  return true;
}

}  // namespace verbena::host
