// For tests: a NIC in a thread of the test, and its counters.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "host/nic/nic_server.h"
#include "host/os/clock.h"

namespace verbena::host {

class NICTest : public testing::Test {
 protected:
  NICTest() { config_.socket = path_; }
  void TearDown() override { stop(); }

  // With config_, as reconfigure().
  void start() {
    Expected<std::unique_ptr<NICServer>> opened = NICServer::open(config_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    server_ = std::move(*opened);
    stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { server_->run(stop_.get(), [this] { reload(); }); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    ring_doorbell(stop_.get());
    thread_.join();
    server_.reset();
  }
  void reconfigure() {
    wants_reload_ = true;
    while (wants_reload_) sleep_for(ms(1));
  }

  // Returns the function's counter, once it has the value or a while has passed.
  u64 counter(const std::string& function, const std::string& name, u64 wanted) const {
    u64 value = 0;
    for (const Time end = monotonic_now() + sec(3); monotonic_now() < end; sleep_for(ms(2))) {
      const std::string status = *status_of_nic(path_);
      const std::size_t from = status.find("\"name\": \"" + function);
      const std::size_t at = status.find("\"" + name + "\": ", from);
      if (from == std::string::npos || at == std::string::npos) return ~u64{0};
      value = std::stoull(status.substr(at + name.size() + 4));
      if (value == wanted) return value;
    }
    return value;
  }
  // The time that the NIC's thread computes in `time`.
  Duration computes_in(Duration time) {
    clockid_t clock{};
    EXPECT_EQ(::pthread_getcpuclockid(thread_.native_handle(), &clock), 0);
    timespec before{}, after{};
    ::clock_gettime(clock, &before);
    sleep_for(time);
    ::clock_gettime(clock, &after);
    return sec(after.tv_sec - before.tv_sec) + ns(after.tv_nsec - before.tv_nsec);
  }

  const std::string path_ = "/tmp/verbena-nic-test-" + std::to_string(::getpid());
  NICConfig config_;
  std::unique_ptr<NICServer> server_;
  std::thread thread_;
  Expected<void> reloaded_{};

 private:
  void reload() {
    if (!wants_reload_) return;
    reloaded_ = server_->reconfigure(config_);
    wants_reload_ = false;
  }

  Descriptor stop_;
  std::atomic<bool> wants_reload_{false};
};

}  // namespace verbena::host
