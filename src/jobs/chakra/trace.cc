#include "jobs/chakra/trace.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include "collectives/make_schedule.h"
#include "jobs/chakra/execution_trace.pb.h"

namespace verbena::jobs::chakra {
namespace {

using collectives::Operation;
using google::protobuf::io::CodedInputStream;
using Kind = Node::Kind;

constexpr u64 kMostMicroseconds = 1'000'000'000'000;  // eleven days
constexpr u64 kMostOperations = u64{1} << 62;

// Reads a length and a message of that many bytes. Returns false if there is no such message.
bool read_message(CodedInputStream& in, google::protobuf::MessageLite& message) {
  u32 length = 0;
  if (!in.ReadVarint32(&length) || length > static_cast<u32>(in.BytesUntilLimit())) return false;
  const CodedInputStream::Limit outer = in.PushLimit(static_cast<int>(length));
  const bool is_good = message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  in.PopLimit(outer);
  return is_good;
}

// Accepts any integer type, because writers disagree about the types of attributes. Returns nullopt
// if there is no integer, or a negative one.
std::optional<u64> count_of(const wire::Attribute& attribute) {
  const auto if_positive = [](i64 value) {
    return value < 0 ? std::nullopt : std::optional(static_cast<u64>(value));
  };
  switch (attribute.value_case()) {
    case wire::Attribute::kInt32Value: return if_positive(attribute.int32_value());
    case wire::Attribute::kInt64Value: return if_positive(attribute.int64_value());
    case wire::Attribute::kSint32Value: return if_positive(attribute.sint32_value());
    case wire::Attribute::kSint64Value: return if_positive(attribute.sint64_value());
    case wire::Attribute::kSfixed32Value: return if_positive(attribute.sfixed32_value());
    case wire::Attribute::kSfixed64Value: return if_positive(attribute.sfixed64_value());
    case wire::Attribute::kUint32Value: return attribute.uint32_value();
    case wire::Attribute::kUint64Value: return attribute.uint64_value();
    case wire::Attribute::kFixed32Value: return attribute.fixed32_value();
    case wire::Attribute::kFixed64Value: return attribute.fixed64_value();
    case wire::Attribute::kBoolValue: return attribute.bool_value() ? 1 : 0;
    case wire::Attribute::kDoubleValue:
    case wire::Attribute::kFloatValue:
    case wire::Attribute::kStringValue:
    case wire::Attribute::VALUE_NOT_SET: return std::nullopt;
  }
  return std::nullopt;
}

// Attributes: the attributes of a node, looked up by name.
class Attributes {
 public:
  explicit Attributes(const wire::Node& node) : node_(node) {}

  [[nodiscard]] std::optional<u64> count(std::string_view name) const {
    const wire::Attribute* const attribute = find(name);
    return attribute == nullptr ? std::nullopt : count_of(*attribute);
  }
  // Groups are named by texts, or by their numbers.
  [[nodiscard]] std::string text(std::string_view name) const {
    const wire::Attribute* const attribute = find(name);
    if (attribute == nullptr) return "";
    if (attribute->value_case() == wire::Attribute::kStringValue) return attribute->string_value();
    const std::optional<u64> number = count_of(*attribute);
    return number ? std::to_string(*number) : "";
  }

 private:
  [[nodiscard]] const wire::Attribute* find(std::string_view name) const {
    for (const wire::Attribute& attribute : node_.attr())
      if (attribute.name() == name) return &attribute;
    return nullptr;
  }

