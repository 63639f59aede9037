#include "transport/shared_window.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(SharedWindowTest, ThoseWithPacketsInFlightShareEvenly) {
  SharedWindow window{.packets = 100};
  WindowShare a(&window), b(&window);
  EXPECT_EQ(a.packets(1000), 100u);
  a.note(true);
  a.note(true);
  EXPECT_EQ(a.packets(1000), 100u);
  b.note(true);
  EXPECT_EQ(a.packets(1000), 50u);
  EXPECT_EQ(a.packets(8), 8u);  // its own window
  b.note(false);
  EXPECT_EQ(a.packets(1000), 100u);
}

TEST(SharedWindowTest, EachMayAlwaysHaveALittle) {
  SharedWindow window{.packets = 100, .requesters = 1000};
  const WindowShare share(&window);
  EXPECT_EQ(share.packets(1000), SharedWindow::kLeast);
}

TEST(SharedWindowTest, WhoIsGoneHasNoPart) {
  SharedWindow window{.packets = 100};
  {
    WindowShare share(&window);
    share.note(true);
    EXPECT_EQ(window.requesters, 1u);
  }
  EXPECT_EQ(window.requesters, 0u);
}

TEST(SharedWindowTest, WithoutOneThereIsNoLimit) {
  WindowShare share(nullptr);
  share.note(true);
  EXPECT_EQ(share.packets(1000), 1000u);
}

}  // namespace
}  // namespace verbena
