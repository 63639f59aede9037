#include "cli/commands/device_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check/settings.h"
#include "cli/fault_options.h"
#include "faults/values.h"
#include "host/settings/congestion_settings.h"
#include "host/settings/link_kind.h"
#include "host/settings/retransmission_settings.h"

namespace verbena::cli {
namespace {

bool is_congestion_name(const std::string& name) {
  return std::ranges::find(host::kCongestionNames, name) != host::kCongestionNames.end();
}

}  // namespace

void DeviceOptions::add_to(CLI::App& app) {
  app_ = &app;
  app.add_option("--link", link_)->type_name("NAME");
  app.add_option("--fault", faults_)->type_name("RULES")->take_all();
  app.add_option("--fault-file", fault_files_)->type_name("FILE")->take_all();
  app.add_option("--seed", seed_)->type_name("N");
  app.add_option("--cc", congestion_)->type_name("NAME");
  app.add_option("--retransmission", retransmission_)->type_name("NAME");
  app.add_option("--capture-limit", capture_limit_)
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE");
  app.add_flag("--check{1}", check_);  // --check=WORDS
  app.add_option("--check-exit-code", check_exit_code_)->type_name("N");
}

Expected<RunRequest> DeviceOptions::read(const Command& command) const {
  const auto none_of = [&command](const char* option, const std::string& value, const auto& names) {
    return command.wrong_usage(
        fmt::format("{} {} is none of {}", option, value, fmt::join(names, ", ")));
  };
  auto faults = read_faults(faults_, fault_files_);
  if (!faults) return tl::unexpected(faults.error());
  if (!seed_.empty() && !faults::parse_number(seed_))
    return command.wrong_usage(fmt::format("--seed {} is no number", seed_));
  if (has("--cc") && !is_congestion_name(congestion_))
    return none_of("--cc", congestion_, host::kCongestionNames);
  if (has("--retransmission") && !host::retransmission_named(retransmission_))
    return none_of("--retransmission", retransmission_, host::kRetransmissionNames);
  if (has("--link") && !host::link_kind_named(link_))
    return none_of("--link", link_, host::kLinkNames);
  if (!check::parse_settings(check_))
    return command.wrong_usage(
        fmt::format("--check={} is not one of fatal, leaks, overlaps", check_));
  if (!check_exit_code_.empty() && !check::parse_exit_code(check_exit_code_))
    return command.wrong_usage(
        fmt::format("--check-exit-code {} is not 0 to 255", check_exit_code_));
  RunRequest request;
  request.faults = std::move(*faults);
  request.capture_limit = capture_limit_;
  request.check = check_;
  request.check_exit_code = check_exit_code_;
  request.seed = seed_;
  request.congestion = congestion_;
  request.retransmission = retransmission_;
  request.link = link_;
  return request;
}

}  // namespace verbena::cli
