/* Collective operations between processes, over RDMA verbs (libverbena-coll.so).
 *
 * The library calls the public verbs of <infiniband/verbs.h> and nothing else, so it runs on any
 * libibverbs: Verbena's (`verbena run`), or rdma-core's with a card. docs/collectives.md has the
 * rules of matching, failures and rendezvous; a short program:
 *
 *     verbena_comm *comm;
 *     if (verbena_coll_init(&comm, "tcp://10.0.0.1:4000", rank, ranks, NULL) != VERBENA_COLL_OK)
 *         errx(1, "%s", verbena_coll_error());
 *     verbena_coll_all_reduce(in, out, count, VERBENA_FLOAT32, VERBENA_SUM, comm, NULL);
 *     verbena_coll_destroy(comm);
 *
 * Every call of an operation takes `verbena_request **request`. If it is NULL, the call returns when
 * the operation is done. Otherwise the call stores a request and returns at once; the caller waits
 * with verbena_coll_wait() and ends with verbena_coll_release(). Buffers belong to the library until
 * the request is done. Operations of one communicator start in the order of the calls, one after
 * another; all ranks must call them in the same order. Send and Recv are outside of that order.
 *
 * Functions return an enum verbena_coll_status. They may be called by several threads.
 */
#ifndef VERBENA_COLLECTIVES_H
#define VERBENA_COLLECTIVES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct verbena_comm verbena_comm;
typedef struct verbena_request verbena_request;

enum verbena_coll_status {
	VERBENA_COLL_OK = 0,
	VERBENA_COLL_INVALID = 1,    /* an argument is wrong; the communicator goes on */
	VERBENA_COLL_RENDEZVOUS = 2, /* the ranks did not find each other */
	VERBENA_COLL_MISMATCH = 3,   /* two ranks called different operations, types or sizes */
	VERBENA_COLL_PEER = 4,       /* a rank died or left */
	VERBENA_COLL_TIMEOUT = 5,    /* a rank did not take part in time */
	VERBENA_COLL_ABORTED = 6,    /* a rank called verbena_coll_abort() */
	VERBENA_COLL_SYSTEM = 7,     /* the system or the device refused something */
};

enum verbena_coll_type {
	VERBENA_INT8 = 0,
	VERBENA_UINT8 = 1,
	VERBENA_INT32 = 2,
	VERBENA_INT64 = 3,
	VERBENA_FLOAT16 = 4,
	VERBENA_BFLOAT16 = 5,
	VERBENA_FLOAT32 = 6,
	VERBENA_FLOAT64 = 7,
};

enum verbena_coll_op {
	VERBENA_SUM = 0,
	VERBENA_PRODUCT = 1,
	VERBENA_MIN = 2,
	VERBENA_MAX = 3,
	VERBENA_AVERAGE = 4, /* the sum divided by the number of ranks; integers round to zero */
	VERBENA_BIT_AND = 5, /* bitwise operations take integer types */
	VERBENA_BIT_OR = 6,
	VERBENA_BIT_XOR = 7,
};

/* A key-value store through which ranks find rank 0, instead of an address. Both return 0, or -1. */
struct verbena_coll_store {
	void *context;
	int (*set)(void *context, const char *key, const char *value);
	/* Waits until the key is there; copies at most `size` bytes, with a final 0. */
	int (*get)(void *context, const char *key, char *value, size_t size);
};

/* Zero in a member stands for its default. */
struct verbena_coll_options {
	size_t size;           /* sizeof(struct verbena_coll_options) */
	double timeout_s;      /* of the rendezvous and of each operation; default 30 */
	const char *devices;   /* names with commas between them; default: all active, 4 at most */
	const char *job;       /* ranks of another job name are refused; default: from the launcher */
	const char *algorithm; /* "ring", "direct", ...: instead of the table's choice */
	const char *table;     /* a file that `verbena coll --tune` wrote */
	const struct verbena_coll_store *store;
};

/* Makes a communicator of `ranks` processes. `address` is one of
 *   tcp://HOST:PORT    rank 0 listens there
 *   file://PATH        rank 0 writes its address to that file, which all ranks see
 *   env://             RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun), or the variables of
 *                      Open MPI's or MPICH's mpirun
 *   store://           options->store
 * A rank or ranks of -1 is what those variables say.
 */
int verbena_coll_init(verbena_comm **comm, const char *address, int rank, int ranks,
		      const struct verbena_coll_options *options);
/* Ends the communicator. Other ranks that still need this one get VERBENA_COLL_PEER. */
int verbena_coll_destroy(verbena_comm *comm);

int verbena_coll_rank(const verbena_comm *comm);
int verbena_coll_size(const verbena_comm *comm);
/* Seconds after which later operations fail. */
int verbena_coll_set_timeout(verbena_comm *comm, double seconds);

/* The algorithm of later operations that it can do, and the bytes that it passes on at a time (0: its
 * own choice); NULL: by size, again. All ranks must say the same. */
