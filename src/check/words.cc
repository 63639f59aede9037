#include "check/words.h"

#include <charconv>

#include "transport/qp_state_name.h"

namespace verbena::check {

std::string hex(u64 number) {
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, 16);
  return "0x" + std::string(digits, end);
}

std::string words_of(QPN qpn) { return "QP " + hex(qpn.value); }

std::string words_of(QPState state) { return std::string(verbs_name_of(state)); }

std::string words_of(const Region& region) {
  return "region of " + std::to_string(region.length) + " bytes at " +
         hex(reinterpret_cast<u64>(region.memory));
}

std::string words_of(const Work& work) {
  std::string words = "wr_id " + hex(work.wr_id) + ", " + std::to_string(work.bytes) + " bytes";
  if (!work.list.empty()) words += " at " + hex(work.list[0].address);
  return words;
}

}  // namespace verbena::check
