// An MPI program: each rank passes messages of 1 B to 4 MiB to the next, and checks every byte of
// what the one before sends; then all add up their ranks. Prints "ok", or what was wrong.
#include <mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  for (int size = 1; size <= 4 << 20; size *= 4) {
    std::vector<unsigned char> sent(static_cast<std::size_t>(size)), got(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i)
      sent[i] = static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(rank));
    MPI_Sendrecv(sent.data(), size, MPI_BYTE, next, 0, got.data(), size, MPI_BYTE, before, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < got.size(); ++i)
      wrong += got[i] != static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(before));
  }
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  wrong += sum != ranks * (ranks - 1) / 2;
  std::printf(wrong == 0 ? "rank %d ok\n" : "rank %d WRONG\n", rank);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
