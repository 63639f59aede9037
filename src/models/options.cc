#include "models/options.h"

#include <charconv>

namespace verbena::models {

Expected<Options> Options::read(std::span<const std::string> arguments, const OptionNames& names) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-') {
      options.words_.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (names.flags.contains(name) && equals == std::string::npos) {
      options.flags_.insert(name);
    } else if (!names.values.contains(name)) {
      return tl::unexpected("unexpected argument '" + argument + "'");
    } else if (equals != std::string::npos) {
      options.values_.emplace(name, argument.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      options.values_.emplace(name, arguments[++i]);
    } else {
      return tl::unexpected(name + " needs a value");
    }
  }
  return options;
}

std::vector<std::string> Options::all(const std::string& name) const {
  std::vector<std::string> values;
  const auto [begin, end] = values_.equal_range(name);
  for (auto value = begin; value != end; ++value) values.push_back(value->second);
  return values;
}

std::string Options::text(const std::string& name, const std::string& otherwise) const {
  const auto values = all(name);
  return values.empty() ? otherwise : values.back();
}

Expected<u64> Options::number(const std::string& name, u64 otherwise, u64 low, u64 high) const {
  const auto values = all(name);
  if (values.empty()) return otherwise;
  const auto value = read_size(values.back());
  if (!value || *value < low || *value > high)
    return tl::unexpected(name + " " + values.back() + ": a number from " + std::to_string(low) +
                          " to " + std::to_string(high) + " is needed");
  return *value;
}

std::optional<u64> read_size(const std::string& text) {
  u64 value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr == text.data()) return std::nullopt;
  const std::string unit(read.ptr, end);
  u32 shift = 0;
  if (unit == "K") shift = 10;
  if (unit == "M") shift = 20;
  if (unit == "G") shift = 30;
  if (!unit.empty() && shift == 0) return std::nullopt;
  if (value > (~u64{0} >> shift)) return std::nullopt;
  return value << shift;
}

}  // namespace verbena::models
