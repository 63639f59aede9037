// The discovery log page: a header of 1024 bytes, then entries of 1024. NVMe over
// Fabrics 1.1a, 5.3.
#pragma once

#include <string>

#include "wire/nvme/fabrics.h"

namespace verbena::nvme {

struct DiscoveryHeader {
  static constexpr std::size_t kSize = 1024;
  u64 generation = 0, records = 0;

  void encode(std::span<u8, kSize> out) const {
    std::ranges::fill(out, u8{0});
    store_le<u64>(out.data(), generation);
    store_le<u64>(out.data() + 8, records);
  }
  [[nodiscard]] static DiscoveryHeader decode(std::span<const u8, kSize> in) {
    return {load_le<u64>(in.data()), load_le<u64>(in.data() + 8)};
  }
};

struct DiscoveryEntry {
  static constexpr std::size_t kSize = 1024;
  enum class Transport : u8 { kRDMA = 1, kFibreChannel = 2, kTCP = 3 };
  enum class Family : u8 { kIPv4 = 1, kIPv6 = 2 };
  enum class Kind : u8 { kReferral = 1, kNVM = 2, kThisDiscovery = 3 };
  enum class Provider : u8 { kUnspecified = 1, kInfiniBand, kRoCE, kRoCEv2, kIWARP };

  Transport transport = Transport::kRDMA;
  Family family = Family::kIPv4;
  Kind kind = Kind::kNVM;
  u16 port_id = 1, controller_id = kDynamicController, admin_queue_size = 32;
  std::string service, subsystem_nqn, address;
  Provider provider = Provider::kUnspecified;

  void encode(std::span<u8, kSize> out) const {
    std::ranges::fill(out, u8{0});
    const LEWriter<kSize> w(out);
    w.put<u8, 0>(static_cast<u8>(transport));
    w.put<u8, 1>(static_cast<u8>(family));
    w.put<u8, 2>(static_cast<u8>(kind));
    w.put<u16, 4>(port_id);
    w.put<u16, 6>(controller_id);
    w.put<u16, 8>(admin_queue_size);
    w.text<32, 32>(service);
    w.text<256, 256>(subsystem_nqn);
    w.text<512, 256>(address);
    w.put<u8, 768>(1);  // QPTYPE: RC
    w.put<u8, 769>(static_cast<u8>(provider));
    w.put<u8, 770>(1);  // CMS: rdma_cm
  }
  [[nodiscard]] static DiscoveryEntry decode(std::span<const u8, kSize> in) {
    const LEReader<kSize> r(in);
    DiscoveryEntry e;
    e.transport = static_cast<Transport>(in[0]);
    e.family = static_cast<Family>(in[1]);
    e.kind = static_cast<Kind>(in[2]);
    e.port_id = r.get<u16, 4>();
    e.controller_id = r.get<u16, 6>();
    e.admin_queue_size = r.get<u16, 8>();
    e.service = without_spaces(r.text<32, 32>());
    e.subsystem_nqn = r.text<256, 256>();
    e.address = without_spaces(r.text<512, 256>());
    e.provider = static_cast<Provider>(in[769]);
    return e;
  }

 private:
  static std::string without_spaces(std::string_view text) {
    return std::string(text.substr(0, text.find(' ')));
  }
};

}  // namespace verbena::nvme
