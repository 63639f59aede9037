// CopyLane: the copies of one half of a QP to and from far memory: which writes have ended, and the
// bytes that were read ahead. Only memory/copy_queue.h changes it, and the owner by clear().
//
// Writes, atomics and copies to or from peers have tickets, 1, 2, ... in the order in which they
// begin. has_ended(t) means that all up to t have taken effect, also if their ends were seen in
// another order.
#pragma once

#include <memory>
#include <optional>

#include "memory/copy_job.h"

namespace verbena {

// CopyMark: the message that a write belongs to, for the error report if the write fails.
struct CopyMark {
  u32 psn = 0;              // RC: of its packet. UC, UD, iWARP: the number of its receive, from 1
  bool is_receive = false;  // the memory of a receive; otherwise memory that the peer named:
  u32 key = 0;              // by this R_Key,
  u64 address = 0;          // the whole message
  u32 length_bytes = 0;
};

class CopyLane {
 public:
  static constexpr u32 kMaxWrites = 512;  // that have not ended
  static constexpr u32 kReadAhead = 32;   // packets

  CopyLane();
  ~CopyLane();
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // Forgets all jobs. Those that run still take effect.
  void clear();

  [[nodiscard]] u64 begun() const { return begun_; }
  [[nodiscard]] bool has_ended(u64 ticket) const { return ticket <= ended_; }
  // Returns true if bytes that the owner asked for have not arrived.
  [[nodiscard]] bool is_reading() const { return reads_running_; }
  // Returns true if the owner has to look again later.
  [[nodiscard]] bool is_waiting() const { return begun_ != ended_ || reads_running_; }
  // The first write that failed. Later tickets never end.
  struct Failure {
    u64 ticket;
    CopyMark mark;
  };
  [[nodiscard]] std::optional<Failure> failure() const;
  void mark(CopyMark mark) { mark_ = mark; }
  // The gathers that follow are for this message. Bytes that were read for another one are not
  // used: its memory may have changed since.
  void read_for(u32 message) { message_ = message; }
  // Returns true if a copy to or from a peer has failed that began after `ticket`. Such a copy ends
  // like any other, so that the owner can send packets instead.
  [[nodiscard]] bool has_refused_since(u64 ticket) const { return refused_ > ticket; }
  // Returns the value that an atomic found, or nullopt if it has not ended, or ended long ago.
  [[nodiscard]] std::optional<u64> original(u64 ticket) const;

 private:
  friend class CopyQueue;
  struct Jobs;  // allocated with the first: most QPs have none

  u64 begun_ = 0, ended_ = 0;
  u64 refused_ = 0;  // the last such ticket
  CopyMark mark_;
  u32 message_ = 0;  // that bytes are read for
  bool reads_running_ = false;
  void retire();

  std::unique_ptr<Jobs> jobs_;
};

}  // namespace verbena
