// A NIC in a thread of the test, with two functions, and tenants: programs that write what they
// like into their rings.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/nic/nic_server.h"
#include "host/os/clock.h"
#include "host/sharing/qpn_slot.h"
#include "wire/ib/bth.h"

namespace verbena::host {

class NICServerTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.socket = path_;
    config_.functions = {{.name = "red", .address = "127.88.1.1", .p_keys = {0x8001}},
                         {.name = "blue", .address = "127.88.1.2", .p_keys = {0x8001, 0xffff}}};
  }
  void TearDown() override { stop(); }
  void start() {
    Expected<std::unique_ptr<NICServer>> opened = NICServer::open(config_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    server_ = std::move(*opened);
    stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { server_->run(stop_.get(), [this] { reload(); }); });
  }
  void reload() {
    if (!wants_reload_) return;
    reloaded_ = server_->reconfigure(config_);
    wants_reload_ = false;
  }
  void reconfigure() {
    wants_reload_ = true;
    while (wants_reload_) sleep_for(ms(1));
  }
  void stop() {
    if (!thread_.joinable()) return;
    ring_doorbell(stop_.get());
    thread_.join();
    server_.reset();
  }

  // Tenant: an attached program. If its user may have two functions, it gets the one with fewer
  // programs.
  struct Tenant {
    NICAttachment attachment;
    GID address;
    ClassWriters writer;
    FrameRingReader reader;
    explicit Tenant(NICAttachment a)
        : attachment(std::move(a)),
          address(*GID::parse(text_of(attachment.attached.address))),
          writer(rings()),
          reader(rings().to_program) {}
    NICRings& rings() { return *reinterpret_cast<NICRings*>(attachment.rings.data()); }
    u32 qpn() const { return first_qpn_of(attachment.attached.slot).value; }
    void add(const FrameRing::Addresses& addresses, std::span<const u8> packet,
             u8 traffic_class = 0) {
      u8* const out =
          writer.add(traffic_class, addresses, static_cast<u32>(packet.size() + kICRCSize));
      ASSERT_NE(out, nullptr);
      writer.last().traffic_class = traffic_class;
      writer.last().hop_limit = 64;
      writer.last().udp_source_port = 0xc000;
      std::copy(packet.begin(), packet.end(), out);
    }
    void send(const FrameRing::Addresses& addresses, std::span<const u8> packet,
              u8 traffic_class = 0) {
      add(addresses, packet, traffic_class);
      (void)writer.publish();
      ring_doorbell(attachment.doorbell_of_nic.get());
    }
  };
  std::unique_ptr<Tenant> attach(const std::string& function = "") {
    Expected<NICAttachment> attachment = attach_to_nic(path_, 0, function);
    EXPECT_TRUE(attachment.has_value()) << attachment.error().message;
    return std::make_unique<Tenant>(std::move(*attachment));
  }
  static std::vector<u8> packet_to(u32 qpn, u16 p_key) {
    std::vector<u8> packet(BTH::kSize);
    BTH{.opcode = {Service::kRC, Op::kSendOnly}, .p_key = PKey{p_key}, .dest_qp = QPN{qpn}}.encode(
        std::span(packet).first<BTH::kSize>());
    return packet;
  }
  // Returns the function's counter, once it has the value or a while has passed.
  u64 counter(const std::string& function, const std::string& name, u64 wanted) {
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
  static bool receives(Tenant& tenant, FrameRingReader::Record& record) {
    for (const Time end = monotonic_now() + sec(2); monotonic_now() < end; sleep_for(us(200)))
      if (tenant.reader.poll(record)) return true;
    return false;
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
  Descriptor stop_;
  std::thread thread_;
  std::atomic<bool> wants_reload_{false};
  Expected<void> reloaded_{};
};

}  // namespace verbena::host
