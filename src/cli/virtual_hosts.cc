#include "cli/virtual_hosts.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "host/os/descriptor.h"

namespace verbena::cli {
namespace {

constexpr const char* kInterface = "net0";
constexpr const char* kSearchPath = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin";
constexpr const char* kAmbient = "cannot hand on the right to configure networks";

std::string why(const char* what) { return fmt::format("{}: {}", what, std::strerror(errno)); }

bool write_file(const char* path, const std::string& text) {
  const host::Descriptor file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Sets which rights in this user namespace a program keeps that a user other than root executes:
// ip(8) needs CAP_NET_ADMIN. capabilities(7), ambient set
bool set_ambient(bool on) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  data[0].inheritable = on ? data[0].permitted : 0;
  data[1].inheritable = on ? data[1].permitted : 0;
  if (!on) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (syscall(SYS_capset, &header, data) != 0) return false;
  return !on || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0) == 0;
}

// Runs `ip -batch`. "", or what it says.
std::string configure(const std::string& commands) {
  int input[2], output[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) return why("pipe");
  const pid_t child = fork();
  if (child < 0) return why("fork");
  if (child == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    setenv("PATH", kSearchPath, 1);
    execlp("ip", "ip", "-batch", "-", nullptr);
    fmt::print("ip is not there: Debian has it in iproute2\n");
    std::fflush(stdout);
    _exit(127);
  }
  host::Descriptor to(input[1]);
  const host::Descriptor from(output[0]);
  close(input[0]);
  close(output[1]);
  const bool is_written =
      ::write(to.get(), commands.data(), commands.size()) == static_cast<ssize_t>(commands.size());
  to.reset();
  std::string said(4096, 0);
  const ssize_t length = ::read(from.get(), said.data(), said.size());
  said.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0 && is_written) return "";
  const std::string line = said.substr(0, said.find('\n'));
  return line.empty() ? "ip failed" : line;
}

// Waits for a byte of the pipe, by which the other side reports its progress. Returns false if the
// other side ended.
bool wait_for(int pipe) {
  char byte = 0;
  return ::read(pipe, &byte, 1) == 1;
}
void tell(int pipe) {
  const char byte = 1;
  (void)!::write(pipe, &byte, 1);
}

struct Pipe {
  host::Descriptor read, write;
  static Expected<Pipe> make() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return cannot(why("pipe"));
    return Pipe{host::Descriptor(ends[0]), host::Descriptor(ends[1])};
  }
};

// The process's own side of start().
void settle(int output, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before that
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
}

}  // namespace

VirtualHosts::VirtualHosts(unsigned hosts, Kind kind) : count_(hosts), kind_(kind) {
  if (kind_ == Kind::kLoopback) return;
  reason_ = enter();
  if (!reason_.empty()) kind_ = Kind::kLoopback;
}

std::string VirtualHosts::enter() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  // A trial process runs this first, so that a failure half way does not change this process.
  const auto make = [user, group]() -> std::string {
    if (user == 0) {
      if (unshare(CLONE_NEWNET) != 0) return why("network namespaces are not permitted");
    } else {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return why("user namespaces are not permitted");
      (void)write_file("/proc/self/setgroups", "deny");
      if (!write_file("/proc/self/uid_map", fmt::format("{0} {0} 1", user)) ||
          !write_file("/proc/self/gid_map", fmt::format("{0} {0} 1", group)))
        return why("user namespaces are not permitted");
      if (!set_ambient(true)) return why(kAmbient);
    }
    return configure("link set lo up\nlink add br0 type bridge\nlink set br0 up\n");
  };
  const auto said = Pipe::make();
  if (!said) return said.error().message;
  const pid_t trial = fork();
  if (trial < 0) return why("fork");
  if (trial == 0) {
    const std::string failed = make();
    (void)!::write(said->write.get(), failed.data(), failed.size());
    _exit(failed.empty() ? 0 : 1);
  }
  int status = 0;
  while (waitpid(trial, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return make();
  std::string failed(512, 0);
  const ssize_t length = ::read(said->read.get(), failed.data(), failed.size());
  failed.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return failed;
}

std::string VirtualHosts::address_of(unsigned host) const {
  return kind_ == Kind::kNamespaces
             ? fmt::format("10.77.0.{}", host + 1)
             : fmt::format("127.{}.{}.{}", 128 + (getpid() >> 8) % 127, getpid() & 255, host + 1);
}

// The fourth word of a line is the state. proc_net_tcp.rst of the kernel's documentation
bool VirtualHosts::has_listener(pid_t process) const {
  constexpr std::string_view kListens = "0A";
  if (kind_ == Kind::kLoopback) return false;
  for (const char* const table : {"tcp", "tcp6"}) {
    std::ifstream lines(fmt::format("/proc/{}/net/{}", process, table));
    std::string line, number, local, remote, state;
    while (std::getline(lines, line))
      if (std::istringstream(line) >> number >> local >> remote >> state && state == kListens)
        return true;
  }
  return false;
}

std::string VirtualHosts::join(pid_t process) {
  const std::string name = fmt::format("v{}", started_++);
  return configure(
      fmt::format("link add {0} type veth peer name {1} netns {2}\n"
                  "link set {0} master br0\nlink set {0} up\n",
                  name, kInterface, process));
}

Expected<pid_t> VirtualHosts::start(unsigned host, int output,
                                    const std::function<void()>& become) {
  auto ready = Pipe::make(), joined = Pipe::make();
  if (!ready) return tl::unexpected(ready.error());
  if (!joined) return tl::unexpected(joined.error());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return cannot(why("fork"));
  if (child == 0) {
    settle(output, parent);
    if (kind_ == Kind::kNamespaces) {
      if (unshare(CLONE_NEWNET) != 0) _exit(kExitCannot);
      tell(ready->write.get());
      joined->write.reset();
      if (!wait_for(joined->read.get())) _exit(kExitCannot);
      const std::string failed =
          configure(fmt::format("link set lo up\nlink set {0} up\naddress add {1}/24 dev {0}\n"
                                "address add fd77::{2:x}/64 dev {0} nodad\n",
                                kInterface, address_of(host), host + 1));
      if (!failed.empty()) {
        fmt::print(stderr, "verbena: host {}: {}\n", host, failed);
        _exit(kExitCannot);
      }
      (void)set_ambient(false);
      setenv("VERBENA_ADDRESS", kInterface, 1);
    } else {
      setenv("VERBENA_ADDRESS", address_of(host).c_str(), 1);
      setenv("VERBENA_LOCAL", "off", 1);  // hosts share no memory
    }
    become();
    _exit(kExitCannot);
  }
  if (kind_ == Kind::kLoopback) return child;
  ready->write.reset();
  std::string failed = wait_for(ready->read.get()) ? join(child) : "no network namespace";
  if (!failed.empty()) {
    kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return cannot(fmt::format("host {}: {}", host, failed));
  }
  tell(joined->write.get());
  return child;
}

}  // namespace verbena::cli
