// Netlink messages as they lie in a datagram: netlink(7), and the attributes of the kernel's
// include/net/netlink.h. Numbers are in the host's order.
//    nlmsghdr: length, type, flags, sequence number, port | attributes, each padded to 4 bytes
//    nlattr:   length, type | value, or attributes in it
//
// Nothing is allocated, and no C++ runtime is needed: it runs in any program.
#pragma once

#include <linux/netlink.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.h"

namespace verbena::abi::paths {

// One datagram that is being written: messages to one requester.
class NetlinkWriter {
 public:
  static constexpr std::size_t kRoom = 3776;  // as the kernel's: readers have a page for it

  // Both as the request has them.
  NetlinkWriter(u32 sequence, u32 port) : sequence_(sequence), port_(port) {}

  void begin(u16 type, u16 flags);
  void end();  // of the message
  template <typename Number>
  void put(u16 attribute, Number value) {
    put_bytes(attribute, &value, sizeof(value));
  }
  void put_text(u16 attribute, std::string_view text);  // with a zero behind it
  // The attribute holds everything that is put before close_nest() of the returned value.
  [[nodiscard]] std::size_t open_nest(u16 attribute);
  void close_nest(std::size_t nest);

  [[nodiscard]] std::size_t left() const { return kRoom - size_; }
  // Returns false if the buffer was too small; bytes() is then incomplete and must not be sent.
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  [[nodiscard]] std::span<const u8> bytes() const { return std::span(bytes_).first(size_); }
  void clear() { size_ = 0; }

  // NLMSG_ERROR, with the header that it is about. `error`: an errno; 0: an acknowledgement.
  void put_result(const nlmsghdr& about, int error);
  // NLMSG_DONE: the end of a dump.
  void put_done();

 private:
  void put_bytes(u16 attribute, const void* value, std::size_t size);
  [[nodiscard]] u8* take(std::size_t size);  // zeros; nullptr if there is no room

  u32 sequence_, port_;
  std::size_t size_ = 0, message_ = 0;
  bool is_whole_ = true;
  alignas(nlmsghdr) std::array<u8, kRoom> bytes_{};
};

// One message that was received.
struct NetlinkRequest {
  nlmsghdr header{};
  std::span<const u8> attributes;

  // Takes the first message off. nullopt: there is no whole one.
  [[nodiscard]] static std::optional<NetlinkRequest> take(std::span<const u8>& datagram);
  // Returns nullopt if the request has no such attribute of that size.
  [[nodiscard]] std::optional<u32> number(u16 attribute) const;
};

}  // namespace verbena::abi::paths
