#include "abi/paths/rdma_netlink.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>

#include "abi/paths/rdma_resources.h"

namespace verbena::abi::paths {
namespace {

constexpr std::string_view kClassFolder = "/sys/class/infiniband";
constexpr std::size_t kMaxNetlinkDevices = 64;
constexpr u32 kOnlyPort = 1;
constexpr std::size_t kRoomOfObject = 160;  // more than the attributes of one take

// A path that is put together. Too long: empty.
class JoinedPath {
 public:
  template <typename... Parts>
  explicit JoinedPath(Parts... parts) {
    (append(parts), ...);
  }
  [[nodiscard]] const char* c_str() const { return text_.data(); }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

 private:
  void append(std::string_view part) {
    if (part.size() >= text_.size() - size_) {
      text_[0] = '\0';
      size_ = text_.size() - 1;
      return;
    }
    std::memcpy(text_.data() + size_, part.data(), part.size());
    size_ += part.size();
  }
  std::array<char, PATH_MAX> text_{};
  std::size_t size_ = 0;
};

// The first line of a file. Empty: there is no such file.
class FirstLine {
 public:
  explicit FirstLine(const JoinedPath& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t size = ::read(fd, text_.data(), text_.size());
    ::close(fd);
    const std::string_view all(text_.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    size_ = std::min(all.find('\n'), all.size());
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }
  // That the line begins with: "4: ACTIVE".
  template <typename Number>
  [[nodiscard]] Number number() const {
    Number number = 0;
    std::from_chars(text_.data(), text_.data() + size_, number);
    return number;
  }
  // "0011:2233:4455:6677"
  [[nodiscard]] u64 guid() const {
    u64 guid = 0;
    for (const char c : view()) {
      u8 digit = 0;
      if (std::from_chars(&c, &c + 1, digit, 16).ec == std::errc()) guid = guid << 4 | digit;
    }
    return guid;
  }

 private:
  std::array<char, 256> text_{};
  std::size_t size_ = 0;
};

u16 type_of_reply(rdma_nldev_command command) {
  return static_cast<u16>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
}

bool is_dump(const NetlinkRequest& request) {
  return (request.header.nlmsg_flags & NLM_F_DUMP) != 0;
}

u16 flags_of_reply(const NetlinkRequest& request) {
  return is_dump(request) ? u16{NLM_F_MULTI} : u16{0};
}

}  // namespace

struct RDMANetlink::Device {
  u32 index = 0;
  std::array<char, 64> name{};
  [[nodiscard]] std::string_view view() const { return name.data(); }
};

// All devices, by index: the number at the end of their names.
class RDMANetlink::Devices {
 public:
  explicit Devices(std::string_view root) {
    DIR* const folder = ::opendir(JoinedPath(root, kClassFolder).c_str());
    if (folder == nullptr) return;
    while (const dirent* entry = ::readdir(folder)) add(entry->d_name);
    ::closedir(folder);
    std::sort(found_.begin(), found_.begin() + count_,
              [](const Device& a, const Device& b) { return a.index < b.index; });
  }
  [[nodiscard]] std::span<const Device> all() const { return std::span(found_).first(count_); }
  // Those that a request is about: the one that it names, or none; all where a dump names none.
  [[nodiscard]] std::span<const Device> asked_for(const NetlinkRequest& request) const {
    if (const Device* const named = named_in(request)) return {named, 1};
    const bool names_one = request.number(RDMA_NLDEV_ATTR_DEV_INDEX).has_value();
    return is_dump(request) && !names_one ? all() : std::span<const Device>();
  }
  // Returns nullptr if the request names no device, or one that is not there.
  [[nodiscard]] const Device* named_in(const NetlinkRequest& request) const {
    const std::optional<u32> index = request.number(RDMA_NLDEV_ATTR_DEV_INDEX);
    for (const Device& device : all())
      if (index == device.index) return &device;
    return nullptr;
  }

