#include "cli/doctor_peer.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "host/doctor/encryption.h"
#include "host/doctor/path.h"
#include "host/doctor/prober.h"
#include "host/links/tcp/tls_stream.h"
#include "host/nic/nic_protocol.h"
#include "host/settings/link_kind.h"
#include "wire/eth/ecn.h"
#include "wire/ib/mtu.h"

namespace verbena::cli {
namespace {

constexpr u32 kProbes = 100;
// The tries if one answer is enough: a peer's process may sleep, or a packet may get lost.
constexpr u32 kTries = 3;
constexpr Duration kLongPatience = ms(700);
constexpr Duration kMinPatience = ms(50);
constexpr i64 kRoundTripsOfPatience = 8;

// Way: a path to one address of the peer.
class Way {
 public:
  Way(const host::LocalAddress& local, host::Prober& prober, const GID& peer)
      : local_(local), prober_(prober), peer_(peer) {}

  Findings examine() {
    const auto source = prober_.source_for(peer_);
    if (!source) return {no_family()};
    const auto mtu = host::path_mtu(*source, local_.interface_index, peer_);
    if (!mtu)
      return {{Verdict::kProblem, "route",
               fmt::format("from {} there is no way to {}: {}", source->to_string(),
                           peer_.to_string(), mtu.error().message),
               fmt::format("ip route get {} from {}; or choose another address: --address",
                           peer_.to_string(), source->to_string())}};
    findings_.push_back({Verdict::kOk, "route",
                         fmt::format("{} to {}, {} bytes of packet fit as far as the kernel knows",
                                     source->to_string(), peer_.to_string(), *mtu)});
    if (!first_answer()) return findings_;
    measure();
    examine_ecn();
    examine_sizes(*mtu);
    return findings_;
  }

 private:
  Finding no_family() const {
    return {
        Verdict::kProblem, "route",
        fmt::format("{} has no address of the family of {}", local_.device_name, peer_.to_string()),
        fmt::format("choose an interface with one: --address {}", local_.interface)};
  }

  std::optional<host::ProbeResult> probe(const host::Probe& how, Duration patience) {
    host::Probe whole = how;
    whole.destination = peer_;
    return prober_.exchange(whole, patience);
  }
  std::optional<host::ProbeResult> probe_until_answered(const host::Probe& how) {
    for (u32 i = 0; i < kTries; ++i)
      if (auto result = probe(how, kLongPatience)) return result;
    return std::nullopt;
  }

  bool first_answer() {
    if (const auto result = probe_until_answered({})) {
      is_doctor_ = result->note.has_value();
      patience_ = std::max(kMinPatience, result->round_trip * kRoundTripsOfPatience);
      findings_.push_back({Verdict::kOk, "peer",
                           fmt::format("{} answers on UDP 4791{}", peer_.to_string(),
                                       is_doctor_ ? ", a doctor" : "")});
      return true;
    }
    findings_.push_back(
        {Verdict::kProblem, "peer", fmt::format("{} does not answer", peer_.to_string()),
         "run `verbena doctor --listen` there; if that changes nothing, a firewall between drops "
         "UDP 4791"});
    return false;
  }

  void measure() {
    std::vector<Duration> round_trips;
    for (u32 i = 0; i < kProbes; ++i)
      if (const auto result = probe({}, patience_)) round_trips.push_back(result->round_trip);
    findings_.push_back(judge_round_trips(std::move(round_trips), kProbes));
  }

