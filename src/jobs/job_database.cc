// results.sqlite of a job.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "fabric/results/network_tables.h"
#include "jobs/job_results.h"

namespace verbena::jobs {
namespace {

using Rows = fabric::SQLiteFile::Rows;

constexpr u64 kMostProgressRows = 1'000'000;  // of a run; more: only when lanes ended

// A run packet by packet, by the name that its rows have.
struct NamedRun {
  std::string_view name;
  const PacketResult* packets;
};

std::vector<NamedRun> runs_of(const JobResults& results) {
  std::vector<NamedRun> runs;
  if (results.step && results.step->packets.record)
    runs.push_back({"step", &results.step->packets});
  for (const CollectiveResult& result : results.collectives)
    if (result.by_packets && result.by_packets->record)
      runs.push_back({name_of(result.shape.algorithm), &*result.by_packets});
  return runs;
}

std::string_view kind_of(const Job& job) {
  if (job.imported) return "chakra";
  if (job.training) return "training";
  return job.inference ? "inference" : "collective";
}

class RunTable {
 public:
  explicit RunTable(fabric::SQLiteFile& file) : rows_(file, "run", "key TEXT PRIMARY KEY, value") {}

  void put(std::string_view key, auto value) { rows_.add(key).add(value).end(); }

 private:
  Rows rows_;
};

void put_step(RunTable& run, const StepResult& result) {
  const fabric::Counters& counters = result.packets.counters;
  run.put("step_ps", result.time().ps());
  if (result.flow_time) run.put("flow_level_ps", result.flow_time->ps());
  run.put("computing_ps", result.mean.all_computing().ps());
  if (result.packets.messages == 0) return;
  run.put("messages", result.packets.messages);
  run.put("network_bytes", result.packets.network_bytes);
  run.put("nvlink_bytes", result.packets.nvlink_bytes);
  run.put("link_hops", counters.hops);
  run.put("events", counters.events);
  run.put("marks", counters.marks);
  run.put("pauses", counters.pauses);
  run.put("drops", counters.drops);
  run.put("unroutable", counters.unroutable);
  run.put("lost_on_dead_links", counters.lost_on_dead_links);
  run.put("corrupted", counters.corrupted);
}

void write_run(fabric::SQLiteFile& file, const Job& job, const JobResults& results) {
  RunTable run(file);
  run.put("schema", i64{3});
  run.put("status", status_of(results));
  run.put("kind", kind_of(job));
  run.put("scenario", std::string_view(job.text));
  run.put("technology", name_of(job.network.technology));
  run.put("seed", job.network.seed);
  run.put("gpus", job.cluster.ranks());
  run.put("gpus_per_node", job.cluster.gpus_per_node);
  if (results.step && results.step->timeline) put_step(run, *results.step);
}

void write_summary(fabric::SQLiteFile& file, const Job& job, const JobResults& results) {
  Rows rows(file, "summary", "name TEXT PRIMARY KEY, value TEXT");
  for (const fabric::SummaryLine& line : lines_of(job, results))
    rows.add(line.name).add(line.value).end();
}

void write_gpus(fabric::SQLiteFile& file, const Cluster& cluster) {
  Rows rows(file, "gpus", "gpu INTEGER PRIMARY KEY, server INTEGER, node INTEGER");
  for (u32 gpu = 0; gpu < cluster.ranks(); ++gpu)
    rows.add(gpu).add(gpu / cluster.gpus_per_node).add(cluster.nics[gpu]).end();
}

// Writes the parts of the time along the critical path.
void write_critical_path(fabric::SQLiteFile& file, const std::vector<NamedRun>& runs) {
  Rows rows(file, "critical_path", "part TEXT, ps INTEGER, algorithm TEXT");
  for (const NamedRun& run : runs) {
    const TimeSpent& spent = run.packets->spent;
    const auto put = [&](std::string_view part, Duration time) {
      rows.add(part).add(time.ps()).add(run.name).end();
    };
    put("computing", spent.computing);
    put("NVLink", spent.nvlink);
    put("sending", spent.sending);
    put("distance", spent.distance);
    put("waiting", spent.waiting);
    put("overhead", spent.overhead);
    put("host", spent.host);
  }
}

void add_progress(Rows& rows, const NamedRun& run) {
  const RunRecord& record = *run.packets->record;
  const u64 all = u64{record.ranks()} * record.lanes() * ProgressLog::kParts;
  const u32 first = all <= kMostProgressRows ? 1 : ProgressLog::kParts;
  for (u32 gpu = 0; gpu < record.ranks(); ++gpu)
    for (u32 lane = 0; lane < record.lanes(); ++lane)
      for (u32 part = first; part <= ProgressLog::kParts; ++part) {
        const Time at = record.progress().reached(gpu, lane, part);
        if (at != Time::never()) rows.add(gpu).add(lane).add(part).add(at.ps()).add(run.name).end();
      }
}

void add_message(Rows& rows, u32 gpu, const MessageLog::Message& message, const Cluster& cluster) {
  const ArrivedMessage& what = message.what;
  rows.add(what.from).add(gpu).add(what.lane).add(what.bytes);
  rows.add(std::string_view(cluster.share_a_node(what.from, gpu) ? "NVLink" : "network"));
  rows.add(what.posted.ps()).add((what.posted + message.took).ps()).add(what.alone.ps());
}

void add_messages(Rows& rows, const NamedRun& run, const Cluster& cluster) {
  const RunRecord& record = *run.packets->record;
  for (u32 gpu = 0; gpu < record.ranks(); ++gpu)
    for (const MessageLog::Message& message : record.messages().of(gpu)) {
      add_message(rows, gpu, message, cluster);
      rows.add(message.took.seconds() / message.what.alone.seconds());
      rows.add(record.messages().each_stands_for(gpu)).add(run.name).end();
    }
}

void add_slowest(Rows& rows, const NamedRun& run, const Cluster& cluster) {
  const RunRecord& record = *run.packets->record;
  for (u32 gpu = 0; gpu < record.ranks(); ++gpu)
    for (const MessageLog::Message& message : record.messages().slowest_of(gpu)) {
      add_message(rows, gpu, message, cluster);
      rows.add(run.name).end();
    }
}

void add_paths(Rows& rows, const NamedRun& run) {
  for (const LanePath& path : run.packets->record->paths())
    for (const fabric::PathHop& hop : path.hops)
      rows.add(path.from)
          .add(path.to)
          .add(path.lane)
          .add(hop.node)
          .add(hop.port)
          .add(run.name)
          .end();
}

// The network's tables, how far GPUs were when, and messages.
void write_runs(fabric::SQLiteFile& file, const Job& job, const std::vector<NamedRun>& runs) {
  write_plan(file, job.plan, runs.front().packets->record->network().ports());
  write_faults(file, listed(job.network.faults, runs.front().packets->record->network().ports()));
  write_gpus(file, job.cluster);
  write_critical_path(file, runs);
  Rows samples(file, "samples", "interval_ps INTEGER, end_ps INTEGER, algorithm TEXT");
  Rows progress(file, "progress",
                "gpu INTEGER, lane INTEGER, eighths INTEGER, time_ps INTEGER, algorithm TEXT");
  Rows messages(file, "messages",
                "source INTEGER, destination INTEGER, lane INTEGER, bytes INTEGER, way TEXT, "
                "posted_ps INTEGER, arrived_ps INTEGER, alone_ps INTEGER, slowdown REAL, "
                "stands_for INTEGER, algorithm TEXT");
  Rows slowest(file, "slowest_messages",
               "source INTEGER, destination INTEGER, lane INTEGER, bytes INTEGER, way TEXT, "
               "posted_ps INTEGER, arrived_ps INTEGER, alone_ps INTEGER, algorithm TEXT");
  Rows paths(file, "paths",
             "source INTEGER, destination INTEGER, lane INTEGER, node INTEGER, port INTEGER, "
             "algorithm TEXT");
  fabric::NetworkTables tables(file, "algorithm TEXT");
  for (const NamedRun& run : runs) {
    const RunRecord& record = *run.packets->record;
    samples.add(record.network().samples().interval().ps());
    samples.add(run.packets->time.ps()).add(run.name).end();
    if (run.name != "step") add_progress(progress, run);
    add_messages(messages, run, job.cluster);
    add_slowest(slowest, run, job.cluster);
    add_paths(paths, run);
    tables.add(record.network(), record.totals(), run.name);
  }
}

// NULL: it has not come to that.
void add_time(Rows& rows, Time time, bool is_known, Time begin) {
  is_known ? rows.add((time - begin).ps()) : rows.add_null();
}

void write_tasks(fabric::SQLiteFile& file, const StepResult& result) {
  Rows rows(file, "tasks",
            "gpu INTEGER, task INTEGER, name TEXT, purpose TEXT, operation INTEGER, "
            "begin_ps INTEGER, end_ps INTEGER");
  for (const auto& [rank, stands_for] : result.timeline->samples()) {
    const std::vector<Task>& tasks = result.program->tasks_of(rank);
    for (u32 i = 0; i < tasks.size(); ++i) {
      const Span& span = result.timeline->spans_of(rank)[i];
      rows.add(rank).add(i).add(std::string_view(tasks[i].name)).add(name_of(tasks[i].purpose));
      tasks[i].computes() ? rows.add_null() : rows.add(tasks[i].operation);
      const bool has_begun = span.begin != Time::never(), has_ended = span.end > result.begin;
      add_time(rows, span.begin, has_begun, result.begin);
      add_time(rows, span.end, has_begun && has_ended, result.begin);
      rows.end();
    }
  }
}

void write_operations(fabric::SQLiteFile& file, const StepResult& result) {
  Rows rows(file, "operations",
            "operation INTEGER, purpose TEXT, communicator TEXT, kind TEXT, algorithm TEXT, "
            "gpus INTEGER, bytes INTEGER, times INTEGER, waiting_ps INTEGER, mean_ps INTEGER, "
            "busbw REAL");
  for (const OperationTotal& total : result.operations) {
    const collectives::Shape& shape = result.program->shape_of(total.operation);
    rows.add(total.operation)
        .add(name_of(total.purpose))
        .add(std::string_view(result.program->communicator_of(total.operation).name()))
        .add(operation_of(shape))
        .add(algorithm_of(shape))
        .add(shape.ranks)
        .add(shape.bytes)
        .add(total.times)
        .add(total.waiting.ps())
        .add(total.mean.ps())
        .add(total.bus_bandwidth)
        .end();
  }
}

// Writes the parts of each GPU's time; at flow-level each GPU stands for those that did the same.
void write_accounts(fabric::SQLiteFile& file, const StepResult& result) {
  Rows rows(file, "accounts",
            "gpu INTEGER, purpose TEXT, computing_ps INTEGER, idle_ps INTEGER, stands_for INTEGER");
  for (const auto& [rank, stands_for] : result.timeline->samples()) {
    const Account account =
        account_of(*result.program, *result.timeline, rank, result.begin, result.end);
    for (std::size_t i = 0; i < kPurposes; ++i)
      if (account.computing[i] != Duration() || account.idle[i] != Duration())
        rows.add(rank)
            .add(name_of(static_cast<Purpose>(i)))
            .add(account.computing[i].ps())
            .add(account.idle[i].ps())
            .add(stands_for)
            .end();
  }
}

// Writes a row for each algorithm. Columns that only packets can fill are NULL at flow-level.
void write_collectives(fabric::SQLiteFile& file, const std::vector<CollectiveResult>& results) {
  Rows rows(file, "collectives",
            "operation TEXT, algorithm TEXT, gpus INTEGER, gpus_per_node INTEGER, bytes INTEGER, "
            "channels INTEGER, seconds REAL, algbw REAL, busbw REAL, flow_level_seconds REAL, "
            "computing_ps INTEGER, nvlink_ps INTEGER, sending_ps INTEGER, distance_ps INTEGER, "
            "waiting_ps INTEGER, overhead_ps INTEGER, host_ps INTEGER, messages INTEGER, "
            "network_bytes INTEGER, "
            "nvlink_bytes INTEGER, link_hops INTEGER, marks INTEGER, pauses INTEGER, "
            "drops INTEGER, mistake TEXT");
  for (const CollectiveResult& result : results) {
    const collectives::Shape& shape = result.shape;
    rows.add(name_of(shape.operation)).add(name_of(shape.algorithm)).add(shape.ranks);
    rows.add(shape.ranks_per_node).add(shape.bytes).add(shape.channels).add(result.seconds());
    rows.add(result.algorithm_bandwidth()).add(result.bus_bandwidth());
    result.flow_seconds ? rows.add(*result.flow_seconds) : rows.add_null();
    if (result.by_packets) {
      const TimeSpent& spent = result.by_packets->spent;
      for (const Duration part : {spent.computing, spent.nvlink, spent.sending, spent.distance,
                                  spent.waiting, spent.overhead, spent.host})
        rows.add(part.ps());
      const PacketResult& packets = *result.by_packets;
      for (const u64 count :
           {packets.messages, packets.network_bytes, packets.nvlink_bytes, packets.counters.hops,
            packets.counters.marks, packets.counters.pauses, packets.counters.drops})
        rows.add(count);
    } else {
      for (u32 i = 0; i < 14; ++i) rows.add_null();
    }
    rows.add(std::string_view(result.mistake)).end();
  }
}

// StorageOf: the result of storage and all its reads, of a step, or of the run of each algorithm.
struct StorageOf {
  std::string_view algorithm;  // "": of a step
  const StorageResult& result;
};

std::vector<StorageOf> storage_of(const JobResults& results) {
  std::vector<StorageOf> all;
  if (results.step && results.step->packets.storage)
    all.push_back({"", *results.step->packets.storage});
  for (const CollectiveResult& one : results.collectives)
    if (one.by_packets && one.by_packets->storage)
      all.push_back({name_of(one.shape.algorithm), *one.by_packets->storage});
  return all;
}

void write_storage(fabric::SQLiteFile& file, const std::vector<StorageOf>& all) {
  Rows rows(file, "storage",
            "algorithm TEXT, gpus INTEGER, reads INTEGER, bytes INTEGER, time_ps INTEGER, "
            "bytes_per_second_of_gpu REAL, p50_ps INTEGER, p99_ps INTEGER, max_ps INTEGER");
  for (const auto& [algorithm, result] : all) {
    rows.add(algorithm).add(result.gpus).add(u64{result.reads.size()}).add(result.bytes);
    rows.add(result.time.ps()).add(result.rate()).add(result.median.ps());
    rows.add(result.p99.ps()).add(result.longest.ps()).end();
  }
}

void write_storage_reads(fabric::SQLiteFile& file, const std::vector<StorageOf>& all) {
  Rows rows(file, "storage_reads",
            "algorithm TEXT, gpu INTEGER, server INTEGER, begin_ps INTEGER, end_ps INTEGER");
  for (const auto& [algorithm, result] : all)
    for (const StorageRead& read : result.reads) {
      rows.add(algorithm).add(read.gpu).add(read.server);
      rows.add((read.begin - Time()).ps()).add((read.end - Time()).ps()).end();
    }
}

}  // namespace

std::string_view status_of(const JobResults& results) {
  std::vector<std::string_view> mistakes;
  if (results.step) mistakes.push_back(results.step->mistake);
  if (results.serving) mistakes.push_back(results.serving->mistake);
  if (results.loading) mistakes.push_back(results.loading->mistake);
  for (const CollectiveResult& result : results.collectives) mistakes.push_back(result.mistake);
  if (std::ranges::count(mistakes, kInterrupted) != 0) return "interrupted";
  const bool all_well = std::ranges::all_of(mistakes, &std::string_view::empty);
  return all_well ? "complete" : "failed";
}

std::string write_database(const std::string& path, const Job& job, const JobResults& results) {
  const std::string unfinished = path + ".part";
  {
    fabric::SQLiteFile file(unfinished);
    write_run(file, job, results);
    write_summary(file, job, results);
    if (!results.step) write_collectives(file, results.collectives);
    if (results.step && results.step->timeline) {
      write_tasks(file, *results.step);
      write_operations(file, *results.step);
    }
    if (results.step && results.step->mistake.empty()) write_accounts(file, *results.step);
    if (const std::vector<NamedRun> runs = runs_of(results); !runs.empty())
      write_runs(file, job, runs);
    if (const std::vector<StorageOf> storage = storage_of(results); !storage.empty()) {
      write_storage(file, storage);
      write_storage_reads(file, storage);
    }
    if (const std::string error = file.finish(); !error.empty()) {
      (void)std::remove(unfinished.c_str());
      return fmt::format("{}: {}", path, error);
    }
  }
  if (std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  return fmt::format("cannot write {}", path);
}

}  // namespace verbena::jobs
