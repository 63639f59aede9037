#include "abi/paths/netlink_message.h"

#include <algorithm>

namespace verbena::abi::paths {
namespace {

constexpr std::size_t padded_to_4(std::size_t size) { return (size + 3) / 4 * 4; }

}  // namespace

u8* NetlinkWriter::take(std::size_t size) {
  size = padded_to_4(size);
  if (size > left()) {
    is_whole_ = false;
    return nullptr;
  }
  u8* const at = bytes_.data() + size_;
  std::memset(at, 0, size);
  size_ += size;
  return at;
}

void NetlinkWriter::begin(u16 type, u16 flags) {
  message_ = size_;
  const nlmsghdr header{.nlmsg_len = 0,
                        .nlmsg_type = type,
                        .nlmsg_flags = flags,
                        .nlmsg_seq = sequence_,
                        .nlmsg_pid = port_};
  if (u8* const at = take(sizeof(header))) std::memcpy(at, &header, sizeof(header));
}

void NetlinkWriter::end() {
  if (!is_whole_) return;
  const auto length = static_cast<u32>(size_ - message_);
  std::memcpy(bytes_.data() + message_ + offsetof(nlmsghdr, nlmsg_len), &length, sizeof(length));
}

void NetlinkWriter::put_bytes(u16 attribute, const void* value, std::size_t size) {
  const nlattr header{.nla_len = static_cast<u16>(sizeof(nlattr) + size), .nla_type = attribute};
  u8* const at = take(sizeof(header) + size);
  if (at == nullptr) return;
  std::memcpy(at, &header, sizeof(header));
  if (size != 0) std::memcpy(at + sizeof(header), value, size);  // a flag has no value
}

void NetlinkWriter::put_text(u16 attribute, std::string_view text) {
  std::array<char, 256> zero_ended{};
  const std::size_t size = std::min(text.size(), zero_ended.size() - 1);
  std::memcpy(zero_ended.data(), text.data(), size);
  put_bytes(attribute, zero_ended.data(), size + 1);
}

std::size_t NetlinkWriter::open_nest(u16 attribute) {
  const std::size_t nest = size_;
  put_bytes(static_cast<u16>(attribute | NLA_F_NESTED), nullptr, 0);
  return nest;
}

void NetlinkWriter::close_nest(std::size_t nest) {
  if (!is_whole_) return;
  const auto length = static_cast<u16>(size_ - nest);
  std::memcpy(bytes_.data() + nest + offsetof(nlattr, nla_len), &length, sizeof(length));
}

void NetlinkWriter::put_result(const nlmsghdr& about, int error) {
  begin(NLMSG_ERROR, NLM_F_CAPPED);
  const nlmsgerr result{.error = -error, .msg = about};
  if (u8* const at = take(sizeof(result))) std::memcpy(at, &result, sizeof(result));
  end();
}

void NetlinkWriter::put_done() {
  begin(NLMSG_DONE, NLM_F_MULTI);
  (void)take(sizeof(int));
  end();
}

std::optional<NetlinkRequest> NetlinkRequest::take(std::span<const u8>& datagram) {
  NetlinkRequest request;
  if (datagram.size() < sizeof(nlmsghdr)) return std::nullopt;
  std::memcpy(&request.header, datagram.data(), sizeof(nlmsghdr));
  const std::size_t length = request.header.nlmsg_len;
  if (length < sizeof(nlmsghdr) || length > datagram.size()) return std::nullopt;
  request.attributes = datagram.subspan(sizeof(nlmsghdr), length - sizeof(nlmsghdr));
  datagram = datagram.subspan(std::min(padded_to_4(length), datagram.size()));
  return request;
}

std::optional<u32> NetlinkRequest::number(u16 attribute) const {
  std::span<const u8> rest = attributes;
  while (rest.size() >= sizeof(nlattr)) {
    nlattr found{};
    std::memcpy(&found, rest.data(), sizeof(found));
    if (found.nla_len < sizeof(found) || found.nla_len > rest.size()) return std::nullopt;
    u32 value = 0;
    if ((found.nla_type & NLA_TYPE_MASK) == attribute &&
        found.nla_len == sizeof(found) + sizeof(value)) {
      std::memcpy(&value, rest.data() + sizeof(found), sizeof(value));
      return value;
    }
    rest = rest.subspan(std::min(padded_to_4(found.nla_len), rest.size()));
  }
  return std::nullopt;
}

}  // namespace verbena::abi::paths
