// results.sqlite of a job.
#include <fmt/format.h>

#include "fabric/results/sqlite_file.h"
#include "jobs/job_results.h"

namespace verbena::jobs {
namespace {

using Rows = fabric::SQLiteFile::Rows;

std::string_view kind_of(const Job& job) {
  if (job.imported) return "chakra";
  return job.training ? "training" : "inference";
}

void write_run(fabric::SQLiteFile& file, const Job& job, const StepResult& result) {
  Rows rows(file, "run", "key TEXT PRIMARY KEY, value");
  const auto put = [&rows](std::string_view key, auto value) { rows.add(key).add(value).end(); };
  const fabric::Counters& counters = result.packets.counters;
  put("schema", i64{1});
  put("kind", kind_of(job));
  put("seed", job.network.seed);
  put("gpus", result.program->ranks());
  put("gpus_per_node", job.cluster.gpus_per_node);
  put("step_ps", result.time().ps());
  put("computing_ps", result.mean.all_computing().ps());
  put("messages", result.packets.messages);
  put("network_octets", result.packets.network_octets);
  put("nvlink_octets", result.packets.nvlink_octets);
  put("link_hops", counters.hops);
  put("events", counters.events);
  put("marks", counters.marks);
  put("pauses", counters.pauses);
  put("drops", counters.drops);
}

void write_tasks(fabric::SQLiteFile& file, const StepResult& result) {
  Rows rows(file, "tasks",
            "gpu INTEGER, task INTEGER, name TEXT, purpose TEXT, operation INTEGER, "
            "begin_ps INTEGER, end_ps INTEGER");
  for (u32 rank = 0; rank < result.program->ranks(); ++rank) {
    const std::vector<Task>& tasks = result.program->tasks_of(rank);
    for (u32 i = 0; i < tasks.size(); ++i) {
      const Span& span = result.timeline->spans_of(rank)[i];
      rows.add(rank).add(i).add(std::string_view(tasks[i].name)).add(name_of(tasks[i].purpose));
      tasks[i].computes() ? rows.add_null() : rows.add(tasks[i].operation);
      rows.add((span.begin - result.begin).ps()).add((span.end - result.begin).ps()).end();
    }
  }
}

void write_operations(fabric::SQLiteFile& file, const StepResult& result) {
  Rows rows(file, "operations",
            "operation INTEGER, purpose TEXT, communicator TEXT, kind TEXT, algorithm TEXT, "
            "gpus INTEGER, octets INTEGER, times INTEGER, mean_ps INTEGER, busbw REAL");
  for (const OperationTotal& total : result.operations) {
    const collectives::Shape& shape = result.program->shape_of(total.operation);
    rows.add(total.operation)
        .add(name_of(total.purpose))
        .add(std::string_view(result.program->communicator_of(total.operation).name()))
        .add(name_of(shape.operation))
        .add(name_of(shape.algorithm))
        .add(shape.ranks)
        .add(shape.octets)
        .add(total.times)
        .add(total.mean.ps())
        .add(total.bus_bandwidth)
        .end();
  }
}

// What each GPU's time went into.
void write_accounts(fabric::SQLiteFile& file, const StepResult& result) {
  Rows rows(file, "accounts", "gpu INTEGER, purpose TEXT, computing_ps INTEGER, idle_ps INTEGER");
  for (u32 rank = 0; rank < result.program->ranks(); ++rank) {
    const Account account =
        account_of(*result.program, *result.timeline, rank, result.begin, result.end);
    for (std::size_t i = 0; i < kPurposes; ++i)
      if (account.computing[i] != Duration() || account.idle[i] != Duration())
        rows.add(rank)
            .add(name_of(static_cast<Purpose>(i)))
            .add(account.computing[i].ps())
            .add(account.idle[i].ps())
            .end();
  }
}

// By each algorithm. What only packets tell is NULL at flow-level.
void write_collectives(fabric::SQLiteFile& file, const std::vector<CollectiveResult>& results) {
  Rows rows(file, "collectives",
            "operation TEXT, algorithm TEXT, gpus INTEGER, gpus_per_node INTEGER, octets INTEGER, "
            "channels INTEGER, seconds REAL, algbw REAL, busbw REAL, flow_level_seconds REAL, "
            "computing_ps INTEGER, nvlink_ps INTEGER, sending_ps INTEGER, distance_ps INTEGER, "
            "waiting_ps INTEGER, overhead_ps INTEGER, host_ps INTEGER, messages INTEGER, "
            "network_octets INTEGER, "
            "nvlink_octets INTEGER, link_hops INTEGER, marks INTEGER, pauses INTEGER, "
            "drops INTEGER, mistake TEXT");
  for (const CollectiveResult& result : results) {
    const collectives::Shape& shape = result.shape;
    rows.add(name_of(shape.operation)).add(name_of(shape.algorithm)).add(shape.ranks);
    rows.add(shape.ranks_per_node).add(shape.octets).add(shape.channels).add(result.seconds());
    rows.add(result.algorithm_bandwidth()).add(result.bus_bandwidth());
    result.flow_seconds ? rows.add(*result.flow_seconds) : rows.add_null();
    if (result.by_packets) {
      const TimeSpent& spent = result.by_packets->spent;
      for (const Duration part : {spent.computing, spent.nvlink, spent.sending, spent.distance,
                                  spent.waiting, spent.overhead, spent.host})
        rows.add(part.ps());
      const PacketResult& packets = *result.by_packets;
      for (const u64 count :
           {packets.messages, packets.network_octets, packets.nvlink_octets, packets.counters.hops,
            packets.counters.marks, packets.counters.pauses, packets.counters.drops})
        rows.add(count);
    } else {
      for (u32 i = 0; i < 14; ++i) rows.add_null();
    }
    rows.add(std::string_view(result.mistake)).end();
  }
}

// Of a step, or beside each algorithm: what it has come to, and every read.
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
            "algorithm TEXT, gpus INTEGER, reads INTEGER, octets INTEGER, time_ps INTEGER, "
            "octets_per_second_of_gpu REAL, p50_ps INTEGER, p99_ps INTEGER, max_ps INTEGER");
  for (const auto& [algorithm, result] : all) {
    rows.add(algorithm).add(result.gpus).add(u64{result.reads.size()}).add(result.octets);
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

std::string write_database(const std::string& path, const Job& job, const JobResults& results) {
  fabric::SQLiteFile file(path);
  if (!results.step) {
    write_collectives(file, results.collectives);
  } else if (results.step->mistake.empty()) {
    write_run(file, job, *results.step);
    write_tasks(file, *results.step);
    write_operations(file, *results.step);
    write_accounts(file, *results.step);
  }
  if (const std::vector<StorageOf> storage = storage_of(results); !storage.empty()) {
    write_storage(file, storage);
    write_storage_reads(file, storage);
  }
  return file.finish();
}

}  // namespace verbena::jobs
