// Refusal: why a step cannot be made of its settings, and which of them is to be changed.
#pragma once

#include <string>
#include <string_view>

namespace verbena::jobs {

struct Refusal {
  std::string_view key;  // of the section
  std::string what{};    // "": nothing is wrong
};

}  // namespace verbena::jobs
