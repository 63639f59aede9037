// Options of the tools: NAME VALUE pairs, flags, and the rest, read from a command line.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "transfer/list.h"

namespace verbena::models {

using transfer::Expected;

struct OptionNames {
  std::set<std::string> values{};  // options with a value: "--tensor"
  std::set<std::string> flags{};
};

class Options {
 public:
  [[nodiscard]] static Expected<Options> read(std::span<const std::string> arguments,
                                              const OptionNames& names);
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  [[nodiscard]] bool has(const std::string& flag) const { return flags_.contains(flag); }
  [[nodiscard]] std::vector<std::string> all(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise = "") const;
  // Fails on what is no number from `low` to `high`. "4M": with K, M, G of 1024.
  [[nodiscard]] Expected<u64> number(const std::string& name, u64 otherwise, u64 low,
                                     u64 high) const;

 private:
  std::vector<std::string> words_{};
  std::set<std::string> flags_{};
  std::multimap<std::string, std::string> values_{};
};

[[nodiscard]] std::optional<u64> read_size(const std::string& text);

}  // namespace verbena::models
