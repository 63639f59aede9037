// Command: one command of `verbena`: its options, where CLI11 puts their values, and the request
// that they make. commands.h has all of them; command_line.cc reads the command line with them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/failure.h"
#include "cli/help.h"
#include "cli/requests.h"

namespace verbena::cli {

class Command {
 public:
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Once. `app` outlives this.
  void add_to(CLI::App& app) {
    app_ = app.add_subcommand(name_);
    add_options(*app_);
  }
  [[nodiscard]] bool is_parsed() const { return app_->parsed(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] HelpTopic help() const { return help_; }
  // Returns a failure with one line: the error, and where help is.
  [[nodiscard]] tl::unexpected<Failure> wrong_usage(std::string_view what) const;
  // Returns the request, after the options were read. `program`: the words that belong to the
  // program.
  [[nodiscard]] virtual Expected<Request> request(std::vector<std::string> program) const = 0;

 protected:
  Command(std::string name, HelpTopic help) : name_(std::move(name)), help_(help) {}
  virtual void add_options(CLI::App& app) = 0;

  [[nodiscard]] bool has(const char* option) const { return app_->count(option) != 0; }
  // The failure where `option` is given and its value is empty.
  [[nodiscard]] std::optional<tl::unexpected<Failure>> check_filled(const char* option,
                                                                    const std::string& value) const;
  // Reads the values of --set, each KEY=VALUE. A mistake is answered with `example`.
  [[nodiscard]] Expected<std::vector<fabric::Setting>> read_settings(
      const std::vector<std::string>& texts, std::string_view example) const;
  // `out` stays as it is where the option is not given.
  [[nodiscard]] Expected<void> read_number(const char* option, const std::string& text, u64 most,
                                           u32& out) const;

 private:
  const std::string name_;
  const HelpTopic help_;
  CLI::App* app_ = nullptr;
};

[[nodiscard]] OutputFormat format_of(bool json);

}  // namespace verbena::cli
