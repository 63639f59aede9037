#include "transport/rc/loss_window.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(LossWindowTest, StaysOpenWithoutLoss) {
  LossWindow window(100);
  window.on_acknowledged(1000);
  EXPECT_EQ(window.packets(), 100u);
}

TEST(LossWindowTest, HalvesDownToTheFloorAndGrowsBackToTheLimit) {
  LossWindow window(100);
  window.on_loss();
  EXPECT_EQ(window.packets(), 50u);
  for (int i = 0; i < 10; ++i) window.on_loss();
  EXPECT_EQ(window.packets(), LossWindow::kFloor);
  window.on_acknowledged(8);
  EXPECT_EQ(window.packets(), LossWindow::kFloor + 1);
  for (int i = 0; i < 8; ++i) window.on_acknowledged(1);
  EXPECT_EQ(window.packets(), LossWindow::kFloor + 2);
  window.on_acknowledged(100000);
  EXPECT_EQ(window.packets(), 100u);
}

TEST(LossWindowTest, ASmallLimitIsNeverExceeded) {
  LossWindow window(4);
  window.on_loss();
  EXPECT_EQ(window.packets(), 4u);
  EXPECT_EQ(LossWindow(0).packets(), 1u);
}

}  // namespace
}  // namespace verbena
