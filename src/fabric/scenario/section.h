// Section: a mapping of a scenario file, whose values are asked for by key. A missing value is
// replaced by the fallback; an invalid one is reported to the Reading, and replaced by the
// fallback, too. '-' and '_' in keys are the same. When all keys have been asked for, done()
// complains of the others.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rate.h"
#include "fabric/scenario/reading.h"

namespace verbena::fabric {

class Section {
 public:
  Section(Reading& reading, const YAML::Node& node, std::string path);

  [[nodiscard]] bool has(std::string_view key);
  [[nodiscard]] Rate rate(std::string_view key, Rate fallback);  // above 0
  [[nodiscard]] Duration duration(std::string_view key, Duration fallback);
  [[nodiscard]] u64 bytes(std::string_view key, u64 fallback, u64 least = 0);
  [[nodiscard]] u64 count(std::string_view key, u64 fallback, u64 least, u64 most);
  [[nodiscard]] double number(std::string_view key, double fallback, double least, double most);
  [[nodiscard]] bool on(std::string_view key, bool fallback);  // on, off; true, false; yes, no
  [[nodiscard]] std::string text(std::string_view key, const std::string& fallback);
  // The place of the word given in `words`.
  [[nodiscard]] std::size_t choice(std::string_view key, std::size_t fallback,
                                   std::span<const std::string_view> words);
  // One or more words.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key);

  // A mapping under this key. `short_for`: a bare value stands for {short_for: value}.
  [[nodiscard]] Section section(std::string_view key, std::string_view short_for = {});
  // A mapping, or a list of them.
  [[nodiscard]] std::vector<Section> sections(std::string_view key,
                                              std::string_view short_for = {});

  void done();
  // Complains of a key's value (or the section itself, where it has none).
  void complain(std::string_view key, const std::string& what);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  YAML::Node find(std::string_view key);
  Section part(const YAML::Node& node, std::string path, std::string_view short_for);
  std::optional<std::string> scalar(std::string_view key);
  std::string path_to(std::string_view key) const;

  Reading* reading_;
  YAML::Node node_;
  std::string path_;
  std::vector<std::string> asked_;
};

}  // namespace verbena::fabric
