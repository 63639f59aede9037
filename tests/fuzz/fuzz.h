// The common part of the fuzz targets. A target is one file fuzz_NAME.cc with
// LLVMFuzzerTestOneInput; corpus/fuzz_NAME/ holds its seeds. A broken property is a CHECK.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/types.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace verbena::fuzz {

// Checks that a header which decodes also encodes, and decodes to the same again, and that a short
// input does not decode.
template <typename Header>
void check_header(std::span<const u8> in) {
  const std::optional<Header> header = Header::decode(in);
  if (!header) return;
  CHECK(in.size() >= Header::kSize);
  std::array<u8, Header::kSize> bytes{};
  header->encode(bytes);
  CHECK(Header::decode(bytes) == header);
  CHECK(Header::decode(in.first(Header::kSize)) == header);
  CHECK(!Header::decode(in.first(Header::kSize - 1)));
}

}  // namespace verbena::fuzz
