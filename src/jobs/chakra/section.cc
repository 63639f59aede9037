#include "jobs/chakra/section.h"

#include <fmt/format.h>

#include "jobs/chakra/import.h"
#include "jobs/cluster_section.h"
#include "jobs/step_sections.h"

namespace verbena::jobs {
namespace {

constexpr std::string_view kRank = "{rank}";

// "dir/name.{rank}.et"; or as ASTRA-sim has it, "dir/name" of "dir/name.0.et".
std::string file_of(std::string pattern, u32 rank) {
  if (pattern.find(kRank) == std::string::npos) pattern += fmt::format(".{}.et", kRank);
  return pattern.replace(pattern.find(kRank), kRank.size(), std::to_string(rank));
}

// Returns the traces of all ranks, or none if one of them has an error.
std::vector<chakra::Trace> read_traces(fabric::Section& section, u32 ranks,
                                       const fabric::FileReader& read_file) {
  const std::string pattern = section.text("traces", "");
  const chakra::Dependencies which = section.on("control_dependencies", false)
                                         ? chakra::Dependencies::kDataAndControl
                                         : chakra::Dependencies::kData;
  std::vector<chakra::Trace> traces;
  if (pattern.empty()) section.complain("traces", "missing: as traces/name.{rank}.et");
  for (u32 rank = 0; rank < ranks && !pattern.empty(); ++rank) {
    const std::string file = file_of(pattern, rank);
    const fabric::Parsed<std::string> bytes = read_file(file);
    if (!bytes) {
      section.complain("traces",
                       fmt::format("{} (there are {} GPUs)", bytes.error().message, ranks));
      return {};
    }
    fabric::Parsed<chakra::Trace> trace = chakra::read_trace(file, *bytes, rank, which);
    if (!trace) {
      section.complain("traces", trace.error().message);
      return {};
    }
    traces.push_back(*std::move(trace));
  }
  return traces;
}

chakra::ProcessGroups read_process_groups(fabric::Section& section,
                                          const fabric::FileReader& read_file) {
  const std::string file = section.text("groups", "");
  if (file.empty()) return {};
  const fabric::Parsed<std::string> text = read_file(file);
  if (!text) {
    section.complain("groups", text.error().message);
    return {};
  }
  fabric::Parsed<chakra::ProcessGroups> groups = chakra::read_groups(file, *text);
  if (groups) return *std::move(groups);
  section.complain("groups", groups.error().message);
  return {};
}

}  // namespace

void read_chakra(fabric::Section section, u32 rails, const fabric::FileReader& read_file,
                 Job& job) {
  read_cluster(section, rails, job);
  ImportedJob& imported = job.imported.emplace();
  imported.gpu = read_gpu(section.section("gpu", "name"));
  job.cutting = read_cutting(section);
  read_run(section, job.run);
  read_method(section, job);
  const std::vector<chakra::Trace> traces = read_traces(section, job.cluster.ranks(), read_file);
  const chakra::ProcessGroups groups = read_process_groups(section, read_file);
  section.done();
  if (traces.empty()) return;
  for (const chakra::Trace& trace : traces) imported.nodes += trace.nodes.size();
  fabric::Parsed<ProgramParts> parts =
      chakra::import_traces(traces, groups, imported.gpu, job.cluster.gpus_per_node, job.cutting);
  if (parts)
    imported.parts = *std::move(parts);
  else
    section.complain("traces", parts.error().message);
}

}  // namespace verbena::jobs