 private:
  void add(std::string_view name) {
    Device device;
    if (name.starts_with('.') || name.size() >= device.name.size() || count_ == found_.size())
      return;
    std::copy(name.begin(), name.end(), device.name.begin());
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    std::from_chars(name.data() + digits, name.data() + name.size(), device.index);
    found_[count_++] = device;
  }
  std::array<Device, kMaxNetlinkDevices> found_{};
  std::size_t count_ = 0;
};

namespace {

void put_handle(NetlinkWriter& writer, u32 index, std::string_view name) {
  writer.put(RDMA_NLDEV_ATTR_DEV_INDEX, index);
  writer.put_text(RDMA_NLDEV_ATTR_DEV_NAME, name);
}

std::optional<DeviceIdentity> identity_of(std::string_view root, std::string_view name) {
  return DeviceIdentity::of(name, JoinedPath(root, kClassFolder, "/", name, "/ports/1").view());
}

}  // namespace

// --- requests

void RDMANetlink::answer(std::span<const u8> datagram) const {
  while (const auto request = NetlinkRequest::take(datagram)) {
    if ((request->header.nlmsg_flags & NLM_F_REQUEST) == 0) continue;
    NetlinkWriter writer(request->header.nlmsg_seq, port_);
    int error = answer(*request, writer);
    if (error == 0) error = flush(writer);
    writer.clear();
    if (error != 0 || !is_dump(*request)) {
      if (error != 0 || (request->header.nlmsg_flags & NLM_F_ACK) != 0)
        writer.put_result(request->header, error);
    } else {
      writer.put_done();
    }
    (void)flush(writer);
  }
}

// Returns 0, or an errno.
int RDMANetlink::answer(const NetlinkRequest& request, NetlinkWriter& writer) const {
  if (RDMA_NL_GET_CLIENT(request.header.nlmsg_type) != RDMA_NL_NLDEV) return EOPNOTSUPP;
  switch (RDMA_NL_GET_OP(request.header.nlmsg_type)) {
    case RDMA_NLDEV_CMD_GET: return tell_devices(request, writer);
    case RDMA_NLDEV_CMD_PORT_GET: return tell_ports(request, writer);
    case RDMA_NLDEV_CMD_RES_GET: return tell_summary(request, writer);
    default: break;
  }
  const ResourceKind* const kind = ResourceKind::of(RDMA_NL_GET_OP(request.header.nlmsg_type));
  return kind != nullptr ? tell_resources(*kind, request, writer) : EOPNOTSUPP;
}

int RDMANetlink::flush(NetlinkWriter& writer) const {
  if (!writer.is_whole()) return EMSGSIZE;
  const bool is_sent = writer.bytes().empty() || send_(requester_, writer.bytes());
  writer.clear();
  return is_sent ? 0 : ENOBUFS;
}

int RDMANetlink::tell_devices(const NetlinkRequest& request, NetlinkWriter& writer) const {
  const Devices devices(root_);
  const auto asked_for = devices.asked_for(request);
  if (!is_dump(request) && asked_for.size() != 1) return EINVAL;
  for (const Device& device : asked_for) {
    writer.begin(type_of_reply(RDMA_NLDEV_CMD_GET), flags_of_reply(request));
    put_device(writer, device);
    writer.end();
    if (const int error = flush(writer)) return error;
  }
  return 0;
}

void RDMANetlink::put_device(NetlinkWriter& writer, const Device& device) const {
  const auto file = [&](std::string_view name) {
    return FirstLine(JoinedPath(root_, kClassFolder, "/", device.view(), "/", name));
  };
  put_handle(writer, device.index, device.view());
  writer.put(RDMA_NLDEV_ATTR_PORT_INDEX, kOnlyPort);  // the last one
  writer.put_text(RDMA_NLDEV_ATTR_FW_VERSION, file("fw_ver").view());
  writer.put(RDMA_NLDEV_ATTR_NODE_GUID, file("node_guid").guid());
  writer.put(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, file("sys_image_guid").guid());
  writer.put(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, file("node_type").number<u8>());
  writer.put_text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
}

int RDMANetlink::tell_ports(const NetlinkRequest& request, NetlinkWriter& writer) const {
  const Devices devices(root_);
  const Device* const device = devices.named_in(request);
  const std::optional<u32> port = request.number(RDMA_NLDEV_ATTR_PORT_INDEX);
  if (device == nullptr) return EINVAL;
  if (!is_dump(request) && port != kOnlyPort) return EINVAL;
  writer.begin(type_of_reply(RDMA_NLDEV_CMD_PORT_GET), flags_of_reply(request));
  put_port(writer, *device);
  writer.end();
  return 0;
}

// As of every RoCE port: without LIDs and subnet prefix, which are InfiniBand's.
void RDMANetlink::put_port(NetlinkWriter& writer, const Device& device) const {
  const JoinedPath port(root_, kClassFolder, "/", device.view(), "/ports/1/");
  const auto file = [&](std::string_view name) { return FirstLine(JoinedPath(port.view(), name)); };
  put_handle(writer, device.index, device.view());
  writer.put(RDMA_NLDEV_ATTR_PORT_INDEX, kOnlyPort);
  writer.put(RDMA_NLDEV_ATTR_PORT_STATE, file("state").number<u8>());
  writer.put(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, file("phys_state").number<u8>());
  const FirstLine interface = file("gid_attrs/ndevs/0");
  const JoinedPath interface_name(interface.view());
  if (const u32 index = ::if_nametoindex(interface_name.c_str())) {
    writer.put(RDMA_NLDEV_ATTR_NDEV_INDEX, index);
    writer.put_text(RDMA_NLDEV_ATTR_NDEV_NAME, interface.view());
  }
}

int RDMANetlink::tell_summary(const NetlinkRequest& request, NetlinkWriter& writer) const {
  const Devices devices(root_);
  const auto asked_for = devices.asked_for(request);
  if (!is_dump(request) && asked_for.size() != 1) return EINVAL;
  for (const Device& device : asked_for) {
    const auto identity = identity_of(root_, device.view());
    const ResourceCounts counts = identity ? count_resources(*identity) : ResourceCounts{};
    writer.begin(type_of_reply(RDMA_NLDEV_CMD_RES_GET), flags_of_reply(request));
    put_handle(writer, device.index, device.view());
    put_summary(writer, counts);
    writer.end();
    if (const int error = flush(writer)) return error;
  }
  return 0;
}

// A dump has as many objects in each message as there is room for; a request names one.
class RDMANetlink::Dump {
 public:
  Dump(const RDMANetlink& netlink, NetlinkWriter& writer, const Device& device,
       const ResourceKind& kind)
      : netlink_(netlink), writer_(writer), device_(device), kind_(kind) {}

