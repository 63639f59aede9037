#include "host/nic/shared_port.h"

#include <utility>

#include "host/links/raw/interface_mac.h"

namespace verbena::host {
namespace {

class SendingPort final : public RawPort {
 public:
  explicit SendingPort(XDPPort& shared) : shared_(shared) {}

  void append(const EgressFrame& frame, const MAC& to, PSPSender* sealer) override {
    shared_.append(frame, to, sealer);
  }
  [[nodiscard]] Trains takes() const override { return shared_.takes(); }
  void flush() override { shared_.flush(); }
  [[nodiscard]] bool may_wait() const override { return shared_.may_wait(); }
  [[nodiscard]] bool receive() override { return false; }
  [[nodiscard]] bool poll_frame(IngressFrame&) override { return false; }
  [[nodiscard]] std::span<const int> descriptors() const override { return {}; }
  void close() override {}

 private:
  XDPPort& shared_;
};

}  // namespace

Expected<std::unique_ptr<SharedPort>> SharedPort::open(const LocalAddress& address,
                                                       std::vector<GID> addresses) {
  const Expected<MAC> mac = interface_mac(address);
  if (!mac) return tl::unexpected(mac.error());
  std::unique_ptr<SharedPort> shared(new SharedPort({.addresses = std::move(addresses),
                                                     .slot = std::nullopt,
                                                     .interface_index = address.interface_index,
                                                     .mac = *mac}));
  Expected<std::unique_ptr<XDPPort>> port =
      XDPPort::open(shared->taken_, address, shared->counters_);
  if (!port) return tl::unexpected(port.error());
  shared->port_ = std::move(*port);
  return shared;
}

Expected<void> SharedPort::retake(std::vector<GID> addresses) {
  if (addresses == taken_.addresses) return {};
  taken_.addresses = std::move(addresses);
  return port_->retake(taken_);
}

std::unique_ptr<RawPort> SharedPort::for_link() { return std::make_unique<SendingPort>(*port_); }

}  // namespace verbena::host
