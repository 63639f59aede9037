// HTTPServer: serves one page at /metrics to every client, in one thread: a poll loop over a
// bounded number of connections, each with a time limit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "host/http/message.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "wire/ib/gid.h"

namespace verbena::host {

class HTTPServer {
 public:
  // Port 0: one that is free.
  [[nodiscard]] static Expected<HTTPServer> listen(const GID& address, u16 port);
  [[nodiscard]] u16 port() const { return port_; }

  // Until `stop` is readable. `page` is called for each request for it.
  void serve(int stop, const std::function<HTTPAnswer()>& page);

 private:
  static constexpr std::size_t kMaxConnections = 32;
  static constexpr Duration kPatience = sec(5);

  struct Connection {
    Descriptor socket;
    Time until;  // then it is closed, whatever it does
    std::string in{}, out{};
    enum class Phase { kReading, kWriting, kEnding, kOver } phase = Phase::kReading;
  };

  explicit HTTPServer(Descriptor socket, u16 port) : socket_(std::move(socket)), port_(port) {}
  void accept();
  static void read(Connection& connection, const std::function<HTTPAnswer()>& page);
  static void write(Connection& connection);
  static void drain(Connection& connection);

  Descriptor socket_;
  u16 port_;
  std::vector<Connection> connections_;
};

}  // namespace verbena::host
