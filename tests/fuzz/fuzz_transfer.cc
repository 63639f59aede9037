// Bytes from outside that transfers read: metadata, manifests, safetensors headers, traces. What
// is accepted is encoded to the same bytes again, and each tensor lies within its file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "transfer/manifest.h"
#include "transfer/metadata.h"
#include "transfer/request_trace.h"
#include "transfer/safetensors.h"

namespace {

using namespace verbena::transfer;  // NOLINT: all of it is under test

void require(bool condition) {
  if (!condition) std::abort();
}

void read_header(std::string_view json) {
  constexpr verbena::u64 kDataBytes = 64;
  const verbena::u64 file = SafetensorsHeader::kPrefixBytes + json.size() + kDataBytes;
  const auto header = SafetensorsHeader::parse(json, file);
  if (!header) return;
  for (const Tensor& tensor : header->tensors) {
    require(tensor.offset >= header->data_offset && tensor.offset + tensor.bytes <= file);
    for (const auto axis : {Slice::Axis::kRows, Slice::Axis::kColumns}) {
      const auto layout = slice_of(tensor, {.axis = axis, .part = 1, .parts = 2});
      if (layout && layout->count != 0 && layout->tensor.bytes != 0)
        require(layout->offset + (layout->count - 1) * layout->stride + layout->run <=
                tensor.offset + tensor.bytes);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto metadata = Metadata::decode(bytes)) require(metadata->encode() == bytes);
  if (const auto manifest = Manifest::decode(bytes)) require(manifest->encode() == bytes);
  (void)SafetensorsHeader::json_bytes(bytes, size);
  (void)RequestTrace::parse(bytes);
  read_header(bytes);
  return 0;
}