int verbena_coll_set_algorithm(verbena_comm *comm, const char *algorithm, size_t chunk);

/* All ranks call it. Ranks of the same color >= 0 form a communicator, ordered by key, then by rank.
 * color -1: none, and *part is NULL. */
int verbena_coll_split(verbena_comm *comm, int color, int key, verbena_comm **part);
/* Fails the operations of all ranks, now and later, with VERBENA_COLL_ABORTED. */
int verbena_coll_abort(verbena_comm *comm, const char *why);
/* After a failure: all ranks that are alive call it, and form a communicator in their order. */
int verbena_coll_shrink(verbena_comm *comm, verbena_comm **survivors);

/* Buffers of all operations may lie in the memory of a GPU of CUDA, from cuMemAlloc and the like, if
 * the program has loaded the CUDA driver. They pass through host memory: a call copies them in after
 * what the program has queued on a stream, and verbena_coll_wait() or verbena_coll_test() copies results
 * out on that stream. All of these copies have ended when the call returns.
 *
 * The stream (CUstream, cudaStream_t) of later operations of this handle; NULL, as at first: the default
 * stream. The program keeps it until those operations are done. Not while another thread begins one. */
int verbena_coll_set_gpu_stream(verbena_comm *comm, void *stream);

/* Registers memory with the devices until verbena_coll_deregister(), so that operations on it need
 * not. The memory must stay mapped until then. */
int verbena_coll_register(verbena_comm *comm, void *address, size_t length);
int verbena_coll_deregister(verbena_comm *comm, void *address);

/* Counts are of elements. In place: send == recv; for AllGather, Gather and Scatter the own block of
 * the larger buffer; for ReduceScatter the own block of `send`. */
int verbena_coll_all_reduce(const void *send, void *recv, size_t count,
			    enum verbena_coll_type type, enum verbena_coll_op op,
			    verbena_comm *comm, verbena_request **request);
int verbena_coll_reduce_scatter(const void *send, void *recv, size_t recv_count,
				enum verbena_coll_type type, enum verbena_coll_op op,
				verbena_comm *comm, verbena_request **request);
int verbena_coll_all_gather(const void *send, void *recv, size_t send_count,
			    enum verbena_coll_type type, verbena_comm *comm,
			    verbena_request **request);
int verbena_coll_reduce(const void *send, void *recv, size_t count, enum verbena_coll_type type,
			enum verbena_coll_op op, int root, verbena_comm *comm,
			verbena_request **request);
int verbena_coll_broadcast(void *buffer, size_t count, enum verbena_coll_type type, int root,
			   verbena_comm *comm, verbena_request **request);
/* `recv` of Gather and `send` of Scatter: `count` elements for each rank, at the root only. */
int verbena_coll_gather(const void *send, void *recv, size_t count, enum verbena_coll_type type,
			int root, verbena_comm *comm, verbena_request **request);
int verbena_coll_scatter(const void *send, void *recv, size_t count, enum verbena_coll_type type,
			 int root, verbena_comm *comm, verbena_request **request);
int verbena_coll_all_to_all(const void *send, void *recv, size_t count,
			    enum verbena_coll_type type, verbena_comm *comm,
			    verbena_request **request);
/* Counts and displacements, in elements, of each rank's block. */
int verbena_coll_all_to_allv(const void *send, const size_t *send_counts,
			     const size_t *send_offsets, void *recv, const size_t *recv_counts,
			     const size_t *recv_offsets, enum verbena_coll_type type,
			     verbena_comm *comm, verbena_request **request);
int verbena_coll_barrier(verbena_comm *comm, verbena_request **request);

#define VERBENA_ANY_RANK (-1)
/* Messages of one tag between two ranks arrive in order. A message that is longer than `count` fails
 * the Recv; a shorter one is received. */
int verbena_coll_send(const void *buffer, size_t count, enum verbena_coll_type type, int to,
		      uint32_t tag, verbena_comm *comm, verbena_request **request);
int verbena_coll_recv(void *buffer, size_t count, enum verbena_coll_type type, int from,
		      uint32_t tag, verbena_comm *comm, verbena_request **request);

/* Returns the status of the operation when it is done. May be called again. */
int verbena_coll_wait(verbena_request *request);
/* Stores 1 in *done if the operation is done and returns its status; else stores 0. */
int verbena_coll_test(verbena_request *request, int *done);
/* Of a Recv that is done: the rank that sent. */
int verbena_coll_source(const verbena_request *request);
/* Why the operation failed; "" if it did not. Valid until the request is released. */
const char *verbena_coll_request_error(const verbena_request *request);
/* Gives the request back. If the operation is not done, it goes on without it. */
void verbena_coll_release(verbena_request *request);

/* Why the last call of this thread failed: one line, valid until the thread's next call. */
const char *verbena_coll_error(void);
/* Bytes of one element; 0 if there is no such type. */
size_t verbena_coll_size_of(enum verbena_coll_type type);

#ifdef __cplusplus
}
#endif

#endif
