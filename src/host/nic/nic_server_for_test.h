// A NIC in a thread of the test, with two functions, and tenants: programs that write what they
// like into their rings.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "host/nic/nic_for_test.h"
#include "host/sharing/qpn_slot.h"
#include "wire/ib/bth.h"

namespace verbena::host {

class NICServerTest : public NICTest {
 protected:
  void SetUp() override {
    config_.functions = {{.name = "red", .address = "127.88.1.1", .p_keys = {0x8001}},
                         {.name = "blue", .address = "127.88.1.2", .p_keys = {0x8001, 0xffff}}};
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
  static bool receives(Tenant& tenant, FrameRingReader::Record& record) {
    for (const Time end = monotonic_now() + sec(2); monotonic_now() < end; sleep_for(us(200)))
      if (tenant.reader.poll(record)) return true;
    return false;
  }
};

}  // namespace verbena::host
