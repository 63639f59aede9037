#include "host/encryption/psp_stage.h"

#include <cstdlib>
#include <fstream>

#include "base/check.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

AssociationTarget target_of(const EgressFrame& frame) {
  const u32 qpn = load_be24(frame.headers.data() + BTH::kDestQPAt);
  return {.ends = {.sender = frame.source, .receiver = frame.destination},
          .slot = static_cast<u16>(slot_of(qpn))};
}

void count_fault(PSPFault fault, LinkCounters& counters) {
  switch (fault) {
    case PSPFault::kNone: ++counters.decrypted; return;
    case PSPFault::kNotEncrypted:
    case PSPFault::kNotRoCE: ++counters.refused_unencrypted; return;
    case PSPFault::kUnknownSPI: ++counters.refused_spi; return;
    case PSPFault::kWrongAddress: ++counters.refused_source; return;
    case PSPFault::kNotAuthentic: ++counters.refused_icv; return;
    case PSPFault::kReplayed: ++counters.refused_replay; return;
    case PSPFault::kOtherNetwork: ++counters.refused_vni; return;
  }
  CHECK_UNREACHABLE();
}

std::string hex_of(std::span<const u8> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const u8 byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Expected<std::unique_ptr<PSPStage>> PSPStage::open(const EncryptionSettings& settings,
                                                   const LocalAddress& address, u32 slot,
                                                   std::optional<u32> vni) {
  const Expected<const OpenSSL*> ssl = OpenSSL::load();
  if (!ssl) return tl::unexpected(ssl.error());
  Expected<std::unique_ptr<TLSCredentials>> credentials = TLSCredentials::load(**ssl, settings);
  if (!credentials) return tl::unexpected(credentials.error());
  Expected<HostKeys> keys = HostKeys::open(**ssl, (*credentials)->name(), settings.rotation);
  if (!keys) return tl::unexpected(keys.error());
  if (Expected<void> forgotten = keys->forget_slot(slot); !forgotten)
    return tl::unexpected(forgotten.error());
  std::unique_ptr<PSPStage> stage(
      new PSPStage(**ssl, settings, slot, std::move(*keys), std::move(*credentials), vni));
  Expected<std::unique_ptr<KeyAgent>> agent =
      KeyAgent::start({.ssl = **ssl,
                       .keys = stage->keys_,
                       .credentials = *stage->credentials_,
                       .settings = stage->settings_,
                       .interface_index = address.interface_index},
                      address.all());
  if (!agent) return tl::unexpected(agent.error());
  stage->agent_ = std::move(*agent);
  if (Expected<void> opened = stage->open_capture(address.interface); !opened)
    return tl::unexpected(opened.error());
  return stage;
}

Expected<void> PSPStage::open_capture(const std::string& interface) {
  const Expected<CaptureFile*> file = CaptureFile::of_process();
  if (!file) return tl::unexpected(file.error());
  if (*file != nullptr) capture_ = std::make_unique<PSPCapture>(**file, interface, settings_.port);
  return {};
}

std::size_t PSPStage::TargetHash::operator()(const AssociationTarget& target) const {
  std::size_t hash = target.slot;
  for (const GID* gid : {&target.ends.sender, &target.ends.receiver})
    hash = hash * 0x9e3779b97f4a7c15 + load_be64(gid->bytes.data()) +
           load_be64(gid->bytes.data() + 8) * 31;
  return hash;
}

// --- out

PSPSender* PSPStage::sender_for(const EgressFrame& frame, LinkCounters& counters) {
  const AssociationTarget target = target_of(frame);
  if (frame.destination.is_multicast()) {  // keys are agreed by pairs of hosts
    counters.send_dropped += frame.packets;
    return nullptr;
  }
  if (last_ == nullptr || target != last_target_) {
    last_ = &outgoing_[target];
    last_target_ = target;
  }
  Outgoing& outgoing = *last_;
  PSPSender* const sender = outgoing.sender.get();
  if (sender == nullptr) {
    ask_for(target, outgoing);
    hold(frame, outgoing, counters);
    return nullptr;
  }
  if (sender->packets() >= settings_.rotation_packets) ask_for(target, outgoing);
  counters.encrypted += frame.packets;
  return sender;
}

void PSPStage::ask_for(const AssociationTarget& target, Outgoing& outgoing) {
  if (std::exchange(outgoing.is_asked_for, true)) return;
  agent_->request(target);
}

void PSPStage::hold(const EgressFrame& frame, Outgoing& outgoing, LinkCounters& counters) {
  for (u32 i = 0; i < frame.packets; ++i) {
    if (held_ == kMaxHeld) {
      ++counters.send_dropped;
      continue;
    }
    outgoing.held.push_back(faults::HeldFrame::of(frame.frame_of(i)));
    ++held_;
  }
}

std::vector<faults::HeldFrame> PSPStage::take_keys(LinkCounters& counters) {
  std::vector<faults::HeldFrame> released;
  for (const KeyAgent::Agreed& agreed : agent_->take_agreed()) {
    Outgoing& outgoing = outgoing_[agreed.target];
    outgoing.is_asked_for = false;
    held_ -= outgoing.held.size();
    if (agreed.issued) {
      outgoing.sender =
          std::make_unique<PSPSender>(ssl_, *agreed.issued, slot_, settings_.crypt_offset, vni_);
      if (capture_ != nullptr) outgoing.sender->capture_to(*capture_, agreed.target.ends);
      for (faults::HeldFrame& frame : outgoing.held) released.push_back(std::move(frame));
      log_key(agreed);
    } else {
      outgoing.sender.reset();
      counters.send_dropped += outgoing.held.size();
    }
    outgoing.held.clear();
  }
  return released;
}

// "PSP", SPI, key, sender, receiver: one line for each key.
void PSPStage::log_key(const KeyAgent::Agreed& agreed) const {
  const char* const path = std::getenv(kEncryptionKeyLogVariable);
  if (path == nullptr || *path == '\0') return;
  std::array<u8, 4> spi{};
  store_be32(spi.data(), agreed.issued->spi);
  std::ofstream(path, std::ios::app)
      << ("PSP " + hex_of(spi) + " " + hex_of(agreed.issued->key.used()) + " " +
          agreed.target.ends.sender.to_string() + " " + agreed.target.ends.receiver.to_string() +
          "\n");
}

// --- in

bool PSPStage::open_frame(IngressFrame& frame, LinkCounters& counters) {
  const std::optional<PSPHeader> header = PSPHeader::decode(frame.transport);
  if (capture_ != nullptr)
    capture_->add({.sender = frame.source, .receiver = frame.destination}, frame.udp_source_port,
                  frame.transport, pcapng::PacketDirection::kInbound);
  const PSPFault fault = receiver_.open(frame);
  count_fault(fault, counters);
  if (fault == PSPFault::kUnknownSPI)
    notice_ = PSPNotice{.slot = slot_of_iv(header->iv), .spi = header->spi};
  return fault == PSPFault::kNone;
}

std::optional<PSPNotice> PSPStage::take_notice(Time now) {
  const std::optional<PSPNotice> notice = std::exchange(notice_, std::nullopt);
  if (!notice || now < next_notice_) return std::nullopt;
  next_notice_ = now + kNoticeInterval;
  return notice;
}

// The key stays in use until the new one is there, because the notice may be forged.
void PSPStage::on_notice(const PSPNotice& notice) {
  for (auto& [target, outgoing] : outgoing_)
    if (outgoing.sender != nullptr && outgoing.sender->spi() == notice.spi)
      ask_for(target, outgoing);
}

void PSPStage::add_counters(LinkCounters& counters) const {
  const KeyAgentCounters& agent = agent_->counters();
  counters.keys_agreed = agent.agreed.load(std::memory_order_relaxed);
  counters.keys_issued = agent.issued.load(std::memory_order_relaxed);
  counters.key_failures = agent.failed.load(std::memory_order_relaxed);
  counters.key_refusals = agent.refused.load(std::memory_order_relaxed);
}

}  // namespace verbena::host
