// Two devices, RC connections, and nothing between them but a copy of each frame: what remains is
// the cost of the core. Time stands still but for one nanosecond a frame.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"

namespace bench {

struct Port {  // one device, its QPs, and its memory
  std::unique_ptr<verbena::Device> device;
  verbena::ProtectionDomain* pd = nullptr;
  verbena::CompletionQueue* cq = nullptr;
  std::vector<verbena::QueuePair*> qps;
  std::vector<verbena::u8> memory;
  verbena::MRKeys keys;

  [[nodiscard]] verbena::u64 address() const {
    return reinterpret_cast<verbena::u64>(memory.data());
  }
};

class DevicePair {
 public:
  static constexpr std::size_t kMemorySize = 4u << 20;  // bytes

  DevicePair();  // with one connection
  // One more, between queues of `depth` WQEs.
  void connect(verbena::u32 depth);

  Port a, b;

  // The first bytes of a's memory; and a request that moves them to or from b's.
  [[nodiscard]] verbena::SGE local(verbena::u32 length) const;
  [[nodiscard]] verbena::SendWR one_sided(verbena::SendOp op, const verbena::SGE& local) const;

  // Posts the request at `a`, to each QP in turn, carries frames until `a` has its completion; how
  // many frames went either way.
  verbena::u64 complete(const verbena::SendWR& wr);

 private:
  bool carry(Port& from, Port& to);  // one frame; returns false if there is none

  verbena::Time now_ = verbena::Time::from_ns(1);
  verbena::EgressFrame frame_;
  std::vector<verbena::u8> wire_;
  verbena::u64 frames_ = 0;
  std::size_t next_qp_ = 0;
};

}  // namespace bench
