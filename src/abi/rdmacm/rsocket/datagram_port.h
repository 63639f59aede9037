// DatagramPort: the UD QP of a datagram rsocket at one address of ours, and its memory: slots of
// one datagram each, header first. It posts and polls; it never waits. One caller at a time.
#pragma once

#include <deque>
#include <vector>

#include "abi/rdmacm/device_table.h"
#include "abi/rdmacm/rsocket/completions.h"
#include "abi/rdmacm/rsocket/datagram_wire.h"
#include "abi/rdmacm/rsocket/io_cursor.h"
#include "abi/rdmacm/rsocket/registered_memory.h"
#include "abi/rdmacm/rsocket/settings.h"

namespace verbena::rdmacm::rsocket {

class DatagramPort {
 public:
  static constexpr u32 kSlot = 2048;  // bytes of a datagram with its header, at most

  DatagramPort() = default;
  ~DatagramPort();
  DatagramPort(const DatagramPort&) = delete;
  DatagramPort& operator=(const DatagramPort&) = delete;

  [[nodiscard]] int open(OpenDevice& device, const GID& address, const Settings& settings);

  [[nodiscard]] OpenDevice& device() const { return *device_; }
  [[nodiscard]] const GID& address() const { return address_; }
  [[nodiscard]] QPN qpn() const { return QPN{qp_->qp_num}; }
  [[nodiscard]] u32 longest() const { return longest_; }  // as kSlot, on this device

  bool progress();  // handles completions; returns true if there were any

  [[nodiscard]] bool can_send() const { return !free_sends_.empty(); }
  [[nodiscard]] bool is_sent() const { return free_sends_.size() == sends_; }
  // Needs can_send(); header and data together at most longest(). 0, or -1 and errno.
  [[nodiscard]] int send(const HeaderBytes& header, IOCursor& data, ibv_ah* to, QPN qpn);

  // The oldest received, whole; empty: none. It is there until drop_received().
  [[nodiscard]] std::span<const u8> received() const;
  void drop_received();
  // As if it had been received; lost when there is no room.
  void take_in(const HeaderBytes& header, std::span<const u8> data);

  [[nodiscard]] Completions& completions() { return completions_; }

 private:
  struct Received {
    u32 slot, length;
  };

  [[nodiscard]] int make_qp();
  [[nodiscard]] int start_qp();
  void post_receive(u32 slot);
  void on_completion(const ibv_wc& wc);
  [[nodiscard]] u8* send_slot(u32 slot) const { return send_.bytes() + std::size_t{slot} * kSlot; }
  [[nodiscard]] u8* receive_slot(u32 slot) const;

  static constexpr int kBatch = 16;

  OpenDevice* device_ = nullptr;
  GID address_;
  u32 sends_ = 0, receives_ = 0, inline_bytes_ = 0, longest_ = 0;
  Completions completions_;
  std::array<ibv_wc, kBatch> done_;
  ibv_qp* qp_ = nullptr;
  RegisteredMemory send_, receive_;
  std::vector<u32> free_sends_;
  std::vector<u32> spare_receives_;  // never posted: for take_in()
  std::deque<Received> received_;    // at most all slots
};

}  // namespace verbena::rdmacm::rsocket
