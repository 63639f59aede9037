#include "tests/transfer/agents.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace verbena::transfer_test {

bool is_on_iwarp() {
  const char* const link = getenv("VERBENA_TEST_LINK");
  return link != nullptr && std::strcmp(link, "iwarp") == 0;
}

void use_devices(const Devices& devices) {
  setenv("VERBENA_ADDRESS", is_on_iwarp() ? "127.41.2.1,127.41.2.2" : devices.address, 1);
  setenv("VERBENA_LINK", is_on_iwarp() ? "iwarp" : "udp", 1);
  setenv("VERBENA_LOCAL", devices.is_local ? "on" : "off", 1);
  if (devices.faults != nullptr)
    setenv("VERBENA_FAULT", devices.faults, 1);
  else
    unsetenv("VERBENA_FAULT");
}

AgentPtr make_agent(const std::string& name, const AgentWish& wish) {
  verbena_agent_options sized{};
  sized.queue_pairs = wish.queue_pairs;
  sized.listen = wish.listen;
  sized.size = sizeof sized;
  verbena_agent* agent = nullptr;
  EXPECT_EQ(verbena_agent_create(&agent, name.c_str(), &sized), VERBENA_TRANSFER_OK)
      << verbena_agent_error();
  return AgentPtr(agent);
}

std::string meet(verbena_agent* agent, const std::string& address) {
  char name[256] = "";
  EXPECT_EQ(verbena_agent_fetch_metadata(agent, address.c_str(), 10, name, sizeof name),
            VERBENA_TRANSFER_OK)
      << verbena_agent_error();
  return name;
}

uint64_t add_memory(verbena_agent* agent, std::vector<unsigned char>& memory, unsigned rights) {
  uint64_t region = 0;
  EXPECT_EQ(verbena_agent_register(agent, memory.data(), memory.size(), rights, &region),
            VERBENA_TRANSFER_OK)
      << verbena_agent_error();
  return region;
}

verbena_descriptor block(const std::vector<unsigned char>& memory, size_t offset, size_t length) {
  return {
      .address = reinterpret_cast<uint64_t>(memory.data()) + offset, .length = length, .region = 0};
}

std::vector<unsigned char> pattern(size_t length, unsigned seed) {
  std::vector<unsigned char> bytes(length);
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (unsigned char& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<unsigned char>(state >> 56);
  }
  return bytes;
}

TransferPtr prepare(verbena_agent* agent, verbena_transfer_op op,
                    const std::vector<verbena_descriptor>& local,
                    const std::vector<verbena_descriptor>& remote, const std::string& peer,
                    const TransferWish& wish) {
  verbena_transfer_options sized{};
  sized.priority = wish.priority;
  sized.notification = wish.notification;
  sized.notification_size = wish.notification == nullptr ? 0 : std::strlen(wish.notification);
  sized.size = sizeof sized;
  verbena_transfer* transfer = nullptr;
  EXPECT_EQ(verbena_transfer_create(agent, op, local.data(), local.size(), remote.data(),
                                    remote.size(), peer.c_str(), &sized, &transfer),
            VERBENA_TRANSFER_OK)
      << verbena_agent_error();
  return TransferPtr(transfer);
}

verbena_agent_counters counters_of(const AgentPtr& agent) {
  verbena_agent_counters counters{};
  counters.size = sizeof counters;
  EXPECT_EQ(verbena_agent_count(agent.get(), &counters), VERBENA_TRANSFER_OK);
  return counters;
}

int run(const TransferPtr& transfer, double seconds) {
  const int posted = verbena_transfer_post(transfer.get());
  if (posted != VERBENA_TRANSFER_OK) return posted;
  return verbena_transfer_wait(transfer.get(), seconds);
}

std::string read_line(int fd) {
  std::string line;
  char c = 0;
  while (read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

void write_line(int fd, const std::string& line) {
  const std::string text = line + "\n";
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(9);
}

Child::Child(const Body& body) {
  int up[2], down[2];
  if (pipe(up) != 0 || pipe(down) != 0) abort();
  pid_ = fork();
  if (pid_ == 0) {
    close(up[0]);
    close(down[1]);
    alarm(120);  // a child whose parent hangs
    body(up[1], down[0]);
    _exit(0);
  }
  close(up[1]);
  close(down[0]);
  from_ = up[0];
  to_ = down[1];
}

Child::~Child() {
  kill_it(SIGKILL);
  close(from_);
  close(to_);
}

std::string Child::hear_line() { return read_line(from_); }
void Child::tell_line(const std::string& line) { write_line(to_, line); }

void Child::kill_it(int signal_number) {
  if (pid_ == 0) return;
  kill(pid_, signal_number);
  if (signal_number != SIGKILL) return;
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

}  // namespace verbena::transfer_test