  // A mark that is sent must arrive. There: only a doctor tells. Back: only a doctor marks.
  void examine_ecn() {
    if (!is_doctor_) {
      findings_.push_back({Verdict::kOk, "ecn",
                           "not judged: only `verbena doctor --listen` at the peer tells what "
                           "arrives"});
      return;
    }
    for (const ECN ecn : {ECN::kECT0, ECN::kCE}) {
      const u8 mark = traffic_class_of(0, ecn);
      const auto result =
          probe_until_answered({.traffic_class = mark, .answer_traffic_class = mark});
      findings_.push_back(judge_ecn(ecn, result));
    }
  }
  static Finding judge_ecn(ECN sent, const std::optional<host::ProbeResult>& result) {
    const std::string_view name = sent == ECN::kCE ? "CE" : "ECT(0)";
    if (!result || !result->note)
      return {Verdict::kWarning, "ecn", fmt::format("packets marked {} are lost", name),
              "look for a firewall or switch that drops by ECN"};
    const bool there = ecn_of(result->note->traffic_class) == sent;
    const bool back = ecn_of(result->traffic_class) == sent;
    if (there && back)
      return {Verdict::kOk, "ecn", fmt::format("{} arrives as sent, both ways", name)};
    return {Verdict::kWarning, "ecn",
            fmt::format("{} is changed on its way {}", name,
                        there  ? "back"
                        : back ? "there"
                               : "there and back"),
            "congestion control needs it: look for a router or tunnel that clears the TOS field"};
  }

  // The largest packets of each path MTU, never fragmented.
  void examine_sizes(u32 kernel_mtu) {
    const MTU wanted = largest_mtu_for_link(std::min(local_.mtu, kernel_mtu)).value_or(MTU::k256);
    if (!is_doctor_) {
      findings_.push_back({Verdict::kOk, "path-mtu",
                           fmt::format("{} by what the kernel knows; only `verbena doctor "
                                       "--listen` at the peer can confirm it",
                                       bytes(wanted))});
      return;
    }
    for (u8 code = static_cast<u8>(wanted); code >= static_cast<u8>(MTU::k256); --code) {
      const MTU mtu = static_cast<MTU>(code);
      if (!probe_until_answered({.payload_bytes = bytes(mtu)})) continue;
      if (mtu == wanted)
        findings_.push_back({Verdict::kOk, "path-mtu",
                             fmt::format("packets of {} bytes arrive, unfragmented", bytes(mtu))});
      else
        findings_.push_back(too_small(wanted, bytes(mtu)));
      return;
    }
    findings_.push_back(too_small(wanted, 0));
  }
  Finding too_small(MTU wanted, u32 largest) const {
    return {
        Verdict::kProblem, "path-mtu",
        fmt::format("packets of {} bytes, which the link takes, do not arrive; the largest "
                    "that do have {}",
                    bytes(wanted), largest),
        fmt::format("sudo ip link set dev {} mtu {}, or raise the MTU of what is between",
                    local_.interface, std::max(largest, bytes(MTU::k256)) + kRoCEOverheadBytes)};
  }

