// Stream: one connection's bytes, both ways, over an RC QP: librdmacm's docs/rsocket.
// We write into the peer's buffer, of which it offers a half at a time in `targets_`, and it into
// ours. Every message takes a credit of the peer's receive queue; control messages take one of a
// few spare. It decides and posts; it never waits. One caller at a time (its socket's mutex).
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>
#include <vector>

#include "abi/rdmacm/rsocket/completions.h"
#include "abi/rdmacm/rsocket/io_cursor.h"
#include "abi/rdmacm/rsocket/registered_memory.h"
#include "abi/rdmacm/rsocket/settings.h"
#include "abi/rdmacm/rsocket/wire.h"

namespace verbena::rdmacm::rsocket {

class Stream {
 public:
  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Makes the ID's QP and all memory. 0, or -1 and errno. The ID lives as long.
  [[nodiscard]] int open(rdma_cm_id& id, const Settings& settings);
  [[nodiscard]] ConnectionData offer() const;
  void meet(const ConnectionData& peer);  // what start() and map() need
  void start() { started_ = true; }       // the QP can send from now on

  // Handles completions and returns credits to the peer. Returns true if there was something.
  bool progress();

  [[nodiscard]] bool can_send() const;
  [[nodiscard]] bool can_write_directly() const;
  [[nodiscard]] bool can_control() const { return controls_left_ > 0; }
  [[nodiscard]] bool has_data() const { return received_head_ != received_tail_; }
  [[nodiscard]] bool is_sent() const;  // nothing of ours is under way

  // All need can_send() (write_directly(): can_write_directly(), control(): can_control()).
  // They take the bytes they can and return their count; errors show in error().
  std::size_t send_some(IOCursor& from, u32 limit_bytes);
  std::size_t write_directly(IOCursor& from, const Iomap& to, u64 offset, u32 limit_bytes);
  void send_iomap(u32 index, const Iomap& iomap);
  void control(Control what);
  void keep_alive();  // nothing comes of it, but an error if the peer is gone

  std::size_t receive_some(IOCursor& to);
  std::size_t peek(IOCursor& to) const;

  // Returns the mapping at the peer's offset, or nullopt.
  [[nodiscard]] std::optional<Iomap> find_iomap(u64 offset) const;
  [[nodiscard]] u32 peer_iomaps() const { return peer_iomap_count_; }

  [[nodiscard]] bool peer_stopped_sending() const { return peer_stopped_sending_; }
  [[nodiscard]] bool peer_disconnected() const { return peer_disconnected_; }
  [[nodiscard]] int error() const { return error_; }  // errno; 0: none
  [[nodiscard]] ibv_pd* pd() const { return pd_; }

  [[nodiscard]] int event_fd() const { return completions_.fd(); }
  void arm();  // the next completion makes event_fd() readable
  bool drain_events() { return completions_.drain(); }

 private:
  [[nodiscard]] int make_qp(rdma_cm_id& id);
  [[nodiscard]] int post_receive();
  void on_completion(const ibv_wc& wc);
  void on_receive(u32 message);
  void on_data(u32 length);
  void on_sent(u32 message);
  void on_targets();
  void give_credits();
  void offer_half();
  void post(u32 message, u32 length_bytes, u64 address, u32 key);
  [[nodiscard]] RemoteSGE to_peer(const RemoteSGE& sge) const;
  [[nodiscard]] RemoteSGE from_memory(std::size_t index) const;
  u32 stage(IOCursor& from, u32 length_bytes);
  void fail(int error);

  static constexpr int kBatch = 16;

  Settings settings_;
  rdma_cm_id* id_ = nullptr;
  ibv_pd* pd_ = nullptr;
  Completions completions_;
  std::array<ibv_wc, kBatch> done_;
  RegisteredMemory send_, receive_, table_;
  bool started_ = false;
  int error_ = 0;
  bool peer_stopped_sending_ = false, peer_disconnected_ = false;

  // sending
  RemoteSGE peer_targets_, peer_iomaps_;
  u32 peer_target_ = 1;  // which of the peer's we write next
  bool peer_swaps_ = false;
  u32 peer_iomap_count_ = 0;
  std::array<RemoteSGE, kTargets> targets_{};
  u32 target_ = 0, next_target_ = 1;
  u32 sends_left_ = 0, send_bytes_left_ = 0, send_offset_ = 0;
  u32 controls_left_ = 0, control_slot_ = 0;
  u16 sent_ = 0, may_send_ = 0;

  // receiving
  std::vector<u32> received_;  // lengths, oldest at the head
  std::size_t received_head_ = 0, received_tail_ = 0;
  u32 read_offset_ = 0;
  u32 unread_bytes_ = 0;
  u32 free_bytes_ = 0, free_offset_ = 0;
  u16 consumed_ = 0, credits_due_ = 0;
};

}  // namespace verbena::rdmacm::rsocket
