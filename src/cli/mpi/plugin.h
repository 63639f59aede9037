// The functions of libverbena-mpi.so: messages between the processes that mpirun has started, by
// the MPI that the library was built with. `verbena` loads the library when mpirun has started it,
// so `verbena` itself needs no MPI. One thread makes all calls.
#pragma once

extern "C" {

struct verbena_mpi {
  void (*start)(int* rank, int* size);  // MPI_Init; an error ends the process, as MPI's do
  void (*send)(int to, int tag, const void* bytes, int length);
  // 1: a message is there, of this length, and receive() takes it.
  int (*poll)(int* from, int* tag, int* length);
  void (*receive)(int from, int tag, void* bytes, int length);
  void (*finish)(void);  // all have sent and received everything
};

// The name has the version of the structure in it.
const struct verbena_mpi* verbena_mpi_1(void);
}

inline constexpr const char* kMPIPluginName = "libverbena-mpi.so";
inline constexpr const char* kMPIPluginSymbol = "verbena_mpi_1";
