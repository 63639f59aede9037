/* Two MPI ranks: what a program sees of the library below. Built by bench/ with mpicc.
 *
 * usage: measure latency SIZE COUNT | bandwidth SIZE COUNT | OPERATION SIZE COUNT
 * prints (rank 0): us for half a round trip | GB/s, windows of 16 sends | us for one collective
 * operation on SIZE bytes of floats in all: allreduce, allgather, reducescatter, alltoall, broadcast.
 * Medians of COUNT (bandwidth: of COUNT windows). Collective operations may have more than two ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWindow = 16 };

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int n) {
  qsort(values, (size_t)n, sizeof *values, compare);
  return values[n / 2];
}

static double latency(char *buffer, int size, int rank) {
  const double start = MPI_Wtime();
  if (rank == 0) MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  MPI_Recv(buffer, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / 2 * 1e6;
}

static double bandwidth(char *buffer, int size, int rank) {
  MPI_Request requests[kWindow];
  const double start = MPI_Wtime();
  for (int i = 0; i < kWindow; ++i) {
    if (rank == 0) MPI_Isend(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
    else MPI_Irecv(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  return (double)size * kWindow / (MPI_Wtime() - start) * 1e-9;
}

static double allreduce(char *buffer, int size, int rank) {
  (void)rank;
  const double start = MPI_Wtime();
  MPI_Allreduce(buffer, buffer + size, size / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) * 1e6;
}

/* Floats of one rank's block. */
static int block(int size) {
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return size / (int)sizeof(float) / ranks;
}

static double allgather(char *buffer, int size, int rank) {
  (void)rank;
  const double start = MPI_Wtime();
  MPI_Allgather(buffer, block(size), MPI_FLOAT, buffer + size, block(size), MPI_FLOAT, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) * 1e6;
}

static double reducescatter(char *buffer, int size, int rank) {
  (void)rank;
  const double start = MPI_Wtime();
  MPI_Reduce_scatter_block(buffer, buffer + size, block(size), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) * 1e6;
}

static double alltoall(char *buffer, int size, int rank) {
  (void)rank;
  const double start = MPI_Wtime();
  MPI_Alltoall(buffer, block(size), MPI_FLOAT, buffer + size, block(size), MPI_FLOAT, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) * 1e6;
}

static double broadcast(char *buffer, int size, int rank) {
  (void)rank;
  const double start = MPI_Wtime();
  MPI_Bcast(buffer, size / (int)sizeof(float), MPI_FLOAT, 0, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) * 1e6;
}

typedef double (*Measure)(char *, int, int);
static const struct {
  const char *name;
  Measure measure;
  int is_collective;
} kMeasures[] = {{"latency", latency, 0},           {"bandwidth", bandwidth, 0},
                 {"allreduce", allreduce, 1},       {"allgather", allgather, 1},
                 {"reducescatter", reducescatter, 1}, {"alltoall", alltoall, 1},
                 {"broadcast", broadcast, 1}};
enum { kKinds = sizeof kMeasures / sizeof *kMeasures };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int size = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 0;
  int kind = 0;
  while (argc > 1 && kind < kKinds && strcmp(argv[1], kMeasures[kind].name) != 0) ++kind;
  const int is_known = argc > 1 && kind < kKinds;
  if (!is_known || (ranks != 2 && !kMeasures[kind].is_collective) || size < 1 || count < 1) {
    if (rank == 0) fprintf(stderr, "usage: measure WHAT SIZE COUNT; latency and bandwidth: 2 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char *buffer = malloc(2 * (size_t)size);
  double *values = malloc((size_t)count * sizeof *values);
  memset(buffer, 1, 2 * (size_t)size);  // 0 would make it calloc(), and all of it the zero page
  const Measure measure = kMeasures[kind].measure;
  for (int i = -count / 10 - 1; i < count; ++i) {  // the first are not counted
    const double value = measure(buffer, size, rank);
    if (i >= 0) values[i] = value;
    if (kMeasures[kind].is_collective) MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) printf("RESULT %.4f\n", median(values, count));
  MPI_Finalize();
  return 0;
}
