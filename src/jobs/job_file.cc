#include "jobs/job_file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collectives/make_schedule.h"
#include "fabric/scenario/other_technologies.h"
#include "fabric/scenario/parts.h"
#include "fabric/scenario/settings.h"
#include "jobs/chakra/section.h"
#include "jobs/cluster_section.h"
#include "jobs/loading/loading_section.h"
#include "jobs/presets.h"
#include "jobs/serving/serving_section.h"
#include "jobs/step_sections.h"
#include "jobs/storage/storage_section.h"

namespace verbena::jobs {
namespace {

using collectives::Algorithm;
using collectives::Operation;
using collectives::Shape;
using fabric::Section;

constexpr u64 kChunk = 512 * 1024;  // NCCL: NCCL_BUFFSIZE of 4 MiB in NCCL_STEPS, 8

std::vector<std::string_view> names_of_operations() {
  std::vector<std::string_view> names;
  for (const Operation operation : collectives::kOperations) names.push_back(name_of(operation));
  return names;
}

std::string list_of(const std::vector<std::string_view>& words) {
  return fabric::one_of({words.begin(), words.end()});
}

Operation read_operation(Section& section) {
  const std::string word = section.text("operation", "all reduce");
  const std::optional<Operation> operation = collectives::operation_named(word);
  if (!operation)
    section.complain("operation",
                     fmt::format("'{}' is none of {}", word, list_of(names_of_operations())));
  return operation.value_or(Operation::kAllReduce);
}

// The longest message that a schedule of this shape has, or somewhat more.
u64 longest_message(const Shape& shape) {
  switch (shape.algorithm) {
    case Algorithm::kRing:
    case Algorithm::kRailRing:
    case Algorithm::kTree:
    case Algorithm::kDoubleTree:
    case Algorithm::kHierarchical:
    case Algorithm::kHierarchicalTree: return shape.chunk_bytes;
    case Algorithm::kHalvingDoubling: return shape.bytes;
    case Algorithm::kDirect:
      return shape.operation == Operation::kAllToAll ? shape.bytes / shape.ranks : shape.bytes;
    case Algorithm::kRailDirect: return shape.bytes / shape.nodes();
  }
  CHECK_UNREACHABLE();
}

std::string refusal_of(const Shape& shape) {
  const std::string refusal = collectives::refusal(shape);
  if (!refusal.empty() || longest_message(shape) <= fabric::ConnectionConfig::kMaxMessageBytes)
    return refusal;
  return fmt::format("{} has messages of more than 1 GiB here", name_of(shape.algorithm));
}

// A list, or one text with commas, as --set has it.
std::vector<std::string> read_words(Section& section, std::string_view key) {
  std::vector<std::string> words;
  for (const std::string& text : section.texts(key))
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      words.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  return words;
}

// Returns the shapes of the requested algorithms, or of all algorithms if none is requested.
std::vector<Shape> read_algorithms(Section& section, Shape shape) {
  std::vector<Shape> shapes;
  std::vector<std::string> words = read_words(section, "algorithm");
  if (words.size() == 1 && words[0] == "all") words.clear();
  for (const std::string& word : words) {
    const std::optional<Algorithm> algorithm = collectives::algorithm_named(word);
    if (algorithm) {
      shape.algorithm = *algorithm;
      shapes.push_back(shape);
      if (const std::string refusal = refusal_of(shape); !refusal.empty())
        section.complain("algorithm", refusal);
      continue;
    }
    std::vector<std::string_view> names;
    for (const Algorithm known : collectives::kAlgorithms) names.push_back(name_of(known));
    section.complain("algorithm", fmt::format("'{}' is none of all, {}", word, list_of(names)));
  }
  if (!words.empty()) return shapes;
  std::string refusal;
  for (const Algorithm algorithm : collectives::kAlgorithms) {
    shape.algorithm = algorithm;
    refusal = refusal_of(shape);
    if (refusal.empty()) shapes.push_back(shape);
  }
  if (shapes.empty()) section.complain("algorithm", refusal);
  return shapes;
}

// A topology with rails has as many as its nodes have GPUs.
u32 rails_of(Section topology) {
  const std::string kind = topology.text("kind", "");
  if (kind.starts_with("rail"))
    return static_cast<u32>(topology.count("rails", 8, 1, kMostGPUsOfNode));
  return kind.starts_with("dual") ? static_cast<u32>(topology.count("rails", 1, 1, kMostGPUsOfNode))
                                  : 1;
}

// Returns as many channels as NCCL uses. Rings and trees: one for each NIC of the node, at least
// two. Messages between pairs: enough that a rank exchanges messages with many peers at the same
// time (NCCL runs them in batches of eight peers, on two channels for each:
// NCCL_NCHANNELS_PER_NET_PEER).
u32 usual_channels(const Shape& shape) {
  const bool goes_by_pairs = shape.operation == collectives::Operation::kAllToAll ||
                             shape.operation == collectives::Operation::kSendReceive;
  return std::max(goes_by_pairs ? 16u : 2u, shape.ranks_per_node);
}

void read_collective(Section section, u32 rails, Job& job) {
  Shape shape;
  shape.operation = read_operation(section);
  read_cluster(section, rails, job);
  shape.ranks = job.cluster.ranks();
  shape.ranks_per_node = job.cluster.gpus_per_node;
  shape.element_bytes = static_cast<u32>(section.bytes("element", 4, 1));
  shape.bytes = section.bytes("size", 16u << 20, 1);
  shape.channels = static_cast<u32>(
      section.count("channels", usual_channels(shape), 1, collectives::kMaxChannels));
  shape.chunk_bytes = section.bytes("chunk", kChunk, 1);
  if (shape.chunk_bytes > fabric::ConnectionConfig::kMaxMessageBytes)
    section.complain("chunk", "a message has 1 GiB at most");
  shape.root = static_cast<u32>(section.count("root", 0, 0, shape.ranks - 1));
  if (shape.element_bytes > 4096 || shape.bytes % shape.element_bytes != 0)
    section.complain("size", fmt::format("{} bytes are no whole number of elements of {}",
                                         shape.bytes, shape.element_bytes));
  job.has_usual_channels = !section.has("channels");
  read_run(section, job.run);
  read_method(section, job);
  job.shapes = read_algorithms(section, shape);
  section.done();
}

// Copies to `to` the entries of `from` that `to` lacks.
void fill_in(YAML::Node to, const YAML::Node& from) {
  for (const auto& entry : from) {
    const std::string key = entry.first.Scalar();
    if (!to[key].IsDefined())
      to[key] = YAML::Clone(entry.second);
    else if (to[key].IsMap() && entry.second.IsMap())
      fill_in(to[key], entry.second);
  }
}

// The keys of the sections that describe the GPUs' work.
constexpr std::array<std::string_view, 6> kSections = {"collective", "training", "inference",
                                                       "chakra",     "serving",  "loading"};

std::string section_of(const YAML::Node& root) {
  for (const std::string_view name : kSections)
    if (root[std::string(name)].IsDefined()) return std::string(name);
  return "collective";
}

// Moves the preset's description of the GPUs from `collective` to the job's section.
YAML::Node fitted(YAML::Node preset, const std::string& section) {
  if (section == "collective") return preset;
  preset[section] = preset["collective"];
  preset.remove("collective");
  return preset;
}

void read_preset(Section& root, YAML::Node node) {
  const std::string name = root.text("preset", "");
  if (name.empty()) return;
  if (const Preset* const preset = preset_named(name); preset != nullptr)
    return fill_in(node, fitted(YAML::Load(std::string(preset->yaml)), section_of(node)));
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  root.complain("preset", fmt::format("'{}' is none of {}", name, fabric::one_of(names)));
}

// Replaces the key `preset` by the settings of the preset. Returns the preset's name, or "" if the
// file has no preset, or an unknown one, which stays.
std::string write_out_preset(YAML::Node root) {
  fabric::Reading reading("");
  Section section(reading, root, {});
  const std::string name = section.text("preset", "");
  if (preset_named(name) == nullptr) return "";
  read_preset(section, root);
  root.remove("preset");
  return name;
}

HostPathConfig read_host_path(Section section, fabric::Technology technology) {
  std::vector<std::string_view> names = {"none"};
  for (const HostPathKind kind : kHostPathKinds) names.push_back(model_of(kind).name);
  HostPathConfig path;
  const std::size_t choice = section.choice("kind", 0, names);
  path.cores = static_cast<u32>(section.count("cores", path.cores, 1, 1024));
  section.done();
  if (choice == 0) return path;
  path.kind = kHostPathKinds[choice - 1];
  if (model_of(*path.kind).is_tcp != (technology == fabric::Technology::kTCP))
    section.complain("kind",
                     fmt::format("{} is no way for {}", names[choice], name_of(technology)));
  return path;
}

// A way of the host for others; `none` is for all.
void leave_out_path(fabric::Technology technology, const YAML::Node& root,
                    std::vector<std::string>& left_out) {
  const YAML::Node hosts = root["hosts"];
  if (!hosts.IsDefined() || !hosts.IsMap() || !hosts["path"].IsDefined()) return;
  const YAML::Node path = hosts["path"].IsMap() ? hosts["path"]["kind"] : hosts["path"];
  for (const HostPathKind kind : kHostPathKinds)
    if (path.IsDefined() && path.IsScalar() && path.Scalar() == model_of(kind).name &&
        model_of(kind).is_tcp != (technology == fabric::Technology::kTCP))
      return fabric::leave_out(hosts, "hosts.path", left_out);
}

// Reads one of the sections. The others are unknown keys beside it.
void read_work(Section& root, const std::string& name, const fabric::FileReader& read_file,
               Job& job) {
  const u32 rails = rails_of(root.section("topology", "kind"));
  if (name == "training") return read_training(root.section(name), rails, job);
  if (name == "chakra") return read_chakra(root.section(name, "traces"), rails, read_file, job);
  if (name == "loading") return read_loading(root.section(name), rails, job);
  if (name == "serving") return read_serving(root.section(name, "trace"), rails, read_file, job);
  if (name == "inference") return read_inference(root.section(name), rails, job);
  read_collective(root.section(name, "operation"), rails, job);
}

Job read(fabric::Reading& reading, const YAML::Node& node, const fabric::FileReader& read_file) {
  Section root(reading, node, {});
  read_preset(root, node);
  Job job;
  job.preset = root.text("preset", "");
  job.network.seed = root.count("seed", 1, 0, ~u64{0});
  job.network.technology = read_technology(root);
  job.expectations = fabric::read_expectations(root);
  const fabric::PlanLinks links = read_links(root.section("links"));
  std::optional<fabric::Plan> plan =
      read_topology(root.section("topology", "kind"), links, read_file);
  if (plan) {
    job.plan = *std::move(plan);
    Section hosts = root.section("hosts");
    job.says_host_path = hosts.has("path");
    job.run.host_path = read_host_path(hosts.section("path", "kind"), job.network.technology);
    read_fabric(root, std::move(hosts), job.plan, job.network);
    fabric::read_faults(root, job.plan, job.network);
    read_work(root, section_of(node), read_file, job);
    if (root.has("storage")) read_storage(root.section("storage", "servers"), job);
  } else {
    for (const char* const key : {"hosts", "tcp", "switch", "infiniband", "faults", "storage"})
      (void)root.has(key);
    for (const std::string_view key : kSections) (void)root.has(key);
  }
  root.done();
  return job;
}

tl::unexpected<fabric::InputError> wrong(const std::string& what) {
  return tl::unexpected(fabric::InputError{what});
}

}  // namespace

bool is_job(const std::string& text) {
  try {
    const YAML::Node root = YAML::Load(text);
    return root.IsMap() &&
           (root["preset"].IsDefined() || std::ranges::any_of(kSections, [&](std::string_view key) {
              return root[std::string(key)].IsDefined();
            }));
  } catch (const YAML::Exception&) {
    return false;
  }
}

std::string without_preset(const std::string& text) {
  const YAML::Node root = YAML::Load(text);
  return write_out_preset(root).empty() ? text : YAML::Dump(root) + "\n";
}

std::string section_of_job(const std::string& text) { return section_of(YAML::Load(text)); }

fabric::Parsed<Job> read_job(const std::string& name, const std::string& text,
                             const std::vector<fabric::Setting>& settings,
                             const fabric::FileReader& read_file) {
  CHECK(is_job(text));
  const YAML::Node root = YAML::Load(text);
  std::vector<std::string> left_out;
  const std::optional<fabric::Technology> technology = fabric::technology_given(settings);
  for (const fabric::Setting& setting :
       technology ? fabric::settings_for(*technology, settings, left_out) : settings) {
    fabric::Reading known(name);
    (void)read(known, root, read_file);
    if (const fabric::Parsed<void> done = apply(setting, known, root); !done)
      return tl::unexpected(done.error());
  }
  std::string preset;
  if (technology) {
    preset = write_out_preset(root);
    fabric::leave_out_others(*technology, root, left_out);
    leave_out_path(*technology, root, left_out);
  }
  fabric::Reading reading(name);
  Job job = read(reading, root, read_file);
  job.left_out = left_out;
  if (!preset.empty()) job.preset = preset;
  if (const std::optional<std::string> mistake = reading.mistake()) return wrong(*mistake);
  job.text = settings.empty() ? text : YAML::Dump(root) + "\n";
  return job;
}

}  // namespace verbena::jobs
