// The C library's agents and transfers, owned, with errors as values: what the tools are written
// with.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <verbena/transfer.h>

#include "transfer/list.h"

namespace verbena::models {

using transfer::Expected;

struct AgentDeleter {
  void operator()(verbena_agent* agent) const { verbena_agent_destroy(agent); }
};
using AgentPtr = std::unique_ptr<verbena_agent, AgentDeleter>;
struct TransferDeleter {
  void operator()(verbena_transfer* transfer) const { verbena_transfer_release(transfer); }
};
using TransferPtr = std::unique_ptr<verbena_transfer, TransferDeleter>;

struct AgentSettings {
  std::string listen{};  // "": the device's address, any port
  u32 queue_pairs = 1;
};
// Under a name that no other agent has.
[[nodiscard]] Expected<AgentPtr> make_agent(const std::string& role, const AgentSettings& settings);
[[nodiscard]] Expected<u64> add_region(verbena_agent* agent, void* address, u64 length,
                                       unsigned rights);
// The name of the agent at HOST:PORT, whose metadata is loaded afterwards.
[[nodiscard]] Expected<std::string> meet(verbena_agent* agent, const std::string& address,
                                         double seconds);

struct ReadOrder {
  std::string peer{};
  std::vector<verbena_descriptor> local{}, remote{};
};
[[nodiscard]] Expected<TransferPtr> start_read(verbena_agent* agent, const ReadOrder& order);
[[nodiscard]] Expected<void> finish(const TransferPtr& transfer, double seconds);

struct Note {
  std::string peer{}, text{};
};
[[nodiscard]] std::optional<Note> next_note(verbena_agent* agent, double seconds);
[[nodiscard]] Expected<void> tell(verbena_agent* agent, const std::string& peer,
                                  const std::string& text, double seconds);

[[nodiscard]] std::vector<std::string> split(const std::string& text, char at);
// "8.0 GiB"
[[nodiscard]] std::string size_text(u64 bytes);

}  // namespace verbena::models
