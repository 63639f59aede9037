// Rail: one RDMA device, opened: its protection domain, completion queue and address. A
// communicator has one to four; messages go by the first, long transfers by all.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "coll/error.h"

namespace verbena::coll {

inline constexpr u32 kMaxRails = 4;

// QPAddress: the data that a peer needs about a queue pair and its port.
struct QPAddress {
  std::array<u8, 16> gid{};
  u32 qp_num = 0;
  u32 psn = 0;
  u16 lid = 0;
  u8 mtu = 0;           // an enum ibv_mtu
  u8 reads = 0;         // outstanding READ requests that it serves
  u16 stream_port = 0;  // where an iWARP device listens (StreamConnector); 0: another device

  // The IP address in the GID, or "" if it has none.
  [[nodiscard]] std::string host() const;
};

class Rail {
 public:
  // `completions`: room in the completion queue.
  [[nodiscard]] static Expected<std::unique_ptr<Rail>> open(ibv_device* device, u32 completions);
  ~Rail();
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  [[nodiscard]] ibv_context* context() const { return context_; }
  [[nodiscard]] ibv_pd* pd() const { return pd_; }
  [[nodiscard]] ibv_cq* cq() const { return cq_; }
  [[nodiscard]] ibv_comp_channel* channel() const { return channel_; }
  [[nodiscard]] u8 port() const { return 1; }
  [[nodiscard]] u8 gid_index() const { return gid_index_; }
  [[nodiscard]] u8 reads() const { return reads_; }
  // Without queue pair and PSN.
  [[nodiscard]] QPAddress address() const;
  // An IP address of it, or "".
  [[nodiscard]] std::string host() const;

  [[nodiscard]] ibv_mr* register_memory(void* address, std::size_t length) const;

 private:
  Rail() = default;
  [[nodiscard]] Expected<void> prepare(u32 completions);
  void choose_gid(const ibv_port_attr& port);

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_port_attr attributes_{};
  ibv_gid gid_{};
  u8 gid_index_ = 0, reads_ = 1;
};

using Rails = std::span<const std::unique_ptr<Rail>>;

// `names`: with commas between them; "": all that are active, kMaxRails at most.
[[nodiscard]] Expected<std::vector<std::unique_ptr<Rail>>> open_rails(const std::string& names,
                                                                      u32 completions);

}  // namespace verbena::coll