  const wire::Node& node_;
};

std::optional<Kind> kind_of(const wire::Node& node) {
  switch (node.type()) {
    case wire::NONE:
    case wire::METADATA: return Kind::kNothing;
    case wire::MEMORY_LOAD:
    case wire::MEMORY_STORE: return Kind::kMemory;
    case wire::COMPUTE: return Kind::kComputes;
    case wire::SEND: return Kind::kSends;
    case wire::RECEIVE: return Kind::kReceives;
    case wire::COLLECTIVE: return Kind::kOperates;
    default: return std::nullopt;  // proto3 keeps numbers that it does not know
  }
}

std::optional<Operation> operation_of(u64 type) {
  switch (type) {
    case wire::ALL_REDUCE:
    case wire::BARRIER: return Operation::kAllReduce;
    case wire::ALL_GATHER: return Operation::kAllGather;
    case wire::BROADCAST: return Operation::kBroadcast;
    case wire::ALL_TO_ALL: return Operation::kAllToAll;
    case wire::REDUCE_SCATTER:
    case wire::REDUCE_SCATTER_BLOCK: return Operation::kReduceScatter;
    default: return std::nullopt;  // any number may come
  }
}

constexpr u64 kBarrierBytes = 4;  // one element, that all add to

// Returns the error, or "" if there is none.
std::string read_collective(const Attributes& attributes, Node& node) {
  const std::optional<u64> type = attributes.count("comm_type");
  if (!type) return "a collective operation without comm_type";
  node.operation = operation_of(*type);
  if (!node.operation)
    return fmt::format(
        "comm_type {} is not simulated: only AllReduce, AllGather, ReduceScatter, "
        "AllToAll, Broadcast and Barrier",
        *type);
  node.group = attributes.text("pg_name");
  node.root = attributes.count("comm_src");
  if (*type == wire::BARRIER) node.bytes = kBarrierBytes;
  if (*type != wire::BARRIER && !attributes.count("comm_size"))
    return "a collective operation without comm_size";
  return "";
}

std::string read_pair(const Attributes& attributes, u32 rank, Node& node) {
  const bool sends = node.kind == Kind::kSends;
  const std::string_view peer = sends ? "comm_dst" : "comm_src";
  const std::string_view own = sends ? "comm_src" : "comm_dst";
  if (!attributes.count(peer)) return fmt::format("a message without {}", peer);
  if (const u64 said = attributes.count(own).value_or(rank); said != rank)
    return fmt::format("{} is {}, in the trace of rank {}", own, said, rank);
  if (!attributes.count("comm_size")) return "a message without comm_size";
  node.peer = *attributes.count(peer);
  node.tag = attributes.count("comm_tag").value_or(0);
  return "";
}

std::string read_node(const wire::Node& from, u32 rank, Dependencies which, Node& node) {
  const Attributes attributes(from);
  node.id = from.id();
  node.name = from.name();
  const std::optional<Kind> kind = kind_of(from);
  if (!kind) return fmt::format("{} is no type of nodes", static_cast<int>(from.type()));
  node.kind = *kind;
  node.is_of_cpu = attributes.count("is_cpu_op").value_or(0) != 0;
  node.after.assign(from.data_deps().begin(), from.data_deps().end());
  if (which == Dependencies::kDataAndControl)
    node.after.insert(node.after.end(), from.ctrl_deps().begin(), from.ctrl_deps().end());
  if (from.duration_micros() > kMostMicroseconds) return "it lasts for more than eleven days";
  node.lasts = us(static_cast<i64>(from.duration_micros()));
  node.operations = attributes.count("num_ops").value_or(0);
  node.tensor_bytes = attributes.count("tensor_size").value_or(0);
  node.bytes = attributes.count("comm_size").value_or(0);
  if (std::max(node.operations, node.tensor_bytes) > kMostOperations)
    return "it computes more than 2^62 operations or bytes";
  if (node.bytes > collectives::kMaxBytes) return "comm_size: at most 1 TiB";
  // The CPU's part in communication is the call. Another node has the operation that the call
  // begins.
  if (node.is_of_cpu && node.kind != Kind::kNothing) node.kind = Kind::kComputes;
  if (node.kind == Kind::kOperates) return read_collective(attributes, node);
  if (node.kind == Kind::kSends || node.kind == Kind::kReceives)
    return read_pair(attributes, rank, node);
  return "";
}

}  // namespace

std::string place_of(const Trace& trace, const Node& node) {
  return fmt::format("{}: node {} ({}): ", trace.file, node.id, node.name);
}

fabric::Parsed<Trace> read_trace(std::string file, const std::string& bytes, u32 rank,
                                 Dependencies which) {
  Trace trace{.file = std::move(file), .nodes = {}, .groups = {}};
  const auto wrong = [](const std::string& what) {
    return tl::unexpected(fabric::InputError{what});
  };
  if (bytes.size() > kMostBytes) return wrong(trace.file + ": more than 1 GiB");
  if (bytes.starts_with("\x1f\x8b")) return wrong(trace.file + ": compressed; gunzip it first");
  CodedInputStream in(reinterpret_cast<const u8*>(bytes.data()), static_cast<int>(bytes.size()));
  const CodedInputStream::Limit whole = in.PushLimit(static_cast<int>(bytes.size()));
  wire::GlobalMetadata metadata;
  if (!read_message(in, metadata))
    return wrong(trace.file + ": no execution trace: it does not begin with GlobalMetadata");
  while (in.BytesUntilLimit() > 0) {
    const int at = in.CurrentPosition();
    wire::Node message;
    if (!read_message(in, message))
      return wrong(fmt::format("{}: no node at byte {}, behind {} nodes", trace.file, at,
                               trace.nodes.size()));
    if (trace.nodes.size() == kMostNodes)
      return wrong(fmt::format("{}: more than {} nodes", trace.file, kMostNodes));
    Node& node = trace.nodes.emplace_back();
    if (const std::string what = read_node(message, rank, which, node); !what.empty())
      return wrong(place_of(trace, node) + what);
    if (message.type() != wire::METADATA || !message.has_inputs()) continue;
    if (auto groups = groups_of_pytorch(message.inputs().values())) trace.groups.merge(*groups);
  }
  in.PopLimit(whole);
  return trace;
}

}  // namespace verbena::jobs::chakra
