/* Two MPI ranks: what a program sees of the library below. Built by bench/ with mpicc.
 *
 * usage: measure latency SIZE COUNT | bandwidth SIZE COUNT | allreduce SIZE COUNT
 * prints (rank 0): us for half a round trip | GB/s, windows of 16 sends | us for one allreduce of
 * SIZE bytes of floats. Medians of COUNT (bandwidth: of COUNT windows).
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

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int size = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 0;
  if (ranks != 2 || size < 1 || count < 1) {
    if (rank == 0) fprintf(stderr, "usage: measure latency|bandwidth|allreduce SIZE COUNT, 2 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char *buffer = malloc(2 * (size_t)size);
  double *values = malloc((size_t)count * sizeof *values);
  memset(buffer, 1, 2 * (size_t)size);  // 0 would make it calloc(), and all of it the zero page
  double (*measure)(char *, int, int) = strcmp(argv[1], "latency") == 0     ? latency
                                        : strcmp(argv[1], "bandwidth") == 0 ? bandwidth
                                                                            : allreduce;
  for (int i = -count / 10 - 1; i < count; ++i) {  // the first are not counted
    const double value = measure(buffer, size, rank);
    if (i >= 0) values[i] = value;
    if (measure == allreduce) MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) printf("RESULT %.4f\n", median(values, count));
  MPI_Finalize();
  return 0;
}
