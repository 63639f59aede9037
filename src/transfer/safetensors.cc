#include "transfer/safetensors.h"

#include <algorithm>
#include <optional>

#include "transfer/fields.h"
#include "transfer/json.h"

namespace verbena::transfer {
namespace {

struct ElementType {
  std::string_view name;
  u32 bits;
};
constexpr ElementType kElementTypes[] = {
    {"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},    {"BF16", 16},
    {"I32", 32},    {"U32", 32}, {"F32", 32}, {"F64", 64},    {"I64", 64},
    {"U64", 64},    {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kMaxDimensions = 32;
constexpr u64 kAlignment = 8;  // of the data

tl::unexpected<std::string> lies(const std::string& why) {
  return tl::unexpected("the safetensors header is wrong: " + why);
}

// Returns nullopt if the number exceeds 64 bits.
std::optional<u64> bits_of(const Tensor& tensor) {
  u64 bits = tensor.element_bits;
  for (const u64 dimension : tensor.shape)
    if (__builtin_mul_overflow(bits, dimension, &bits)) return std::nullopt;
  return bits;
}

Expected<Tensor> read_tensor(const std::string& name, const JSON& value, u64 data_bytes) {
  const std::string whose = "tensor " + name;
  const JSON* const type = value.find("dtype");
  const JSON* const shape = value.find("shape");
  const JSON* const offsets = value.find("data_offsets");
  if (value.members.size() != 3 || type == nullptr || shape == nullptr || offsets == nullptr)
    return lies(whose + " has not just dtype, shape and data_offsets");
  Tensor tensor{.name = name, .type = type->text};
  for (const ElementType& known : kElementTypes)
    if (type->is(JSON::Type::kString) && known.name == type->text) tensor.element_bits = known.bits;
  if (tensor.element_bits == 0) return lies(whose + " has the unknown dtype " + type->text);
  if (!shape->is(JSON::Type::kArray) || shape->items.size() > kMaxDimensions)
    return lies(whose + " has no shape");
  for (const JSON& item : shape->items) {
    const auto dimension = item.whole();
    if (!dimension) return lies(whose + " has a dimension that is no number");
    tensor.shape.push_back(*dimension);
  }
  if (!offsets->is(JSON::Type::kArray) || offsets->items.size() != 2)
    return lies(whose + " has not two data_offsets");
  const auto begin = offsets->items[0].whole(), end = offsets->items[1].whole();
  if (!begin || !end || *begin > *end) return lies(whose + " has impossible data_offsets");
  if (*end > data_bytes)
    return lies(whose + " ends at byte " + std::to_string(*end) + " of the data, but there are " +
                std::to_string(data_bytes) + ": the file is cut short");
  tensor.offset = *begin;
  tensor.bytes = *end - *begin;
  const auto bits = bits_of(tensor);
  if (!bits || *bits % 8 != 0 || *bits / 8 != tensor.bytes)
    return lies(whose + " has a shape that does not fit its data_offsets");
  return tensor;
}

}  // namespace

Expected<u64> SafetensorsHeader::json_bytes(std::string_view prefix, u64 file_bytes) {
  FieldReader reader(prefix);
  const u64 bytes = reader.get<u64>();
  if (!reader.is_good() || file_bytes < kPrefixBytes)
    return tl::unexpected<std::string>("the file is shorter than a safetensors header");
  if (bytes > kMaxBytes) return lies("it says to have " + std::to_string(bytes) + " bytes");
  if (bytes > file_bytes - kPrefixBytes)
    return lies("it says to have " + std::to_string(bytes) + " bytes, the file has " +
                std::to_string(file_bytes));
  return bytes;
}

Expected<SafetensorsHeader> SafetensorsHeader::parse(std::string_view json, u64 file_bytes) {
  if (json.empty() || json.front() != '{') return lies("it does not begin with {");
  const auto document = JSON::parse(json);
  if (!document) return lies(document.error());
  SafetensorsHeader header;
  header.data_offset = kPrefixBytes + json.size();
  if (header.data_offset > file_bytes) return lies("it is longer than the file");
  const u64 data_bytes = file_bytes - header.data_offset;
  for (const auto& [name, value] : document->members) {
    if (name == kMetadataKey) {
      for (const auto& [key, text] : value.members) {
        if (!text.is(JSON::Type::kString)) return lies("__metadata__ has a value that is no text");
        header.metadata[key] = text.text;
      }
      continue;
    }
    auto tensor = read_tensor(name, value, data_bytes);
    if (!tensor) return tl::unexpected(tensor.error());
    header.tensors.push_back(std::move(*tensor));
  }
  std::ranges::sort(header.tensors, [](const Tensor& a, const Tensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  u64 end = 0;
  for (Tensor& tensor : header.tensors) {
    if (tensor.offset != end)
      return lies("tensor " + tensor.name +
                  (tensor.offset < end ? " overlaps the one before" : " has a hole before it"));
    end += tensor.bytes;
    tensor.offset += header.data_offset;
  }
  if (end != data_bytes)
    return lies(std::to_string(data_bytes - end) + " bytes of the data belong to no tensor");
  return header;
}

const Tensor* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::string make_safetensors_header(std::vector<Tensor>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  const auto add = [&](const std::string& key, const std::string& value) {
    json += (json.size() > 1 ? "," : "") + json_string(key) + ":" + value;
  };
  if (!metadata.empty()) {
    std::string texts;
    for (const auto& [key, text] : metadata)
      texts += (texts.empty() ? "" : ",") + json_string(key) + ":" + json_string(text);
    add(std::string(kMetadataKey), "{" + texts + "}");
  }
  u64 end = 0;
  for (Tensor& tensor : tensors) {
    std::string shape;
    for (const u64 dimension : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(dimension);
    tensor.offset = end;
    end += tensor.bytes;
    add(tensor.name, "{\"dtype\":" + json_string(tensor.type) + ",\"shape\":[" + shape +
                         "],\"data_offsets\":[" + std::to_string(tensor.offset) + "," +
                         std::to_string(end) + "]}");
  }
  json += "}";
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  for (Tensor& tensor : tensors) tensor.offset += SafetensorsHeader::kPrefixBytes + json.size();
  return FieldWriter().put(u64{json.size()}).bytes() + json;
}

Expected<SliceLayout> slice_of(const Tensor& tensor, const Slice& slice) {
  SliceLayout layout{.tensor = tensor,
                     .offset = tensor.offset,
                     .run = tensor.bytes,
                     .stride = tensor.bytes,
                     .count = 1};
  layout.tensor.offset = 0;
  if (slice.axis == Slice::Axis::kWhole || slice.parts == 1) return layout;
  const std::size_t axis = slice.axis == Slice::Axis::kRows ? 0 : 1;
  const char* const word = axis == 0 ? " rows" : " columns";
  if (tensor.shape.size() <= axis)
    return tl::unexpected("tensor " + tensor.name + " has no" + word);
  u64& dimension = layout.tensor.shape[axis];
  if (dimension % slice.parts != 0)
    return tl::unexpected("tensor " + tensor.name + ": " + std::to_string(dimension) + word +
                          " do not divide by " + std::to_string(slice.parts));
  dimension /= slice.parts;
  layout.count = axis == 0 ? 1 : tensor.shape[0];
  layout.tensor.bytes = tensor.bytes / slice.parts;
  if (layout.count == 0 || layout.tensor.bytes == 0) return layout;
  layout.stride = tensor.bytes / layout.count;
  layout.run = layout.tensor.bytes / layout.count;
  if (layout.run * slice.parts != layout.stride)
    return tl::unexpected("tensor " + tensor.name + ": a part of its" + word +
                          " is no whole number of bytes");
  layout.offset += layout.run * slice.part;
  return layout;
}

}  // namespace verbena::transfer
