// DatagramSocket: an rsocket of SOCK_DGRAM: a UDP socket, which has the addresses, and UD QPs,
// which have the traffic. What comes by UDP is looked at whenever a call looks for datagrams; no
// thread does it meanwhile, so a peer is answered when the program next calls.
#pragma once

#include <unordered_map>

#include "abi/rdmacm/local_routes.h"
#include "abi/rdmacm/rsocket/datagram_port.h"
#include "abi/rdmacm/rsocket/socket.h"

namespace verbena::rdmacm::rsocket {

class DatagramSocket final : public Socket {
 public:
  // nullptr and errno.
  [[nodiscard]] static std::shared_ptr<DatagramSocket> create(int domain, int type);

  DatagramSocket(int domain, host::Descriptor wake, int file_flags, host::Descriptor udp)
      : Socket(domain, std::move(wake), file_flags), udp_(std::move(udp)) {}
  ~DatagramSocket() override;

  [[nodiscard]] int fd() const override { return udp_.get(); }

  [[nodiscard]] int bind(const sockaddr* address, socklen_t length) override;
  [[nodiscard]] int listen(int) override { return fail(EOPNOTSUPP); }
  [[nodiscard]] Made accept() override { return abi::fail(EOPNOTSUPP); }
  [[nodiscard]] int connect(const sockaddr* address, socklen_t length) override;
  [[nodiscard]] int shutdown(int how) override;
  void close() override;
  [[nodiscard]] ssize_t send(std::span<const iovec> parts, int flags, const sockaddr* to,
                             socklen_t length) override;
  [[nodiscard]] ssize_t receive(std::span<const iovec> parts, int flags, NameBuffer from) override;
  [[nodiscard]] int local_name(NameBuffer name) override;
  [[nodiscard]] int peer_name(NameBuffer name) override;
  [[nodiscard]] int set_option(OptionKey key, const void* value, socklen_t length) override;
  [[nodiscard]] int get_option(OptionKey key, void* value, socklen_t* length) override;
  [[nodiscard]] off_t map(void*, std::size_t, int, off_t) override { return fail(EOPNOTSUPP); }
  [[nodiscard]] int unmap(void*, std::size_t) override { return fail(EOPNOTSUPP); }
  [[nodiscard]] ssize_t write_mapped(const void*, std::size_t, off_t, int) override {
    return fail(EOPNOTSUPP);
  }

 private:
  // A peer: by its UDP address; and its QP, when it has introduced itself.
  struct Destination {
    SocketEndpoint endpoint;
    SocketEndpoint source;         // what it knows us by
    DatagramPort* port = nullptr;  // from where
    ibv_ah* handle = nullptr;      // nullptr while it is unknown
    SocketEndpoint place;
    QPN qpn;
  };
  struct EndpointHash {
    std::size_t operator()(const SocketEndpoint& endpoint) const;
  };
  struct SameEndpoint {
    bool operator()(const SocketEndpoint& a, const SocketEndpoint& b) const;
  };

  void look() override;
  [[nodiscard]] short ready_now(short events) override;
  void arm(std::vector<pollfd>& to) override;
  bool drain() override;

  [[nodiscard]] std::optional<SocketEndpoint> bound() const;  // nullopt if it is not bound yet
  [[nodiscard]] int bind_for(const Route& route, const SocketEndpoint& destination);
  [[nodiscard]] Destination* destination(const SocketEndpoint& endpoint);
  [[nodiscard]] Destination* add_destination(const SocketEndpoint& endpoint);
  [[nodiscard]] tl::expected<Route, int> route_to(const SocketEndpoint& endpoint) const;
  [[nodiscard]] DatagramPort* port_at(const Route& route);
  void forget_destinations();
  [[nodiscard]] DatagramPort* port_with_data() const;
  [[nodiscard]] bool can_send() const;
  [[nodiscard]] bool is_sent() const;
  [[nodiscard]] Destination* ready_destination(Lock& lock, const SocketEndpoint& to,
                                               bool nonblocking);
  [[nodiscard]] ssize_t introduce(const Destination& to, bool has_data, IOCursor& data) const;
  void take_introductions();
  void on_introduction(const SocketEndpoint& from, const Introduction& introduction,
                       std::span<const u8> data);
  void learn(Destination& of, const Introduction& introduction);

  host::Descriptor udp_;
  std::vector<std::unique_ptr<DatagramPort>> ports_;  // one for each address of ours in use
  std::unordered_map<SocketEndpoint, Destination, EndpointHash, SameEndpoint> destinations_;
  std::optional<SocketEndpoint> peer_;  // of connect()
  bool reading_ = true, writing_ = true;
  bool is_closed_ = false;
  u32 looks_ = 0;
};

}  // namespace verbena::rdmacm::rsocket
