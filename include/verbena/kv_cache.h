/* Paged KV caches of LLM serving (libverbena-transfer.so): blocks that requests share, and their transfers
 * layer by layer. <verbena/transfer.h> has agents, transfers and the layouts of caches.
 *
 * The prefill instance, which computes a prompt of `n` blocks and moves them while it computes:
 *
 *     verbena_kv_cache_create(&cache, agent, &layout, memory);
 *     verbena_kv_allocate(cache, hashes, n, 0, blocks, &reused);
 *     verbena_kv_transfer_create(cache, VERBENA_WRITE, blocks, n, &place, peer_blocks, peer, &options, &transfer);
 *     verbena_transfer_post(transfer);
 *     for (layer = 0; layer < layout.layers; layer++) {
 *         compute(layer);
 *         verbena_kv_layers_ready(transfer, layer + 1);
 *     }
 *     verbena_transfer_wait(transfer, 30);
 *     verbena_transfer_release(transfer);
 *     verbena_kv_publish(cache, blocks, n);
 *     verbena_kv_release(cache, blocks, n);
 *
 * The decode instance allocates `peer_blocks`, tells them and its verbena_kv_place to the prefill instance, and
 * reads the notification of the transfer. Functions return an enum verbena_transfer_status, and may be called
 * by several threads.
 */
#ifndef VERBENA_KV_CACHE_H
#define VERBENA_KV_CACHE_H

#include <verbena/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct verbena_kv_cache verbena_kv_cache;

/* Registers the memory of the cache with the agent: layers * blocks * block_bytes, twice that if K and V
 * are apart. All blocks are free. */
int verbena_kv_cache_create(verbena_kv_cache **cache, verbena_agent *agent,
			    const struct verbena_kv_layout *layout, void *memory);
/* Withdraws the memory. Release all transfers of the cache before. */
void verbena_kv_cache_destroy(verbena_kv_cache *cache);

/* Where a cache is, for transfers of peers. Plain data: send it as it is. */
struct verbena_kv_place {
	struct verbena_kv_layout layout;
	uint64_t base;
	uint64_t region;
};
int verbena_kv_cache_place(const verbena_kv_cache *cache, struct verbena_kv_place *place);

/* The block table of a request: a block for each of `hash_count` hashes, then `more` blocks without one. A
 * block's hash stands for all tokens from the first to the block's last. The first *reused blocks were
 * published by earlier requests: they have their contents, and must not be written. Blocks that nobody uses
 * are evicted if there is need, the one first that was not used for the longest time.
 * VERBENA_TRANSFER_NO_ROOM: all other blocks are in use; nothing has changed. */
int verbena_kv_allocate(verbena_kv_cache *cache, const uint64_t *hashes, size_t hash_count, size_t more,
			uint32_t *blocks, size_t *reused);
/* The blocks have their contents: later requests with their hashes share them. */
int verbena_kv_publish(verbena_kv_cache *cache, const uint32_t *blocks, size_t count);
/* The request is over, or cancelled. Published blocks keep their contents until they are evicted. */
int verbena_kv_release(verbena_kv_cache *cache, const uint32_t *blocks, size_t count);

/* A transfer between `count` blocks of the cache and as many of a peer's, in all layers. The layouts may
 * differ in order and number of blocks. The cache keeps its blocks until the transfer is released, even if
 * the request releases them before; several transfers may share blocks. After verbena_transfer_post()
 * nothing moves until verbena_kv_layers_ready(). The notification of `options` follows the last layer. */
int verbena_kv_transfer_create(verbena_kv_cache *cache, enum verbena_transfer_op op, const uint32_t *blocks,
			       size_t count, const struct verbena_kv_place *remote,
			       const uint32_t *remote_blocks, const char *peer,
			       const struct verbena_transfer_options *options, verbena_transfer **transfer);
/* The first `layers` layers of the blocks may move now. */
int verbena_kv_layers_ready(verbena_transfer *transfer, uint32_t layers);

struct verbena_kv_counters {
	size_t size;        /* sizeof(struct verbena_kv_counters) */
	uint64_t used;      /* blocks that requests and transfers hold */
	uint64_t cached;    /* blocks that nobody holds, with their contents */
	uint64_t evictions; /* since the cache was made */
};
int verbena_kv_count(verbena_kv_cache *cache, struct verbena_kv_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
