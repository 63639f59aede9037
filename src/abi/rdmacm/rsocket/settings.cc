#include "abi/rdmacm/rsocket/settings.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "abi/rdmacm/rsocket/wire.h"

namespace verbena::rdmacm::rsocket {
namespace {

constexpr char kFolder[] = "/etc/rdma/rsocket/";
constexpr i64 kMostPolling_us = 1'000'000, kMostSleep_ms = 60'000;

std::optional<i64> number_in(const std::string& path) {
  i64 number = 0;
  std::ifstream file(path);
  if (file >> number && number >= 0) return number;
  return std::nullopt;
}

void read(const std::string& path, u32& to, u32 least, u32 most) {
  if (const auto number = number_in(path))
    to = static_cast<u32>(std::clamp<i64>(*number, least, most));
}

}  // namespace

Defaults read_defaults(const std::string& folder) {
  Defaults all;
  Settings& settings = all.settings;
  read(folder + "mem_default", settings.receive_bytes, kLeastBuffer, kMostBuffer);
  read(folder + "wmem_default", settings.send_bytes, kLeastBuffer, kMostBuffer);
  read(folder + "sqsize_default", settings.send_queue, kLeastQueue, kMostQueue);
  read(folder + "rqsize_default", settings.receive_queue, kLeastQueue, kMostQueue);
  read(folder + "inline_default", settings.inline_bytes, 0, kMostInline);
  read(folder + "iomap_size", settings.iomaps, 0, kMostIomaps);
  settings.receive_bytes &= ~1U;
  settings.iomaps = unscaled(scaled(settings.iomaps));
  if (const auto time = number_in(folder + "polling_time"))
    all.polling_time = std::chrono::microseconds(std::min(*time, kMostPolling_us));
  if (const auto time = number_in(folder + "wake_up_interval"))
    all.longest_sleep = std::chrono::milliseconds(std::clamp<i64>(*time, 1, kMostSleep_ms));
  return all;
}

const Defaults& defaults() {
  static const Defaults all = read_defaults(kFolder);
  return all;
}

}  // namespace verbena::rdmacm::rsocket
