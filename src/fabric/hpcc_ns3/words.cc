#include "fabric/hpcc_ns3/words.h"

#include <fmt/format.h>

namespace verbena::fabric {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

}  // namespace

std::optional<std::string_view> Words::next() {
  while (at_ < text_.size() && kBlanks.find(text_[at_]) != std::string_view::npos)
    line_ += text_[at_++] == '\n' ? 1 : 0;
  word_line_ = line_;
  if (at_ == text_.size()) return std::nullopt;
  const std::size_t end = std::min(text_.find_first_of(kBlanks, at_), text_.size());
  const std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

std::string_view Words::rest_of_line() {
  const std::size_t end = std::min(text_.find('\n', at_), text_.size());
  const std::string_view rest = text_.substr(at_, end - at_);
  at_ = end;
  return rest;
}

tl::unexpected<InputError> Words::error(std::string_view what) const {
  return tl::unexpected(InputError{fmt::format("{}:{}: {}", name_, word_line_, what)});
}

}  // namespace verbena::fabric
