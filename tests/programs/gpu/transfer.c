/* Two processes, each with a buffer in GPU memory. One sends its buffer, then writes another content,
 * and both sleep until a completion comes. Then the receiver frees its buffer, and another write
 * fails. Prints what each has found.
 *   transfer DRIVER */
#include "pair.h"

static void await_and_print(const char *who) {
  printf("%s: %s\n", who, ibv_wc_status_str(await()));
}

static int receive(void) {
  post_receive();
  say();
  await_and_print("receive");
  printf("sent: %s\n", holds('p') ? "right" : "wrong");
  say();
  listen_for();
  printf("written: %s\n", holds('q') ? "right" : "wrong");
  if (gpu_free(gpu) != 0) die("cuMemFree");
  say();
  struct ibv_async_event event;
  if (ibv_get_async_event(context, &event) != 0) die("ibv_get_async_event");
  ibv_ack_async_event(&event);
  printf("receiver: %s\n", ibv_event_type_str(event.event_type));
  listen_for();
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  become_pair(argv[1]);
  if (child == 0) return receive();
  listen_for();
  post(IBV_WR_SEND, 0, BYTES);
  await_and_print("send");
  listen_for();
  fill('q');
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  await_and_print("write");
  say();
  listen_for();
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  await_and_print("write to freed memory");
  say();
  return status_of_child();
}
