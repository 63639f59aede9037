/* Transfers between the memories of agents, by one-sided RDMA (libverbena-transfer.so).
 *
 * An agent has a name, registers memory, and tells others of it by metadata. A transfer is a READ or a
 * WRITE of a list of blocks; when all of them are there, the peer can get one notification. The concepts
 * are those of NIXL's agents; docs/transfer.md has a table of the differences.
 *
 * The library calls the public verbs of <infiniband/verbs.h>, and <rdma/rdma_cma.h> for iWARP devices, so it
 * runs on any libibverbs: Verbena's (`verbena run`), or rdma-core's with a card. A short program:
 *
 *     verbena_agent *agent;
 *     verbena_agent_create(&agent, "decode-0", NULL);
 *     verbena_agent_register(agent, buffer, size, 0, NULL);
 *     verbena_agent_fetch_metadata(agent, "10.0.0.1:4000", 5, peer, sizeof peer);
 *     verbena_transfer_create(agent, VERBENA_READ, local, 2, remote, 2, peer, NULL, &transfer);
 *     verbena_transfer_post(transfer);
 *     if (verbena_transfer_wait(transfer, 30) != VERBENA_TRANSFER_OK)
 *         errx(1, "%s", verbena_transfer_error(transfer));
 *
 * Functions return an enum verbena_transfer_status. They may be called by several threads. Times are
 * seconds; a negative one is for ever.
 */
#ifndef VERBENA_TRANSFER_H
#define VERBENA_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct verbena_agent verbena_agent;
typedef struct verbena_transfer verbena_transfer;

enum verbena_transfer_status {
	VERBENA_TRANSFER_OK = 0,
	VERBENA_TRANSFER_IN_PROGRESS = 1, /* not done yet; a wait that ended before it was */
	VERBENA_TRANSFER_INVALID = 2,     /* an argument is wrong */
	VERBENA_TRANSFER_NOT_FOUND = 3,   /* no such agent, region or notification */
	VERBENA_TRANSFER_PEER = 4,        /* the peer died, left, or cannot be reached */
	VERBENA_TRANSFER_REFUSED = 5,     /* the peer's device refused access to its memory */
	VERBENA_TRANSFER_CANCELLED = 6,
	VERBENA_TRANSFER_NO_ROOM = 7,     /* a limit is reached, or a buffer is too small */
	VERBENA_TRANSFER_SYSTEM = 8,      /* the system or the device refused something */
};

enum verbena_transfer_op {
	VERBENA_READ = 0,  /* from the peer's memory into this agent's */
	VERBENA_WRITE = 1, /* from this agent's memory into the peer's */
};

/* Zero in a member stands for its default. */
struct verbena_agent_options {
	size_t size;           /* sizeof(struct verbena_agent_options) */
	const char *devices;   /* names with commas between them; default: all active, 4 at most */
	const char *listen;    /* HOST:PORT for metadata and connections; default: the device's address */
	unsigned queue_pairs;  /* for each device of a connection, 1 to 8; default 1 */
	size_t window;         /* bytes outstanding on a queue pair; default 16 MiB */
	size_t piece;          /* bytes of one request, at most; default 1 MiB */
	unsigned transfers;    /* in progress to one peer, at most; default 1024 */
};

int verbena_agent_create(verbena_agent **agent, const char *name,
			 const struct verbena_agent_options *options);
/* Transfers in progress fail, here and at peers. Release all transfers before. */
int verbena_agent_destroy(verbena_agent *agent);
const char *verbena_agent_name(const verbena_agent *agent);
/* HOST:PORT, for verbena_agent_fetch_metadata() of others. */
const char *verbena_agent_address(const verbena_agent *agent);

/* What may be done with registered memory; 0: all of it. */
enum verbena_region_rights {
	VERBENA_REMOTE_READ = 1,
	VERBENA_REMOTE_WRITE = 2,
	VERBENA_LOCAL_WRITE = 4, /* it can be the target of a READ; without, it may be mapped read-only */
};
/* Registers memory with all devices until verbena_agent_deregister(). It must stay mapped until then.
 * Metadata that was exchanged before does not have it. *region, if it is not NULL, gets the region's
 * number, which is never 0. */
int verbena_agent_register(verbena_agent *agent, void *address, size_t length, unsigned rights,
			   uint64_t *region);
/* Later access by peers is refused. */
int verbena_agent_deregister(verbena_agent *agent, uint64_t region);

/* Metadata of this agent: its name, address and regions. *size is that of `buffer`, and gets that of the
 * metadata; VERBENA_TRANSFER_NO_ROOM if the buffer is too small. */
int verbena_agent_metadata(verbena_agent *agent, void *buffer, size_t *size);
/* Loads metadata of another agent, in place of what was loaded of it before. `name` gets its name. */
int verbena_agent_load_metadata(verbena_agent *agent, const void *metadata, size_t size, char *name,
				size_t name_size);
