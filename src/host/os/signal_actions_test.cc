#include "host/os/signal_actions.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace verbena::host {
namespace {

// SIGUSR1's action, until the end of the test.
class SignalActionsTest : public testing::Test {
 protected:
  SignalActionsTest() { ::sigaction(SIGUSR1, nullptr, &before_); }
  ~SignalActionsTest() override { ::sigaction(SIGUSR1, &before_, nullptr); }
  static void handle_with(int flags) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  }

 private:
  struct sigaction before_ {};
};

TEST_F(SignalActionsTest, OnlyAHandlerWithoutRestartInterruptsCalls) {
  if (some_handler_interrupts_calls()) GTEST_SKIP() << "the test's runner has such a handler";
  handle_with(SA_RESTART);
  EXPECT_FALSE(some_handler_interrupts_calls());
  handle_with(0);
  EXPECT_TRUE(some_handler_interrupts_calls());
  handle_with(SA_SIGINFO);
  EXPECT_TRUE(some_handler_interrupts_calls());
  ::signal(SIGUSR1, SIG_IGN);
  EXPECT_FALSE(some_handler_interrupts_calls());
}

}  // namespace
}  // namespace verbena::host
