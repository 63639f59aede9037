// Input: what comes in on the sockets of `verbena stats`: a question, an answer, or a name.
#include <string_view>

#include "host/stats/snapshot.h"
#include "host/stats/stats_name.h"
#include "tests/fuzz/fuzz.h"

namespace verbena::host {
namespace {

void check_question(std::span<const u8> in) {
  const std::optional<StatsQuestion> question = StatsQuestion::decode(in);
  if (question) CHECK(StatsQuestion::decode(question->encode()) == question);
}

void check_answer(std::span<const u8> in) {
  const std::optional<StatsAnswer> answer = StatsAnswer::decode(in);
  if (!answer) return;
  CHECK(answer->qps.size() <= StatsAnswer::kMaxQPs);
  CHECK(StatsAnswer::decode(answer->encode()).has_value());
}

void check_name(std::string_view text) {
  if (const std::optional<StatsName> name = StatsName::parse(text))
    CHECK(name->to_string() == text);
}

// A valid answer with the input laid over it, so that more of it is looked at.
void check_damaged_answer(std::span<const u8> in) {
  StatsAnswer answer{.nonce = 1, .adapter = {}, .qps = {}, .objects = {}};
  answer.qps.resize(2);
  std::vector<u8> bytes = answer.encode();
  for (std::size_t i = 0; i + 2 < in.size(); i += 3)
    bytes[(u32{in[i]} << 8 | in[i + 1]) % bytes.size()] ^= in[i + 2];
  check_answer(bytes);
}

}  // namespace
}  // namespace verbena::host

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbena::host;
  check_question({data, size});
  check_answer({data, size});
  check_damaged_answer({data, size});
  check_name({reinterpret_cast<const char*>(data), size});
  return 0;
}
