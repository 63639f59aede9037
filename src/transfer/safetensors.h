// The header of a safetensors file, and headers that are written.
//
//   8 bytes: N, little endian | N bytes: JSON | the data of all tensors, without holes
//
// A file is accepted only if every byte of its data belongs to one tensor, whose type and shape
// say as many bytes: so a file that is cut short or lies is refused before anything is read of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/list.h"

namespace verbena::transfer {

struct Tensor {
  std::string name{};
  std::string type{};  // "BF16", "F32", ...
  u32 element_bits = 0;
  std::vector<u64> shape{};
  u64 offset = 0;  // in the file
  u64 bytes = 0;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct SafetensorsHeader {
  static constexpr u64 kMaxBytes = u64{100} << 20;  // of the JSON; the format's own limit
  static constexpr u64 kPrefixBytes = 8;

  u64 data_offset = 0;            // in the file
  std::vector<Tensor> tensors{};  // by offset
  std::map<std::string, std::string> metadata{};

  // The length of the JSON. `prefix`: the first 8 bytes of a file of that size.
  [[nodiscard]] static Expected<u64> json_bytes(std::string_view prefix, u64 file_bytes);
  [[nodiscard]] static Expected<SafetensorsHeader> parse(std::string_view json, u64 file_bytes);
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

// Prefix and JSON of a file with these tensors, one behind the other; sets their offsets.
[[nodiscard]] std::string make_safetensors_header(
    std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata);

// A part of a tensor for one of `parts` ranks.
struct Slice {
  enum class Axis : u8 { kWhole, kRows, kColumns };  // the first dimension; the second one
  Axis axis = Axis::kWhole;
  u32 part = 0, parts = 1;
};

// A tensor's slice: its shape and size, and where its bytes are: `count` runs of `run` bytes,
// each `stride` after the one before, the first at `offset` of the file.
struct SliceLayout {
  Tensor tensor{};  // of the slice; offset 0
  u64 offset = 0, run = 0, stride = 0, count = 0;
};
// Fails if the dimension does not exist or is not divisible.
[[nodiscard]] Expected<SliceLayout> slice_of(const Tensor& tensor, const Slice& slice);

}  // namespace verbena::transfer
