// PSPCapture: the encrypted packets of a device in its process's capture, on an interface of their
// own ("eth0 (PSP)"), beside the same packets in clear.
#pragma once

#include "host/capture/capture_file.h"
#include "host/encryption/host_keys.h"

namespace verbena::host {

class PSPCapture {
 public:
  // The file outlives it. `udp_port`: PSP's.
  PSPCapture(CaptureFile& file, const std::string& interface, u16 udp_port)
      : file_(file), interface_(file.add_interface(interface + " (PSP)")), udp_port_(udp_port) {}

  // `packet`: PSP header .. ICV.
  void add(const AssociationEnds& ends, u16 udp_source_port, std::span<const u8> packet,
           pcapng::PacketDirection direction);

 private:
  CaptureFile& file_;
  const u32 interface_;
  const u16 udp_port_;
};

}  // namespace verbena::host
