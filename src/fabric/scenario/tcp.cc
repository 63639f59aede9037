#include <array>

#include "fabric/scenario/parts.h"

namespace verbena::fabric {
namespace {

// "off" is an acknowledgement for each segment.
void read_delayed_ack(Section section, tcp::Config& tcp) {
  if (!section.on("enabled", true)) tcp.segments_per_ack = 1;
  tcp.segments_per_ack = static_cast<u32>(section.count("segments", tcp.segments_per_ack, 1, 1000));
  tcp.ack_delay = section.duration("timeout", tcp.ack_delay);
  if (tcp.ack_delay > ms(500)) section.complain("timeout", "500 ms is the longest");
  section.done();
}

void read_timeouts(Section& section, tcp::Config& tcp) {
  tcp.rto_min = section.duration("rto_min", tcp.rto_min);
  tcp.rto_initial = section.duration("rto_initial", tcp.rto_initial);
  for (const char* const key : {"rto_min", "rto_initial"}) {
    const Duration value = section.duration(key, ms(1));
    if (value < us(1) || value > sec(60)) section.complain(key, "from 1 us to 60 s");
  }
  tcp.retries = static_cast<u32>(section.count("retries", tcp.retries, 1, 100));
}

}  // namespace

u32 longest_frame_of(const NetworkConfig& config) {
  return speaks_tcp(config.technology)
             ? config.tcp.longest_frame()
             : NetworkConfig::kLongestFrame + config.host({}).encryption.overhead_bytes;
}

// Reads the section only if the hosts speak TCP, so that otherwise short names of keys (--set) are
// those of `hosts`.
void read_tcp(Section section, NetworkConfig& config) {
  if (!speaks_tcp(config.technology)) return;
  static constexpr std::array<std::string_view, 3> kControls = {"reno", "cubic", "dctcp"};
  using Framing = TCPHostConfig::Framing;
  config.tcp.framing = config.technology == Technology::kIWARP ? Framing::kIWARP : Framing::kStream;
  const PCIeConfig pcie = config.host({}).pcie;
  config.tcp.posting = pcie.posting;
  config.tcp.completion = pcie.completion;
  tcp::Config& tcp = config.tcp.tcp;
  tcp.control = static_cast<tcp::ControlKind>(
      section.choice("congestion_control", static_cast<std::size_t>(tcp.control), kControls));
  tcp.ecn = section.on("ecn", tcp.control == tcp::ControlKind::kDCTCP);
  tcp.mss = static_cast<u32>(
      section.count("mss", tcp.mss, tcp::Config::kLeastMSS, tcp::Config::kMostMSS));
  tcp.initial_window =
      static_cast<u32>(section.count("initial_window", tcp.initial_window, 1, 1000));
  tcp.sack = section.on("sack", tcp.sack);
  tcp.rack = section.on("rack", tcp.rack);
  tcp.handshake = section.on("handshake", tcp.handshake);
  tcp.receive_buffer = section.bytes("window", tcp.receive_buffer, tcp.mss);
  if (tcp.receive_buffer > tcp::Config::kMostWindow) {
    section.complain("window", "less than 64 MiB");
    tcp.receive_buffer = tcp::Config::kMostWindow;
  }
  read_timeouts(section, tcp);
  read_delayed_ack(section.section("delayed_ack", "enabled"), tcp);
  if (tcp.control == tcp::ControlKind::kDCTCP && !tcp.ecn)
    section.complain("ecn", "DCTCP needs it");
  section.done();
}

}  // namespace verbena::fabric
