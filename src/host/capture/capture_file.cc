#include "host/capture/capture_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/port/frame_check.h"
#include "faults/values.h"
#include "host/os/clock.h"
#include "wire/eth/ethernet.h"
#include "wire/roce/v2_packet.h"

namespace verbena::host {
namespace {

constexpr std::size_t kEnvelopeRoom = 48;  // IPv6 and UDP
constexpr std::size_t kEnoughBytes = 256 << 10;

struct Headers {
  std::array<u8, EthernetHeader::kSize + kEnvelopeRoom> bytes{};
  std::size_t size = 0;
};

EtherType ether_type_of(const IngressFrame& frame) {
  if (frame.type == GIDType::kRoCEv1) return EtherType::kRoCEv1;
  return frame.source.is_ipv4() ? EtherType::kIPv4 : EtherType::kIPv6;
}

// Returns the identification. If it is unknown, returns one that makes the ICRC right.
u16 identification_of(const IngressFrame& frame) {
  const bool is_guess = !frame.identification_known && frame.source.is_ipv4() &&
                        frame.transport.size() >= BTH::kSize + kICRCSize;
  if (!is_guess) return frame.identification;
  const Bytes transport = without_icrc(frame);
  const u32 computed = icrc_of({.source = frame.source,
                                .destination = frame.destination,
                                .udp_source_port = frame.udp_source_port,
                                .identification = frame.identification},
                               transport);
  const std::optional<u16> change = solve_identification(
      computed, load_icrc(frame.transport.last<kICRCSize>()), transport.size());
  return static_cast<u16>(frame.identification ^ change.value_or(0));
}

// The GRH of RoCEv1, or IP and UDP. Its size in bytes.
std::size_t write_envelope(const IngressFrame& frame, std::span<u8> out) {
  if (frame.type == GIDType::kRoCEv1) {
    GRH{.traffic_class = frame.traffic_class,
        .payload_length = static_cast<u16>(frame.transport.size()),
        .hop_limit = frame.hop_limit,
        .sgid = frame.source,
        .dgid = frame.destination}
        .encode(out.first<GRH::kSize>());
    return GRH::kSize;
  }
  const RoCEv2Envelope envelope{.source = frame.source,
                                .destination = frame.destination,
                                .udp_source_port = frame.udp_source_port,
                                .identification = identification_of(frame)};
  const RoCEv2MaskedFields masked{.dscp = dscp_of(frame.traffic_class),
                                  .ecn = ecn_of(frame.traffic_class),
                                  .hop_limit = frame.hop_limit};
  const std::size_t without_icrc = std::max(frame.transport.size(), kICRCSize) - kICRCSize;
  encode_envelope(envelope, masked, without_icrc, out);
  return envelope_size(envelope);
}

Headers headers_of(const IngressFrame& frame) {
  Headers headers;
  EthernetHeader{.destination = CaptureFile::mac_of(frame.destination),
                 .source = CaptureFile::mac_of(frame.source),
                 .ether_type = ether_type_of(frame)}
      .encode(std::span(headers.bytes).first<EthernetHeader::kSize>());
  headers.size = EthernetHeader::kSize +
                 write_envelope(frame, std::span(headers.bytes).subspan(EthernetHeader::kSize));
  return headers;
}

Descriptor open_unshared(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open()) return file;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return ::ftruncate(file.get(), 0) == 0 ? std::move(file) : Descriptor();
}

// "trace.pcapng" and 12: "trace-12.pcapng".
std::string with_process(const std::string& path, int pid) {
  const std::size_t slash = path.rfind('/');
  const std::size_t dot = path.rfind('.');
  const bool has_extension =
      dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const std::size_t end = has_extension ? dot : path.size();
  return path.substr(0, end) + "-" + std::to_string(pid) + path.substr(end);
}

Expected<std::unique_ptr<CaptureFile>> open_from_environment() {
  const char* const path = std::getenv(kCaptureVariable);
  if (path == nullptr || *path == '\0') return nullptr;
  const char* const limit = std::getenv(kCaptureLimitVariable);
  const std::optional<u64> bytes = faults::parse_number(limit != nullptr ? limit : "0");
  if (!bytes)
    return failure(EINVAL, std::string(kCaptureLimitVariable).append(" is no number of bytes"));
  return CaptureFile::create(path, *bytes);
}

}  // namespace

