// librpma between two processes: remote writes made persistent by flushes, reads, an atomic write of
// 8 bytes, and a message with its answer; every byte compared.
//
// usage: transfers server|client ADDRESS PORT
#include <librpma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kSize = 1 << 20, kMarkOffset = kSize - 8, kMessageSize = 64 };

static void check(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "%s: %s\n", what, rpma_err_2str(error));
  exit(1);
}

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(1);
}

static uint8_t byte_of(size_t i) { return (uint8_t)(i * 7 + i / 256); }

static void* make_memory(void) {
  void* memory =
      mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  return memory;
}

static void await_event(struct rpma_conn* conn, enum rpma_conn_event wanted) {
  enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
  check(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
  if (event == wanted) return;
  fprintf(stderr, "wrong event: %s\n", rpma_utils_conn_event_2str(event));
  exit(1);
}

static void await_either(struct rpma_conn* conn, enum ibv_wc_opcode one,
                         enum ibv_wc_opcode other) {
  struct rpma_cq* cq = NULL;
  struct ibv_wc wc;
  check(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
  check(rpma_cq_wait(cq), "rpma_cq_wait");
  check(rpma_cq_get_wc(cq, 1, &wc, NULL), "rpma_cq_get_wc");
  require(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  require(wc.opcode == one || wc.opcode == other, "opcode of a completion");
}

static void await_completion(struct rpma_conn* conn, enum ibv_wc_opcode wanted) {
  await_either(conn, wanted, wanted);
}

// The private data of the server's acceptance: its memory, described by librpma.
struct description {
  uint8_t size;
  uint8_t bytes[63];
};

static void serve(struct rpma_peer* peer, const char* address, const char* port) {
  uint8_t* memory = make_memory();
  struct rpma_mr_local* mr = NULL;
  check(rpma_mr_reg(peer, memory, kSize,
                    RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV |
                        RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
                    &mr),
        "rpma_mr_reg");
  struct description description = {0};
  size_t size = 0;
  check(rpma_mr_get_descriptor_size(mr, &size), "rpma_mr_get_descriptor_size");
  require(size <= sizeof(description.bytes), "size of a descriptor");
  description.size = (uint8_t)size;
  check(rpma_mr_get_descriptor(mr, description.bytes), "rpma_mr_get_descriptor");

  struct rpma_ep* endpoint = NULL;
  struct rpma_conn_req* request = NULL;
  struct rpma_conn* conn = NULL;
  check(rpma_ep_listen(peer, address, port, &endpoint), "rpma_ep_listen");
  printf("listening\n");
  check(rpma_ep_next_conn_req(endpoint, NULL, &request), "rpma_ep_next_conn_req");
  check(rpma_conn_req_recv(request, mr, 0, kMessageSize, NULL), "rpma_conn_req_recv");
  struct rpma_conn_private_data data = {.ptr = &description, .len = sizeof(description)};
  check(rpma_conn_req_connect(&request, &data, &conn), "rpma_conn_req_connect");
  await_event(conn, RPMA_CONN_ESTABLISHED);

  await_completion(conn, IBV_WC_RECV);  // the client has written, flushed and read
  for (size_t i = kMessageSize; i < kMarkOffset; ++i)
    require(memory[i] == byte_of(i), "a byte that was written");
  require(memcmp(memory + kMarkOffset, "atomical", 8) == 0, "what was written atomically");
  require(strcmp((char*)memory, "written") == 0, "the message");
  strcpy((char*)memory, "compared");
  check(rpma_send(conn, mr, 0, kMessageSize, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
  await_completion(conn, IBV_WC_SEND);
  await_event(conn, RPMA_CONN_CLOSED);
  check(rpma_conn_delete(&conn), "rpma_conn_delete");
  check(rpma_ep_shutdown(&endpoint), "rpma_ep_shutdown");
  check(rpma_mr_dereg(&mr), "rpma_mr_dereg");
}

static struct rpma_conn* connect_to(struct rpma_peer* peer, const char* address,
                                    const char* port) {
  struct rpma_conn_req* request = NULL;
  struct rpma_conn* conn = NULL;
  check(rpma_conn_req_new(peer, address, port, NULL, &request), "rpma_conn_req_new");
  check(rpma_conn_req_connect(&request, NULL, &conn), "rpma_conn_req_connect");
  await_event(conn, RPMA_CONN_ESTABLISHED);
  return conn;
}

static void transfer(struct rpma_peer* peer, const char* address, const char* port) {
  uint8_t* memory = make_memory();
  struct rpma_mr_local* mr = NULL;
  struct rpma_mr_remote* remote = NULL;
  check(rpma_mr_reg(peer, memory, kSize,
                    RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_RECV |
                        RPMA_MR_USAGE_SEND,
                    &mr),
        "rpma_mr_reg");
  struct rpma_conn* conn = connect_to(peer, address, port);
  struct rpma_conn_private_data data;
  check(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
  const struct description* description = data.ptr;
  require(data.len >= sizeof(*description), "length of private data");
  check(rpma_mr_remote_from_descriptor(description->bytes, description->size, &remote),
        "rpma_mr_remote_from_descriptor");

  for (size_t i = 0; i < kSize; ++i) memory[i] = byte_of(i);
  check(rpma_write(conn, remote, 0, mr, 0, kMarkOffset, RPMA_F_COMPLETION_ON_ERROR, NULL),
        "rpma_write");
  check(rpma_flush(conn, remote, 0, kMarkOffset, RPMA_FLUSH_TYPE_VISIBILITY,
                   RPMA_F_COMPLETION_ALWAYS, NULL),
        "rpma_flush");
  await_completion(conn, IBV_WC_RDMA_READ);  // a flush without FLUSH in hardware is a READ
  check(rpma_atomic_write(conn, remote, kMarkOffset, "atomical", RPMA_F_COMPLETION_ALWAYS, NULL),
        "rpma_atomic_write");
  await_either(conn, IBV_WC_RDMA_WRITE, IBV_WC_ATOMIC_WRITE);  // as it was built

  memset(memory, 0, kSize);
  check(rpma_read(conn, mr, 0, remote, 0, kSize, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_read");
  await_completion(conn, IBV_WC_RDMA_READ);
  for (size_t i = 0; i < kMarkOffset; ++i)
    require(memory[i] == byte_of(i), "a byte that was read");
  require(memcmp(memory + kMarkOffset, "atomical", 8) == 0, "what was read of the atomic write");

  check(rpma_recv(conn, mr, kMessageSize, kMessageSize, NULL), "rpma_recv");
  strcpy((char*)memory, "written");
  check(rpma_send(conn, mr, 0, kMessageSize, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_send");
  await_completion(conn, IBV_WC_RECV);
  require(strcmp((char*)memory + kMessageSize, "compared") == 0, "the answer");
  check(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
  await_event(conn, RPMA_CONN_CLOSED);
  check(rpma_conn_delete(&conn), "rpma_conn_delete");
  check(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
  check(rpma_mr_dereg(&mr), "rpma_mr_dereg");
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct ibv_context* context = NULL;
  struct rpma_peer* peer = NULL;
  const int is_server = strcmp(arguments[1], "server") == 0;
  check(rpma_utils_get_ibv_context(
            arguments[2], is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE,
            &context),
        "rpma_utils_get_ibv_context");
  check(rpma_peer_new(context, &peer), "rpma_peer_new");
  (is_server ? serve : transfer)(peer, arguments[2], arguments[3]);
  check(rpma_peer_delete(&peer), "rpma_peer_delete");
  printf("all right\n");
  return 0;
}
