// VirtualHosts: hosts for programs, on this machine: network namespaces that a bridge joins. A user
// namespace gives the right to make them, so no privilege is needed; root makes them without one.
// If neither is permitted, hosts are addresses of loopback. The kernel removes all hosts when this
// process and the programs have ended.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "cli/failure.h"

namespace verbena::cli {

class VirtualHosts {
 public:
  enum class Kind { kNamespaces, kLoopback };
  static constexpr unsigned kMost = 200;  // addresses end in 1 .. 200

  // Enters namespaces of its own, for good: one thread, and once in a process. `reason` says why
  // hosts are addresses of loopback although namespaces were asked for.
  VirtualHosts(unsigned hosts, Kind kind);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }  // "": as asked for
  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] std::string address_of(unsigned host) const;

  // Starts a process on a host: in a group of its own, which dies with this process; `become` does
  // not return. Its output goes to `output`, and it has no input.
  [[nodiscard]] Expected<pid_t> start(unsigned host, int output,
                                      const std::function<void()>& become);

  // Whether a program on the process's host listens on a TCP port. On loopback nobody knows.
  [[nodiscard]] bool has_listener(pid_t process) const;

 private:
  [[nodiscard]] std::string enter();  // "", or why it cannot be
  [[nodiscard]] std::string join(pid_t process);

  const unsigned count_;
  Kind kind_;
  std::string reason_;
  unsigned started_ = 0;  // names of interfaces, one for each process
};

}  // namespace verbena::cli
