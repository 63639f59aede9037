#include "jobs/chakra/import.h"

#include <gtest/gtest.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "jobs/chakra/execution_trace.pb.h"
#include "jobs/job_file.h"
#include "jobs/job_results.h"

namespace verbena::jobs {
namespace {

namespace wire = chakra::wire;

using Attributes = std::vector<std::pair<const char*, u64>>;

// A trace file, node after node.
class File {
 public:
  File() {
    wire::GlobalMetadata metadata;
    metadata.set_version("0.0.4");
    append(metadata);
  }

  // Returns its id.
  u64 add(wire::NodeType type, const std::vector<u64>& after = {}, u64 micros = 0,
          const Attributes& attributes = {}, const std::string& group = "") {
    wire::Node node;
    node.set_id(next_);
    node.set_name("n" + std::to_string(next_));
    node.set_type(type);
    for (const u64 id : after) node.add_data_deps(id);
    node.set_duration_micros(micros);
    for (const auto& [name, value] : attributes) {
      wire::Attribute& attribute = *node.add_attr();
      attribute.set_name(name);
      attribute.set_int64_value(static_cast<i64>(value));
    }
    if (!group.empty()) {
      node.add_attr()->set_name("pg_name");
      node.mutable_attr()->rbegin()->set_string_value(group);
    }
    append(node);
    return next_++;
  }
  u64 computes(u64 micros, const std::vector<u64>& after = {}) {
    return add(wire::COMPUTE, after, micros);
  }
  u64 all_reduce(u64 bytes, const std::vector<u64>& after = {}, const std::string& group = "") {
    return add(wire::COLLECTIVE, after, 0, {{"comm_type", wire::ALL_REDUCE}, {"comm_size", bytes}},
               group);
  }
  u64 send(u64 to, u64 bytes, const std::vector<u64>& after = {}, u64 tag = 0) {
    return add(wire::SEND, after, 0, {{"comm_dst", to}, {"comm_size", bytes}, {"comm_tag", tag}});
  }
  u64 receive(u64 from, u64 bytes, const std::vector<u64>& after = {}, u64 tag = 0) {
    return add(wire::RECEIVE, after, 0,
               {{"comm_src", from}, {"comm_size", bytes}, {"comm_tag", tag}});
  }
  void append(const google::protobuf::MessageLite& message) {
    google::protobuf::io::StringOutputStream stream(&bytes_);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteVarint32(static_cast<u32>(message.ByteSizeLong()));
    message.SerializeToCodedStream(&out);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  u64 next_ = 0;
};

// GPUs in one node, which NVLink joins.
std::string job_text(std::size_t gpus, const std::string& more = "") {
  return "topology: {kind: star, hosts: " + std::to_string(gpus) +
         "}\nchakra: {traces: t, gpus_per_node: " + std::to_string(gpus) + more + "}\n";
}

fabric::Parsed<Job> job_of(const std::vector<File>& files, const std::string& more = "") {
  return read_job("job.yaml", job_text(files.size(), more), {},
                  [&](const std::string& name) -> fabric::Parsed<std::string> {
                    if (name == "groups.json") return R"({"7": [0, 1], "8": [3, 2]})";
                    for (std::size_t i = 0; i < files.size(); ++i)
                      if (name == "t." + std::to_string(i) + ".et") return files[i].bytes();
                    return tl::unexpected(fabric::InputError{name + " is not there"});
                  });
}

std::string mistake_of(const std::vector<File>& files, const std::string& more = "") {
  const auto job = job_of(files, more);
  return job ? "" : job.error().message;
}

StepResult run(const std::vector<File>& files, const std::string& more = "") {
  const auto job = job_of(files, more);
  if (!job)
    return {.mistake = job.error().message,
            .packets = {},
            .program = {},
            .timeline = {},
            .begin = {},
            .end = {},
            .mean = {},
            .operations = {}};
  return run_step(*job, [](const Progress&) { return false; });
}

constexpr u64 kMega = 45'000'000;  // bytes: 100 us at a GPU's 450 GB/s

// 10 us, then a message of 100 us and 0.7 us, then 5 us.
TEST(ChakraImport, AMessageGoesAtNVLinksRate) {
  std::vector<File> files(2);
  files[0].send(1, kMega, {files[0].computes(10)});
  files[1].computes(5, {files[1].receive(0, kMega)});
  const StepResult result = run(files);
  ASSERT_EQ(result.mistake, "");
  EXPECT_EQ(result.time(), us(10) + us(100) + ns(700) + us(5));
}

// A ring of four: 6 rounds of a quarter each, 25 us and 0.7 us.
TEST(ChakraImport, AnAllReduceTakesWhatItsRoundsTake) {
  std::vector<File> files(4);
  for (File& file : files) file.computes(20, {file.all_reduce(kMega, {file.computes(10)})});
  const StepResult result = run(files);
  ASSERT_EQ(result.mistake, "");
  EXPECT_EQ(result.time(), us(10) + (us(25) + ns(700)) * 6 + us(20));
  EXPECT_EQ(result.mean.computing[static_cast<std::size_t>(Purpose::kKernel)], us(30));
}

// An AllGather's size is what each rank has; the operation has all of it.
TEST(ChakraImport, SizesAreThoseThatRanksBeginWith) {
  std::vector<File> files(4);
  for (File& file : files)
    file.add(wire::COLLECTIVE, {}, 0, {{"comm_type", wire::ALL_GATHER}, {"comm_size", 1000}});
  const StepResult result = run(files);
  ASSERT_EQ(result.mistake, "");
  EXPECT_EQ(result.program->shape_of(0).bytes, 4000u);
}

// 2 G operations at 1 T, or 8 M bytes at 1 T bytes a second: 2 ms, or 8 us.
TEST(ChakraImport, WhatHasNoTimeTakesTheRooflines) {
  std::vector<File> files(2);
  files[0].add(wire::COMPUTE, {}, 0, {{"num_ops", 2'000'000'000}, {"tensor_size", 8'000'000}});
  files[1].add(wire::COMPUTE, {}, 0, {{"num_ops", 2'000}, {"tensor_size", 8'000'000}});
  const std::string gpu = ", gpu: {flops: 1000000000000, efficiency: 1, memory: 8Tbps}";
  const StepResult result = run(files, gpu);
  ASSERT_EQ(result.mistake, "");
  EXPECT_EQ(result.program->computing_of(0), ms(2));
  EXPECT_EQ(result.program->computing_of(1), us(8));
}

TEST(ChakraImport, TheCPUComputesBesideTheGPU) {
  std::vector<File> files(2);
  for (File& file : files) {
    const Attributes on_cpu = {{"is_cpu_op", 1}};
    const u64 launch = file.add(wire::COMPUTE, {}, 3, on_cpu);
    file.computes(20, {launch});
    file.add(wire::COMPUTE, {launch}, 30, on_cpu);
  }
  const StepResult result = run(files);
  ASSERT_EQ(result.mistake, "");
  EXPECT_EQ(result.time(), us(33));
  EXPECT_EQ(result.mean.all_computing(), us(20));
}

// Nodes without a time still say what comes after what: 4 us, then both others.
TEST(ChakraImport, NodesWithoutATimePassOnWhatTheyWaitFor) {
  std::vector<File> files(2);
  for (File& file : files) {
    const u64 barrier = file.add(wire::METADATA, {file.computes(4)});
    file.all_reduce(kMega, {file.add(wire::NONE, {barrier})});
  }
  const StepResult result = run(files);
  ASSERT_EQ(result.mistake, "");
  EXPECT_EQ(result.time(), us(4) + (us(50) + ns(700)) * 2);
}

// Rank 0's first node by id waits for what its second one makes rank 1 do.
TEST(ChakraImport, TheOrderIsOneThatCanBeDone) {
  std::vector<File> files(2);
  files[0].computes(1, {files[0].receive(1, 100, {})});  // 0, 1
  files[0].send(1, 100, {files[0].computes(2)});         // 2, 3
  files[1].send(0, 100, {files[1].computes(4, {files[1].receive(0, 100)})});
  const StepResult result = run(files);
  ASSERT_EQ(result.mistake, "");
  const auto& tasks = result.program->tasks_of(0);
  std::vector<std::string> computed;
  for (const Task& task : tasks)
    if (task.computes()) computed.push_back(task.name);
  EXPECT_EQ(computed, (std::vector<std::string>{"n2", "n1"}));
}

TEST(ChakraImport, TagsTellMessagesApart) {
  std::vector<File> files(2);
  files[0].send(1, 100, {}, 1);
  files[0].send(1, 200, {}, 2);
  files[1].receive(0, 200, {}, 2);
  files[1].receive(0, 100, {}, 1);
  EXPECT_EQ(run(files).mistake, "");
}

TEST(ChakraImport, GroupsOfOneSizeShareACommunicator) {
  std::vector<File> files(4);
  for (std::size_t rank = 0; rank < files.size(); ++rank)
    files[rank].all_reduce(kMega, {}, rank < 2 ? "7" : "8");
  const StepResult result = run(files, ", groups: groups.json");
  ASSERT_EQ(result.mistake, "");
  ASSERT_EQ(result.program->communicators(), 1u);
  EXPECT_EQ(result.program->communicator(0).member(1, 0), 3u);
  EXPECT_EQ(result.time(), (us(50) + ns(700)) * 2);
}

TEST(ChakraImport, GroupsOfPyTorchAreRead) {
  std::vector<File> files(4);
  for (File& file : files) {
    wire::Node node;
    node.set_id(100);
    node.set_type(wire::METADATA);
    node.mutable_inputs()->set_values(
        "['[{\"pg_name\": \"0\", \"ranks\": []}, {\"pg_name\": \"1\", \"ranks\": [0, 2]}]']");
    file.append(node);
    file.all_reduce(kMega);
  }
  for (const std::size_t rank : {0, 2}) files[rank].all_reduce(kMega, {}, "1");
  EXPECT_EQ(run(files).mistake, "");
}

TEST(ChakraImport, MistakesNameTheFileAndTheNode) {
  const auto with = [](auto change) {
    std::vector<File> files(2);
    change(files[0], files[1]);
    return mistake_of(files);
  };
  EXPECT_EQ(with([](File& a, File&) { a.computes(1, {9}); }),
            "job.yaml:2: chakra.traces: t.0.et: node 0 (n0): it comes after node 9, which is not "
            "there");
  EXPECT_EQ(with([](File& a, File&) { a.computes(1, {a.computes(1, {1})}); }),
            "job.yaml:2: chakra.traces: t.0.et: node 0 (n0): it waits for itself");
  EXPECT_EQ(with([](File& a, File&) { a.all_reduce(100); }),
            "job.yaml:2: chakra.traces: t.0.et: node 0 (n0): rank 1 never takes part in it");
  EXPECT_EQ(with([](File& a, File& b) {
              a.all_reduce(100);
              b.all_reduce(104);
            }),
            "job.yaml:2: chakra.traces: t.1.et: node 0 (n0): it is to be one operation with "
            "t.0.et: node 0 (n0): an all reduce of 100 bytes");
  EXPECT_EQ(with([](File& a, File&) { a.all_reduce(100, {}, "5"); }),
            "job.yaml:2: chakra.traces: t.0.et: node 0 (n0): there is no group 5");
  EXPECT_EQ(with([](File& a, File&) { a.send(1, 100); }),
            "job.yaml:2: chakra.traces: t.0.et: node 0 (n0): rank 1 never takes part in it");
  EXPECT_EQ(with([](File&, File& b) { b.receive(0, 100, {}, 3); }),
            "job.yaml:2: chakra.traces: t.1.et: node 0 (n0): rank 0 sends no such message (tag 3) "
            "that often");
  EXPECT_EQ(with([](File& a, File&) {
              a.add(wire::COLLECTIVE, {}, 0, {{"comm_type", wire::GATHER}, {"comm_size", 4}});
            }),
            "job.yaml:2: chakra.traces: t.0.et: node 0 (n0): comm_type 3 is not simulated: only "
            "AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast and Barrier");
  // Each waits for the other's message before it sends its own.
  EXPECT_EQ(with([](File& a, File& b) {
              a.send(1, 100, {a.receive(1, 100)});
              b.send(0, 100, {b.receive(0, 100)});
            }),
            "job.yaml:2: chakra.traces: t.1.et: node 0 (n0): the others never come to it");
}

TEST(ChakraImport, EveryTruncationIsRefusedOrShorter) {
  std::vector<File> files(1);
  files[0].computes(3);
  files[0].computes(4, {0});
  const std::string& whole = files[0].bytes();
  const auto read = [](const std::string& bytes) {
    return chakra::read_trace("t.0.et", bytes, 0, chakra::Dependencies::kData);
  };
  ASSERT_EQ(read(whole)->nodes.size(), 2u);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    if (const auto trace = read(whole.substr(0, n)); trace) {
      EXPECT_LT(trace->nodes.size(), 2u) << n;
    }
  }
  EXPECT_EQ(read("hello").error().message,
            "t.0.et: no execution trace: it does not begin with GlobalMetadata");
}

}  // namespace
}  // namespace verbena::jobs
