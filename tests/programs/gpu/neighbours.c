/* Two processes of one host whose GPU memories exchange bytes by copies on the GPU (CUDA IPC), on the
 * stand-in for the driver. SCENARIO says what happens to them. Prints a line for each step.
 *   neighbours DRIVER SCENARIO */
#include <poll.h>
#include <signal.h>

#include "pair.h"

static void (*control)(const char *, long);
static unsigned long long (*count)(const char *);

static void expect(int condition, const char *what) {
  printf("%s: %s\n", what, condition ? "right" : "wrong");
  fflush(stdout);
  if (!condition) exit(1);
}

static unsigned long long on_device(void) { return count("copies_on_device"); }
static unsigned long long through_host(void) { return count("copies"); }

/* The copies of this process stay where they are, until go_on(). */
static void begin_write_that_is_stuck(void) {
  control("stuck", 1);
  fill('s');
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  struct ibv_wc wc;
  for (int i = 0; i < 100; ++i) {
    if (ibv_poll_cq(cq, 1, &wc) != 0) expect(0, "a stuck copy does not complete");
    usleep(100);
  }
}
static void go_on(void) { control("stuck", 0); }

/* --- transfers: by a program that polls, and by one that sleeps */

static void transfers_of_child(void) {
  for (const char *expected = "wxyz"; *expected != 0; ++expected) {
    listen_for();
    expect(holds(*expected), "the target");
    say();
  }
  post_receive();
  say();
  expect(await() == IBV_WC_SUCCESS && holds('t'), "received");
  fill('r');
  say();
  listen_for();
}

static void let_child_look(void) {
  say();
  listen_for();
}

static void transfers(void) {
  const unsigned long long staged = through_host() + 4; /* those of fill() */
  fill('w');
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  expect(await() == IBV_WC_SUCCESS, "a WRITE completes");
  let_child_look();
  fill('x');
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  expect(poll_for() == IBV_WC_SUCCESS, "a WRITE completes for a program that polls");
  let_child_look();
  fill('y');
  for (unsigned i = 0; i < 64; ++i) post(IBV_WR_RDMA_WRITE, i * (BYTES / 64), BYTES / 64);
  for (unsigned i = 0; i < 64; ++i) expect(poll_for() == IBV_WC_SUCCESS, "one of many completes");
  let_child_look();
  fill('z');
  take_event(); /* that of what was polled */
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  expect(await() == IBV_WC_SUCCESS, "a WRITE completes for a program that sleeps again");
  let_child_look();
  expect(through_host() == staged, "no copy touches host memory");
  expect(on_device() >= 64 + 3, "each message is a copy on the GPU");
  expect(count("opened") == 1, "one handle is open");

  listen_for();
  fill('t');
  post(IBV_WR_SEND, 0, BYTES);
  expect(await() == IBV_WC_SUCCESS, "a SEND completes");
  listen_for();
  post(IBV_WR_RDMA_READ, 0, BYTES);
  expect(await() == IBV_WC_SUCCESS && holds('r'), "a READ completes");
  say();
}

/* --- the owner deregisters its region while a copy runs */

static void deregistration_of_child(void) {
  listen_for();
  ibv_dereg_mr(mr);
  say();
  expect(holds('s'), "the copy has ended before the deregistration");
  listen_for();
}

static void deregistration(void) {
  begin_write_that_is_stuck();
  say();
  struct pollfd answer = {.fd = in, .events = POLLIN};
  expect(poll(&answer, 1, 200) == 0, "the deregistration waits");
  go_on();
  listen_for();
  expect(poll_for() == IBV_WC_SUCCESS, "the WRITE completes");
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  expect(poll_for() == IBV_WC_REM_ACCESS_ERR, "the next one is refused");
  for (int i = 0; i < 1000 && count("opened") != 0; ++i) usleep(1000);
  expect(count("opened") == 0, "the handle is closed");
  say();
}

/* --- the driver does not open the handle, or gives none: packets */

static void refused(void) {
  control("opens", 0);
  fill('w');
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  expect(poll_for() == IBV_WC_SUCCESS, "a WRITE completes");
  expect(on_device() == 0 && through_host() > 1, "it goes through host memory");
  say();
  listen_for();
}
static void refused_of_child(void) {
  listen_for();
  expect(holds('w'), "the target");
  say();
}

/* --- the peer is killed while a copy runs */

static void killed(void) {
  begin_write_that_is_stuck();
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  go_on();
  const enum ibv_wc_status first = poll_for();
  expect(first == IBV_WC_SUCCESS || first == IBV_WC_RETRY_EXC_ERR, "the WRITE ends");
  if (first != IBV_WC_SUCCESS) return;
  post(IBV_WR_RDMA_WRITE, 0, BYTES);
  expect(poll_for() == IBV_WC_RETRY_EXC_ERR, "the next one finds nobody");
}
static void killed_of_child(void) { pause(); }

/* --- the requester's context ends while a copy runs */

static void reset(void) {
  begin_write_that_is_stuck();
  int (*destroy)(void *) = dlsym(RTLD_DEFAULT, "cuCtxDestroy_v2");
  int (*current)(void **) = dlsym(RTLD_DEFAULT, "cuCtxGetCurrent");
  void *now = NULL;
  if (current(&now) != 0 || destroy(now) != 0) die("cuCtxDestroy");
  go_on();
  expect(poll_for() == IBV_WC_LOC_PROT_ERR, "the WRITE fails");
  say();
}
static void reset_of_child(void) { listen_for(); }

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*of_parent)(void), (*of_child)(void);
  } scenarios[] = {{"transfers", transfers, transfers_of_child},
                   {"deregistration", deregistration, deregistration_of_child},
                   {"refused", refused, refused_of_child},
                   {"killed", killed, killed_of_child},
                   {"reset", reset, reset_of_child}};
  if (argc != 3) return 2;
  dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  control = dlsym(RTLD_DEFAULT, "standin_control");
  count = dlsym(RTLD_DEFAULT, "standin_count");
  for (unsigned i = 0; i < sizeof scenarios / sizeof *scenarios; ++i) {
    if (strcmp(argv[2], scenarios[i].name) != 0) continue;
    become_pair(argv[1]);
    (child == 0 ? scenarios[i].of_child : scenarios[i].of_parent)();
    if (child == 0 || strcmp(argv[2], "killed") == 0) return 0;
    return status_of_child();
  }
  return 2;
}
