// Stranger: a peer that is no Verbena and keeps to no rules: sends bytes of its choice to QP 1 of a
// device, from port 4791 of a loopback address of its own, and reads what comes back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "wire/ib/cm/message.h"
#include "wire/ib/gid.h"

namespace verbena::test {

class Stranger {
 public:
  // Both addresses as text.
  Stranger(const std::string& own_address, const std::string& peer);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // In a packet that is right in all else. `mad` may have any size.
  void send(std::span<const u8> mad) const;
  void send(const cm::Body& body, u64 transaction_id = 1) const;
  // A whole UDP datagram.
  void send_raw(std::span<const u8> datagram) const;
  // The next CM message within so long.
  [[nodiscard]] std::optional<cm::Message> receive(int wait_ms) const;
  // As `send` puts it on the wire.
  [[nodiscard]] std::vector<u8> packet_of(std::span<const u8> mad) const;

  // Asks for a connection with the QP of this number, as rdma_cm does.
  [[nodiscard]] cm::REQ request(u16 port, CommId id, u32 qpn) const;

 private:
  GID own_, peer_;
  int socket_;
};

}  // namespace verbena::test