  const host::LocalAddress& local_;
  host::Prober& prober_;
  const GID peer_;
  Duration patience_;  // with one packet of many
  bool is_doctor_ = false;
  Findings findings_;
};

bool same_family(const host::LocalAddress& local, const GID& peer) {
  return std::ranges::any_of(local.all(),
                             [&](const GID& own) { return own.is_ipv4() == peer.is_ipv4(); });
}

// A device that encrypts takes nothing else from a peer, so that nothing more can be measured.
Finding judge_encryption(const host::EncryptionSettings& settings, const host::LocalAddress& local,
                         const GID& peer) {
  const auto agreed = host::agree_with_peer(settings, local, peer);
  if (agreed)
    return {Verdict::kOk, "encryption",
            fmt::format("packets to {} are encrypted: {}", peer.to_string(), *agreed)};
  return {Verdict::kProblem, "encryption",
          fmt::format("{} gives no keys: {}", peer.to_string(), agreed.error().message),
          fmt::format("start a program there with the same {}; a firewall must let TCP and UDP {} "
                      "pass",
                      host::kEncryptionVariable, settings.port)};
}

// A program on a virtual function has no socket of its own to measure with, and no key.
Finding judge_nic(const std::string& nic, const host::LocalAddress& local) {
  const std::string address = local.all().front().to_string();
  const auto function = host::function_on_nic(nic, address);
  if (!function) return {Verdict::kProblem, "nic", function.error().message, "start verbena nic"};
  if (function->is_encrypted != 0)
    return {Verdict::kOk, "encryption",
            fmt::format("packets of {} are encrypted by the verbena nic at {}, which has the keys; "
                        "run verbena doctor with its {} to try a handshake",
                        address, nic, host::kEncryptionVariable)};
  return {Verdict::kOk, "encryption",
          fmt::format("packets of {} go through the verbena nic at {}, and are not encrypted",
                      address, nic)};
}

// There is nothing to shake hands with until a program listens.
Finding judge_stream_encryption(const host::EncryptionSettings& settings) {
  return {Verdict::kOk, "encryption",
          fmt::format("iWARP connections are encrypted: TLS 1.3 with {}, {}; each connection shows "
                      "whether the peer agrees",
                      settings.uses_psk() ? "a pre-shared key" : "certificates",
                      host::kernel_has_tls() ? "by the kernel (kTLS)"
                                             : "by the process, since the kernel has no kTLS")};
}

Finding judge_no_encryption(const host::LocalAddress& local, const GID& peer) {
  if (host::listens_for_handshakes(peer, kPSPPort, local.interface_index))
    return {Verdict::kProblem, "encryption",
            fmt::format("{} listens for handshakes on TCP {}: its programs take only encrypted "
                        "packets",
                        peer.to_string(), kPSPPort),
            fmt::format("set {} here as it is set there", host::kEncryptionVariable)};
  return {Verdict::kOk, "encryption",
          fmt::format("packets to {} are not encrypted ({} is not set)", peer.to_string(),
                      host::kEncryptionVariable)};
}

}  // namespace

Finding judge_round_trips(std::vector<Duration> round_trips, u32 sent) {
  const auto answered = static_cast<u32>(round_trips.size());
  if (answered == 0)
    return {Verdict::kProblem, "loss", fmt::format("of {} packets none was answered", sent),
            "the peer's program has ended, or sleeps; try again"};
  std::ranges::sort(round_trips);
  const auto us = [](Duration d) { return d.seconds() * 1e6; };
  const std::string text = fmt::format(
      "of {} packets {} were answered; round trip {:.0f} us at least, {:.0f} us mostly, "
      "{:.0f} us at most",
      sent, answered, us(round_trips.front()), us(round_trips[answered / 2]),
      us(round_trips.back()));
  if (answered == sent) return {Verdict::kOk, "loss", text};
  return {Verdict::kWarning, "loss", text,
          "UdpRcvbufErrors in `nstat -az` at both ends tells of full buffers, `ip -s link` of "
          "losses below"};
}

Findings examine_peer(const std::vector<host::LocalAddress>& addresses, const std::string& peer) {
  const auto gids = host::resolve(peer);
  if (!gids || gids->empty())
    return {{Verdict::kProblem, "peer",
             fmt::format("{} is no address, and no name of one: {}", peer,
                         gids ? "none found" : gids.error().message),
             "give an IP address, or see /etc/hosts"}};
  const host::LocalAddress* local = &addresses.front();
  GID chosen = gids->front();
  for (const GID& gid : *gids)
    for (const host::LocalAddress& candidate : addresses)
      if (!same_family(*local, chosen) && same_family(candidate, gid)) {
        local = &candidate;
        chosen = gid;
      }
  if (const std::string nic = host::nic_from_environment(); !nic.empty())
    return {judge_nic(nic, *local)};
  const auto encryption = host::encryption_settings_from_environment();
  if (!encryption)
    return {{Verdict::kProblem, "encryption", encryption.error().message,
             "see docs/security.md for the words"}};
  const auto link = host::link_kind_from_environment();
  if (*encryption && link && *link == host::LinkKind::kIWARP)
    return {judge_stream_encryption(**encryption)};
  if (*encryption) return {judge_encryption(**encryption, *local, chosen)};
  const auto prober = host::Prober::open(*local);
  if (!prober)
    return {{Verdict::kProblem, "peer", "cannot be asked: " + prober.error().message,
             "first what is said above"}};
  Findings findings = Way(*local, **prober, chosen).examine();
  findings.push_back(judge_no_encryption(*local, chosen));
  return findings;
}

}  // namespace verbena::cli
