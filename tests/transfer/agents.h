// Agents for tests: two or more in this process, and one in a child that can die.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <verbena/transfer.h>

namespace verbena::transfer_test {

// Devices of the agents that are made later, in this process and its children.
struct Devices {
  const char* address = "127.41.0.1";  // with commas between several
  const char* faults = nullptr;
  bool is_local = true;  // copies between processes; else packets
};
void use_devices(const Devices& devices);
// VERBENA_TEST_LINK=iwarp runs all tests on iWARP devices. Their addresses are always the same two,
// because a process opens its devices of rdma_cm once.
bool is_on_iwarp();

struct AgentDeleter {
  void operator()(verbena_agent* agent) const { verbena_agent_destroy(agent); }
};
using AgentPtr = std::unique_ptr<verbena_agent, AgentDeleter>;
struct TransferDeleter {
  void operator()(verbena_transfer* transfer) const { verbena_transfer_release(transfer); }
};
using TransferPtr = std::unique_ptr<verbena_transfer, TransferDeleter>;

// Fails the test, and returns NULL, if it cannot be made.
struct AgentWish {
  unsigned queue_pairs = 0;
  const char* listen = nullptr;
};
AgentPtr make_agent(const std::string& name, const AgentWish& wish = {});
// The peer's name, or "".
std::string meet(verbena_agent* agent, const std::string& address);
uint64_t add_memory(verbena_agent* agent, std::vector<unsigned char>& memory, unsigned rights = 0);
verbena_descriptor block(const std::vector<unsigned char>& memory, size_t offset, size_t length);
std::vector<unsigned char> pattern(size_t length, unsigned seed);

struct TransferWish {
  unsigned priority = 0;
  const char* notification = nullptr;
};
TransferPtr prepare(verbena_agent* agent, verbena_transfer_op op,
                    const std::vector<verbena_descriptor>& local,
                    const std::vector<verbena_descriptor>& remote, const std::string& peer,
                    const TransferWish& wish = {});
verbena_agent_counters counters_of(const AgentPtr& agent);
int run(const TransferPtr& transfer, double seconds = 30);

// A child that runs `body` with an agent, and its memory at an address that the parent has, too:
// the parent learns of it by what body() writes to `tell`.
class Child {
 public:
  using Body = std::function<void(int tell, int hear)>;
  explicit Child(const Body& body);
  ~Child();
  std::string hear_line();
  void tell_line(const std::string& line);
  void kill_it(int signal_number);

 private:
  int pid_ = 0, from_ = -1, to_ = -1;
};
std::string read_line(int fd);
void write_line(int fd, const std::string& line);

}  // namespace verbena::transfer_test