/* The same, from the agent itself at HOST:PORT. */
int verbena_agent_fetch_metadata(verbena_agent *agent, const char *address, double timeout_s,
				 char *name, size_t name_size);
/* Forgets the peer's metadata and closes the connection to it. */
int verbena_agent_forget(verbena_agent *agent, const char *peer);
/* Connects now, instead of with the first transfer. */
int verbena_agent_connect(verbena_agent *agent, const char *peer, double timeout_s);

struct verbena_descriptor {
	uint64_t address;
	uint64_t length;
	uint64_t region; /* a region's number; 0: the one that holds the address */
};

struct verbena_transfer_options {
	size_t size;              /* sizeof(struct verbena_transfer_options) */
	unsigned priority;        /* 0 to 255: the higher first; equal ones share */
	const void *notification; /* what the peer is told when all bytes are there; NULL: nothing */
	size_t notification_size; /* VERBENA_NOTIFICATION_MAX at most */
	unsigned staged;          /* not 0: blocks move when verbena_transfer_advance() says so */
};
#define VERBENA_NOTIFICATION_MAX 4096

/* Prepares a transfer. The bytes of the lists correspond in order; both lists have the same total. */
int verbena_transfer_create(verbena_agent *agent, enum verbena_transfer_op op,
			    const struct verbena_descriptor *local, size_t local_count,
			    const struct verbena_descriptor *remote, size_t remote_count,
			    const char *peer, const struct verbena_transfer_options *options,
			    verbena_transfer **transfer);
/* Starts it. May be called again when it is done. */
int verbena_transfer_post(verbena_transfer *transfer);
/* The first `blocks` blocks of the local list of a staged transfer may move now. The transfer is done, and the
 * peer notified, when all blocks have moved. Fails if the transfer is not in progress. */
int verbena_transfer_advance(verbena_transfer *transfer, size_t blocks);
/* VERBENA_TRANSFER_OK: done. All bytes are in place, and the peer has the notification. */
int verbena_transfer_status(verbena_transfer *transfer);
int verbena_transfer_wait(verbena_transfer *transfer, double timeout_s);
/* Stops it. wait() then returns VERBENA_TRANSFER_CANCELLED, unless it was done before; from then on it
 * touches no memory. */
int verbena_transfer_cancel(verbena_transfer *transfer);
/* Why it failed: one line, valid until it is posted again. "" if it did not. */
const char *verbena_transfer_error(const verbena_transfer *transfer);
/* Gives it back. One in progress is cancelled first, and this waits for that. */
void verbena_transfer_release(verbena_transfer *transfer);

/* A notification without a transfer. Returns when the peer has it. */
int verbena_agent_notify(verbena_agent *agent, const char *peer, const void *notification, size_t size,
			 double timeout_s);
/* The next notification of any peer, or of `from` if it is not NULL: its sender's name, and its bytes.
 * VERBENA_TRANSFER_NOT_FOUND if none came in time. An agent holds 65,536 of them; peers then wait. */
int verbena_agent_next_notification(verbena_agent *agent, const char *from, double timeout_s,
				    char *peer, size_t peer_size, void *notification, size_t *size);

/* The blocks of a paged KV cache, as engines of LLM serving lay them out. */
enum verbena_kv_order {
	VERBENA_KV_LAYERS = 0, /* vLLM with FlashAttention: each layer [K, V][blocks] */
	VERBENA_KV_PAIRS = 1,  /* vLLM with FlashInfer: each layer [blocks][K, V] */
	VERBENA_KV_SPLIT = 2,  /* SGLang: K of all layers, then V of all layers */
	VERBENA_KV_LATENT = 3, /* MLA: each layer [blocks], K and V are one */
};
struct verbena_kv_layout {
	enum verbena_kv_order order;
	uint32_t layers;
	uint32_t blocks;       /* of the cache, in each layer */
	uint64_t block_bytes; /* of K alone, or of V */
};
/* Fills `list` with the blocks of one layer of a cache at `base`: `count` of K, then `count` of V, in
 * the order of the block table. Returns the length of the list: 2 * count, or count of a latent
 * cache; 0 if a layer or block does not exist. `list` NULL: only that. */
size_t verbena_kv_list(const struct verbena_kv_layout *layout, uint64_t base, uint64_t region,
		       uint32_t layer, const uint32_t *blocks, size_t count,
		       struct verbena_descriptor *list);

struct verbena_agent_counters {
	size_t size; /* sizeof(struct verbena_agent_counters) */
	uint64_t bytes;       /* of requests that completed */
	uint64_t transfers;    /* that are done */
	uint64_t failed;       /* that failed or were cancelled */
	uint64_t lanes_up;     /* queue pairs that work now */
	uint64_t lanes_lost;   /* queue pairs that failed; their requests went to others */
};
int verbena_agent_count(verbena_agent *agent, struct verbena_agent_counters *counters);

/* Why the last call of this thread failed: one line, valid until the thread's next call. */
const char *verbena_agent_error(void);

#ifdef __cplusplus
}
#endif

#endif