  bool add(const Resource& resource) {
    if (is_open_ && writer_.left() < kRoomOfObject) close();
    if (error_ != 0) return false;
    if (!is_open_) open();
    const std::size_t entry = writer_.open_nest(kind_.entry);
    kind_.put(writer_, resource);
    writer_.close_nest(entry);
    return true;
  }
  [[nodiscard]] int finish() {
    if (is_open_) close();
    return error_;
  }

 private:
  void open() {
    is_open_ = true;
    writer_.begin(type_of_reply(kind_.command), NLM_F_MULTI);
    put_handle(writer_, device_.index, device_.view());
    table_ = writer_.open_nest(kind_.table);
  }
  void close() {
    is_open_ = false;
    writer_.close_nest(table_);
    writer_.end();
    error_ = netlink_.flush(writer_);
  }

  const RDMANetlink& netlink_;
  NetlinkWriter& writer_;
  const Device& device_;
  const ResourceKind& kind_;
  std::size_t table_ = 0;
  bool is_open_ = false;
  int error_ = 0;
};

int RDMANetlink::tell_resources(const ResourceKind& kind, const NetlinkRequest& request,
                                NetlinkWriter& writer) const {
  const Devices devices(root_);
  const Device* const device = devices.named_in(request);
  if (device == nullptr) return EINVAL;
  const auto identity = identity_of(root_, device->view());
  if (!identity) return EINVAL;
  if (is_dump(request)) {
    Dump dump(*this, writer, *device, kind);
    for_each_resource(*identity, kind, [&](const Resource& each) { return dump.add(each); });
    return dump.finish();
  }
  const std::optional<u32> wanted = request.number(kind.number);
  if (!wanted) return EINVAL;
  bool is_found = false;
  for_each_resource(*identity, kind, [&](const Resource& each) {
    if (each.number != *wanted) return true;
    is_found = true;
    writer.begin(type_of_reply(kind.command), 0);
    put_handle(writer, device->index, device->view());
    kind.put(writer, each);
    writer.end();
    return false;
  });
  return is_found ? 0 : ENOENT;
}

}  // namespace verbena::abi::paths
