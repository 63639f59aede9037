#include "transfer/json.h"

#include <charconv>
#include <unordered_set>

#include <nlohmann/json.hpp>

namespace verbena::transfer {
namespace {

using Events = nlohmann::json_sax<nlohmann::json>;

// Makes the values as nlohmann's reader comes to them, and stops where one is not wanted.
class Builder final : public Events {
 public:
  bool null() override { return put({.type = JSON::Type::kNull}); }
  bool boolean(bool value) override { return put({.type = JSON::Type::kBool, .boolean = value}); }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return number(text);
  }
  bool string(string_t& text) override {
    return put({.type = JSON::Type::kString, .text = std::move(text)});
  }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON has none
  bool start_object(std::size_t /*size*/) override { return open(JSON::Type::kObject); }
  bool start_array(std::size_t /*size*/) override { return open(JSON::Type::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) return fail("the key " + name + " twice");
    open_.back()->members.emplace_back(std::move(name), JSON());
    return true;
  }
  bool parse_error(std::size_t place, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*why*/) override {
    return fail("no JSON at byte " + std::to_string(place));
  }

  JSON root;
  std::string mistake;

 private:
  bool number(std::string text) {
    return put({.type = JSON::Type::kNumber, .text = std::move(text)});
  }
  bool fail(std::string why) {
    mistake = std::move(why);
    return false;
  }
  JSON& place() {
    if (open_.empty()) return root;
    JSON& parent = *open_.back();
    return parent.is(JSON::Type::kArray) ? parent.items.emplace_back()
                                         : parent.members.back().second;
  }
  bool put(JSON value) {
    place() = std::move(value);
    return true;
  }
  bool open(JSON::Type type) {
    if (open_.size() == JSON::kMaxDepth) return fail("too deep a nesting");
    JSON& value = place();
    value.type = type;
    open_.push_back(&value);
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::vector<std::unordered_set<std::string>> keys_;  // of each open value
  std::vector<JSON*> open_;  // from the outermost; a child moves only when its own parent grows
};

template <typename T>
std::optional<T> read_number(const JSON& json) {
  T value{};
  const char* const end = json.text.data() + json.text.size();
  if (!json.is(JSON::Type::kNumber)) return std::nullopt;
  const auto [at, error] = std::from_chars(json.text.data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

}  // namespace

Expected<JSON> JSON::parse(std::string_view text) {
  Builder builder;
  if (nlohmann::json::sax_parse(text, &builder)) return std::move(builder.root);
  return tl::unexpected(builder.mistake);
}

const JSON* JSON::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

std::optional<u64> JSON::whole() const { return read_number<u64>(*this); }
std::optional<double> JSON::number() const { return read_number<double>(*this); }

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace verbena::transfer
