// MPIRanks: the processes that mpirun has started, on one machine or on several, and messages
// between them. libverbena-mpi.so (mpi/plugin.h) is loaded for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/types.h"
#include "cli/failure.h"

struct verbena_mpi;

namespace verbena::cli {

struct MPIPlace {
  int rank = 0, size = 1;
};
// Returns the place that mpirun sets in the environment: Open MPI's, PMI's or PMIx's under Slurm.
// Returns nullopt if there is no other process.
[[nodiscard]] std::optional<MPIPlace> mpi_place();

class MPIRanks {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<MPIRanks>> join(const MPIPlace& place);
  ~MPIRanks();  // all have received everything
  MPIRanks(const MPIRanks&) = delete;
  MPIRanks& operator=(const MPIRanks&) = delete;

  [[nodiscard]] int rank() const { return place_.rank; }
  [[nodiscard]] int size() const { return place_.size; }

  struct Message {
    int from = 0, tag = 0;
    std::string text;
  };
  void send(int to, int tag, const std::string& text);
  [[nodiscard]] std::optional<Message> poll();

 private:
  MPIRanks(const verbena_mpi& calls, const MPIPlace& place) : calls_(calls), place_(place) {}

  const verbena_mpi& calls_;
  const MPIPlace place_;
};

}  // namespace verbena::cli
