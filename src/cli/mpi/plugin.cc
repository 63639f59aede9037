#include "cli/mpi/plugin.h"

#include <mpi.h>

namespace {

void start(int* rank, int* size) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
}

void send(int to, int tag, const void* bytes, int length) {
  MPI_Send(bytes, length, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

int poll(int* from, int* tag, int* length) {
  int is_there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
  if (is_there == 0) return 0;
  *from = status.MPI_SOURCE;
  *tag = status.MPI_TAG;
  MPI_Get_count(&status, MPI_BYTE, length);
  return 1;
}

void receive(int from, int tag, void* bytes, int length) {
  MPI_Recv(bytes, length, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void finish() { MPI_Finalize(); }

}  // namespace

__attribute__((visibility("default"))) const verbena_mpi* verbena_mpi_1() {
  static constexpr verbena_mpi kCalls = {start, send, poll, receive, finish};
  return &kCalls;
}
