#include "transfer/json.h"

#include <charconv>
#include <unordered_set>

namespace verbena::transfer {
namespace {

class JSONParser {
 public:
  explicit JSONParser(std::string_view text) : text_(text) {}

  Expected<JSON> document() {
    JSON value;
    if (!read(value, 0)) return error();
    skip_space();
    if (at_ != text_.size()) {
      why_ = "more follows";
      return error();
    }
    return value;
  }

 private:
  tl::unexpected<std::string> error() const {
    return tl::unexpected("octet " + std::to_string(at_) + ": " + why_);
  }
  bool wrong(const char* why) {
    why_ = why;
    return false;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() &&
           (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return wrong("not a value");
    at_ += word.size();
    return true;
  }

  bool read(JSON& value, u32 depth) {
    if (depth > JSON::kMaxDepth) return wrong("nested too deep");
    skip_space();
    switch (peek()) {
      case '{': return read_object(value, depth);
      case '[': return read_array(value, depth);
      case '"': value.type = JSON::Type::kString; return read_string(value.text);
      case 't':
        value.type = JSON::Type::kBool;
        value.boolean = true;
        return word("true");
      case 'f': value.type = JSON::Type::kBool; return word("false");
      case 'n': return word("null");
      default: return read_number(value);
    }
  }

  bool read_object(JSON& value, u32 depth) {
    value.type = JSON::Type::kObject;
    ++at_;
    if (take('}')) return true;
    std::unordered_set<std::string> keys;
    do {
      skip_space();
      auto& [key, member] = value.members.emplace_back();
      if (peek() != '"') return wrong("a key is missing");
      if (!read_string(key)) return false;
      if (!keys.insert(key).second) return wrong("a key is there twice");
      if (!take(':')) return wrong("a colon is missing");
      if (!read(member, depth + 1)) return false;
    } while (take(','));
    return take('}') || wrong("an object has no end");
  }

  bool read_array(JSON& value, u32 depth) {
    value.type = JSON::Type::kArray;
    ++at_;
    if (take(']')) return true;
    do {
      if (!read(value.items.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(']') || wrong("an array has no end");
  }

  [[nodiscard]] static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  bool digits() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ > begin || wrong("not a value");
  }
  bool read_number(JSON& value) {
    value.type = JSON::Type::kNumber;
    const std::size_t begin = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0' && is_digit(at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'))
      return wrong("a number begins with 0");
    if (!digits()) return false;
    if (peek() == '.') {
      ++at_;
      if (!digits()) return false;
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return false;
    }
    value.text = text_.substr(begin, at_ - begin);
    return true;
  }

  std::optional<u32> read_hex4() {
    if (text_.size() - at_ < 4) return std::nullopt;
    u32 code = 0;
    const char* const begin = text_.data() + at_;
    const auto read = std::from_chars(begin, begin + 4, code, 16);
    if (read.ptr != begin + 4) return std::nullopt;
    at_ += 4;
    return code;
  }
  bool read_unicode(std::string& to) {
    auto code = read_hex4();
    if (!code) return wrong("a wrong escape");
    u32 point = *code;
    if (point >= 0xd800 && point < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") return wrong("half of a surrogate pair");
      at_ += 2;
      code = read_hex4();
      if (!code || *code < 0xdc00 || *code > 0xdfff) return wrong("half of a surrogate pair");
      point = 0x10000 + ((point - 0xd800) << 10) + (*code - 0xdc00);
    } else if (point >= 0xdc00 && point < 0xe000) {
      return wrong("half of a surrogate pair");
    }
    append_utf8(to, point);
    return true;
  }
  static void append_utf8(std::string& to, u32 point) {
    const auto tail = [&](u32 shift) { to += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
    if (point < 0x80) {
      to += static_cast<char>(point);
    } else if (point < 0x800) {
      to += static_cast<char>(0xc0 | point >> 6);
      tail(0);
    } else if (point < 0x10000) {
      to += static_cast<char>(0xe0 | point >> 12);
      tail(6);
      tail(0);
    } else {
      to += static_cast<char>(0xf0 | point >> 18);
      tail(12);
      tail(6);
      tail(0);
    }
  }
  bool read_escape(std::string& to) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeaning = "\"\\/\b\f\n\r\t";
    const char letter = peek();
    ++at_;
    if (letter == 'u') return read_unicode(to);
    const std::size_t which = kLetters.find(letter);
    if (which == std::string_view::npos) return wrong("a wrong escape");
    to += kMeaning[which];
    return true;
  }
  bool read_string(std::string& to) {
    ++at_;
    while (at_ < text_.size() && peek() != '"') {
      const char c = text_[at_];
      if (static_cast<u8>(c) < 0x20) return wrong("a control character in a string");
      ++at_;
      if (c != '\\')
        to += c;
      else if (!read_escape(to))
        return false;
    }
    if (at_ >= text_.size()) return wrong("a string has no end");
    ++at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  const char* why_ = "";
};

}  // namespace

Expected<JSON> JSON::parse(std::string_view text) { return JSONParser(text).document(); }

const JSON* JSON::find(std::string_view key) const {
  for (const auto& [name, member] : members)
    if (name == key) return &member;
  return nullptr;
}

std::optional<u64> JSON::whole() const {
  u64 value = 0;
  if (type != Type::kNumber) return std::nullopt;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> JSON::number() const {
  double value = 0;
  if (type != Type::kNumber) return std::nullopt;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{}) return std::nullopt;
  return value;
}

std::string json_string(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const u8 octet = static_cast<u8>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (octet < 0x20) {
      quoted += "\\u00";
      quoted += kHex[octet >> 4];
      quoted += kHex[octet & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace verbena::transfer
