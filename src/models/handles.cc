#include "models/handles.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

namespace verbena::models {
namespace {

tl::unexpected<std::string> agent_error() {
  return tl::unexpected<std::string>(verbena_agent_error());
}

}  // namespace

Expected<AgentPtr> make_agent(const std::string& role, const AgentSettings& settings) {
  u32 random = 0;
  (void)!getrandom(&random, sizeof random, 0);
  const std::string name = fmt::format("{}-{}-{:08x}", role, getpid(), random);
  verbena_agent_options options{};
  options.size = sizeof options;
  options.queue_pairs = settings.queue_pairs;
  if (!settings.listen.empty()) options.listen = settings.listen.c_str();
  verbena_agent* agent = nullptr;
  if (verbena_agent_create(&agent, name.c_str(), &options) != VERBENA_TRANSFER_OK)
    return agent_error();
  return AgentPtr(agent);
}

Expected<u64> add_region(verbena_agent* agent, void* address, u64 length, unsigned rights) {
  u64 region = 0;
  if (verbena_agent_register(agent, address, length, rights, &region) != VERBENA_TRANSFER_OK)
    return agent_error();
  return region;
}

Expected<std::string> meet(verbena_agent* agent, const std::string& address, double seconds) {
  std::array<char, 256> name{};
  if (verbena_agent_fetch_metadata(agent, address.c_str(), seconds, name.data(), name.size()) !=
      VERBENA_TRANSFER_OK)
    return agent_error();
  return std::string(name.data());
}

Expected<TransferPtr> start_read(verbena_agent* agent, const ReadOrder& order) {
  verbena_transfer* transfer = nullptr;
  if (verbena_transfer_create(agent, VERBENA_READ, order.local.data(), order.local.size(),
                              order.remote.data(), order.remote.size(), order.peer.c_str(), nullptr,
                              &transfer) != VERBENA_TRANSFER_OK)
    return agent_error();
  TransferPtr owned(transfer);
  if (verbena_transfer_post(transfer) != VERBENA_TRANSFER_OK) return agent_error();
  return owned;
}

Expected<void> finish(const TransferPtr& transfer, double seconds) {
  if (verbena_transfer_wait(transfer.get(), seconds) != VERBENA_TRANSFER_OK) return agent_error();
  return {};
}

std::optional<Note> next_note(verbena_agent* agent, double seconds) {
  std::array<char, 256> peer{};
  std::array<char, VERBENA_NOTIFICATION_MAX> text{};
  size_t size = text.size();
  if (verbena_agent_next_notification(agent, nullptr, seconds, peer.data(), peer.size(),
                                      text.data(), &size) != VERBENA_TRANSFER_OK)
    return std::nullopt;
  return Note{peer.data(), std::string(text.data(), size)};
}

Expected<void> tell(verbena_agent* agent, const std::string& peer, const std::string& text,
                    double seconds) {
  const std::string part = text.substr(0, VERBENA_NOTIFICATION_MAX);
  if (verbena_agent_notify(agent, peer.c_str(), part.data(), part.size(), seconds) !=
      VERBENA_TRANSFER_OK)
    return agent_error();
  return {};
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string size_text(u64 bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace verbena::models
