// Reading: one scenario file being read: the mistakes found so far and the keys that it may have.
// The mistake that is told is an unknown key, if there is one (what else seems wrong often follows
// from it), else the first that was found.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "base/types.h"

namespace verbena::fabric {

class Reading {
 public:
  explicit Reading(std::string file) : file_(std::move(file)) {}

  // `path`: of the key, "switch.ecn.kmin"; `what`: is wrong, and how it would be right.
  void complain(const YAML::Node& at, const std::string& path, const std::string& what);
  void unknown_key(const YAML::Node& at, const std::string& section, const std::string& key,
                   const std::vector<std::string>& known);
  // A key that is there to be given, by its path.
  void offer(const std::string& path) { offered_.push_back(path); }

  // A bare value at this path is that of the key there.
  void offer_short(const std::string& path, const std::string& key) { short_[path] = key; }

  // "FILE:LINE: PATH: what"
  [[nodiscard]] std::optional<std::string> mistake() const;
  // All keys that were offered, in the order of reading.
  [[nodiscard]] const std::vector<std::string>& offered() const { return offered_; }
  [[nodiscard]] const std::map<std::string, std::string>& short_forms() const { return short_; }

 private:
  struct Unknown {
    YAML::Mark mark;
    std::string section, key;
    std::vector<std::string> known;
  };
  std::string line(const YAML::Mark& mark, const std::string& path, const std::string& what) const;
  std::string advice(const Unknown& unknown) const;

  std::string file_;
  std::optional<std::string> first_;
  std::vector<Unknown> unknown_;
  std::vector<std::string> offered_;
  std::map<std::string, std::string> short_;
};

// Returns the one of `words` that `word` most likely means; nullopt if none is near.
[[nodiscard]] std::optional<std::string> nearest(const std::string& word,
                                                 const std::vector<std::string>& words);
// "a, b or c"
[[nodiscard]] std::string one_of(const std::vector<std::string>& words);

}  // namespace verbena::fabric
