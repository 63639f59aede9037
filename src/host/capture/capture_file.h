// CaptureFile: the frames of a process's devices in a pcapng file, as Wireshark shows RoCEv2. What
// was written is in the file however the process ends.
//
// One file serves all devices of a process, one interface each. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/port/frame.h"
#include "faults/held_frame.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "wire/capture/pcapng.h"
#include "wire/eth/ethernet.h"

namespace verbena::host {

inline constexpr const char* kCaptureVariable = "VERBENA_CAPTURE";             // the file
inline constexpr const char* kCaptureLimitVariable = "VERBENA_CAPTURE_LIMIT";  // bytes; 0: none

class CaptureFile {
 public:
  // The one of this process, opened at the first call; nullptr: none is wanted. A file that another
  // process writes is left alone: ours then has our process id in its name.
  [[nodiscard]] static Expected<CaptureFile*> of_process();

  // When the file has half of `limit_bytes`, it becomes FILE.old and a new one is begun, so that
  // the newest frames are kept. 0 means no limit.
  [[nodiscard]] static Expected<std::unique_ptr<CaptureFile>> create(const std::string& path,
                                                                     u64 limit_bytes);

  [[nodiscard]] u32 add_interface(const std::string& name);
  void add(u32 interface, const EgressFrame& frame, Time now);
  void add(u32 interface, const IngressFrame& frame, pcapng::PacketDirection direction, Time now,
           std::string_view comment = "");
  // One from its Ethernet header on, in pieces.
  void add_packet(u32 interface, std::span<const std::span<const u8>> parts,
                  pcapng::PacketDirection direction, Time now, std::string_view comment = "");
  // Returns a substitute for the MAC address of an IP address, because no socket shows the real
  // one.
  [[nodiscard]] static MAC mac_of(const GID& gid);
  void write();  // all that was added since the last call

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  CaptureFile(std::string path, u64 limit_bytes, Descriptor file)
      : path_(std::move(path)), limit_bytes_(limit_bytes), file_(std::move(file)) {}
  void begin();
  void write_locked();
  void rotate();

  const std::string path_;
  const u64 limit_bytes_;
  std::mutex mutex_;
  Descriptor file_;
  std::vector<std::string> interfaces_;
  std::vector<u8> pending_;
  u64 written_bytes_ = 0;
};

}  // namespace verbena::host