Expected<CaptureFile*> CaptureFile::of_process() {
  static std::mutex mutex;
  static ::pid_t owner = 0;
  static auto& opened = *new Expected<std::unique_ptr<CaptureFile>>;
  const std::lock_guard lock(mutex);
  if (owner !=
      ::getpid()) {  // the first call, or the first in a child: its parent's is not its own
    if (owner != 0 && opened) (void)opened->release();
    opened = open_from_environment();
    owner = ::getpid();
  }
  if (!opened) return tl::unexpected(opened.error());
  return opened->get();
}

Expected<std::unique_ptr<CaptureFile>> CaptureFile::create(const std::string& path,
                                                           u64 limit_bytes) {
  std::string name = path;
  Descriptor file = open_unshared(name);
  if (!file.is_open() && errno == EWOULDBLOCK) {
    name = with_process(path, ::getpid());
    file = open_unshared(name);
  }
  if (!file.is_open())
    return failure(errno, "cannot write the capture " + name + ": " + std::strerror(errno));
  std::unique_ptr<CaptureFile> capture(
      new CaptureFile(std::move(name), limit_bytes, std::move(file)));
  capture->begin();
  capture->write();
  return capture;
}

void CaptureFile::begin() {
  pcapng::append_section("Verbena", pending_);
  for (const std::string& name : interfaces_) pcapng::append_interface(name, pending_);
}

u32 CaptureFile::add_interface(const std::string& name) {
  const std::lock_guard lock(mutex_);
  interfaces_.push_back(name);
  pcapng::append_interface(name, pending_);
  return static_cast<u32>(interfaces_.size() - 1);
}

void CaptureFile::add(u32 interface, const EgressFrame& frame, Time now) {
  const faults::HeldFrame whole = faults::HeldFrame::of(frame);
  add(interface, whole.ingress(), pcapng::PacketDirection::kOutbound, now);
}

void CaptureFile::add(u32 interface, const IngressFrame& frame, pcapng::PacketDirection direction,
                      Time now, std::string_view comment) {
  const Headers headers = headers_of(frame);
  const std::array<std::span<const u8>, 2> parts{std::span(headers.bytes).first(headers.size),
                                                 frame.transport};
  add_packet(interface, parts, direction, now, comment);
}

// Locally administered, made of the IP address.
MAC CaptureFile::mac_of(const GID& gid) {
  MAC mac{{0x02, 0x00}};
  std::copy_n(gid.bytes.end() - 4, 4, mac.bytes.begin() + 2);
  return mac;
}

void CaptureFile::add_packet(u32 interface, std::span<const std::span<const u8>> parts,
                             pcapng::PacketDirection direction, Time now,
                             std::string_view comment) {
  const std::lock_guard lock(mutex_);
  pcapng::append_packet({.interface = interface,
                         .time_ns = wallclock_ns_of(now),
                         .direction = direction,
                         .comment = comment},
                        parts, pending_);
  if (pending_.size() >= kEnoughBytes) write_locked();
}

void CaptureFile::write() {
  const std::lock_guard lock(mutex_);
  write_locked();
}

// A disk that is full ends the capture, not the program.
void CaptureFile::write_locked() {
  for (std::span<const u8> rest(pending_); !rest.empty() && file_.is_open();) {
    const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      std::fprintf(stderr, "verbena: the capture %s ends here: %s\n", path_.c_str(),
                   std::strerror(errno));
      file_ = {};
      break;
    }
    rest = rest.subspan(static_cast<std::size_t>(n));
  }
  written_bytes_ += pending_.size();
  pending_.clear();
  if (limit_bytes_ != 0 && written_bytes_ >= limit_bytes_ / 2 && file_.is_open()) rotate();
}

void CaptureFile::rotate() {
  const std::string old = path_ + ".old";
  if (::rename(path_.c_str(), old.c_str()) != 0) return;
  file_ = open_unshared(path_);
  written_bytes_ = 0;
  begin();
}

}  // namespace verbena::host
