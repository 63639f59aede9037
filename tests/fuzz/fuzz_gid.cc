// Input: the text of a GID; its first 16 bytes are also taken as a GID.
#include <algorithm>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "wire/ib/gid.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using verbena::GID;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const std::optional<GID> gid = GID::parse(text)) CHECK(GID::parse(gid->to_string()) == gid);
  GID raw;
  if (size < raw.bytes.size()) return 0;
  std::copy_n(data, raw.bytes.size(), raw.bytes.begin());
  CHECK(GID::parse(raw.to_string()) == raw);
  return 0;
}
