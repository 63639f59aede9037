// FrameRing: frames and packets from one process to another, in order, through memory that both
// map: one writes, one reads, neither waits. Neither trusts memory that the other can change: an
// invalid ring is broken, takes nothing more and gives nothing more.
//   record: | header | body | padding to a cache line |
// The body is a transport packet (BTH .. ICRC, which is not filled in). If the headers are already
// in the record, the body is only the payload, of one packet or of a train.
// The reader recognizes a record by its first word, which is written last and was 0 before. So a
// short record takes one cache line from core to core. A record that fits a line is built elsewhere
// and stored there at once: a reader that polls would take the line away in between. A record says
// whether another was published with it. If none was, the reader does not touch the next line,
// which the writer's core has. GIDs are in a table, and records name them by their index.
// A new writer or reader continues at the position of the old one. A reader may read the last
// record again, which is then a duplicate to its QP.
// A reader that polls the ring says so, and the writer need not ring the doorbell (doorbells.h):
// two cache lines less go from core to core for each frame.
// A record never goes around the end: one of length kSkip leads to the start.
#pragma once

#include <array>
#include <atomic>

#include "base/bytes.h"
#include "device/port/frame.h"

namespace verbena::host {

// Headers of a packet that needs no others: SENDs and acknowledgements. A SEND may bring an
// acknowledgement of the same QP, which is a packet of its own that comes before it.
struct RingHeaders {
  enum Flags : u8 {
    kAreHere = 1,
    kSolicited = 2,
    kAckReq = 4,
    kTakesSack = 8,
    kAcknowledges = 16,
  };
  u8 flags = 0;  // without kAreHere they are in the body
  u8 opcode = 0;
  u16 p_key = 0;
  u32 dest_qp = 0;
  u32 psn = 0;
  u32 word = 0;                   // what follows the BTH: immediate data, a key, an AETH
  u32 ack_psn = 0, ack_word = 0;  // with kAcknowledges: its PSN and AETH
};

class FrameRing {
 public:
  static constexpr u64 kBytes = 2u << 20;                      // twice the largest window of a QP
  static constexpr u32 kMaxBody = kMaxHeadersSize + 4096 + 4;  // of one packet
  static constexpr u32 kMaxTrainBody = kLongestTrain * 4096;
  static constexpr u32 kAddresses = 16;  // pairs of GIDs
  static constexpr u32 kSkip = ~0u;

  struct Addresses {
    GID source{}, destination{};
    friend bool operator==(const Addresses&, const Addresses&) = default;
  };
  struct Header {
    u32 length = 0;  // bytes of it and its body
    u16 udp_source_port = 0;
    u8 traffic_class = 0, hop_limit = 0;
    u16 addresses = 0;  // place in the table
    u8 follows = 0;     // 1: a record that was published with it
    u8 packets = 1;     // in the body, of equal size, if the headers are here (transport/train.h)
    RingHeaders headers{};
  };

 private:
  friend class FrameRingWriter;
  friend class FrameRingReader;
  // Counts of bytes that never wrap in practice.
  alignas(64) std::atomic<u64> written_;  // for the next writer
  alignas(64) std::atomic<u64> read_;
  alignas(64) std::atomic<u32> watched_;  // 1: by its reader. Written by the reader
  alignas(64) std::array<Addresses, kAddresses> addresses_;
  alignas(64) std::array<u8, kBytes> bytes_;
};

class FrameRingWriter {
 public:
  explicit FrameRingWriter(FrameRing& ring);

  // Returns where to write so many bytes of body, before the next call, or nullptr if the ring is
  // full.
  [[nodiscard]] u8* add(const FrameRing::Addresses& addresses, u32 body_bytes);
  // Returns the header of the record that was added last. Fill it in before the next call, in
  // place: a copy of a whole waits for the small stores before it. Its addresses are set, it is of
  // one packet, and all other fields are 0.
  [[nodiscard]] FrameRing::Header& last() { return line_.header; }
  void take_back();  // removes the last record, if it is not published yet, once
  // Returns true if it published anything new.
  bool publish();
  // Returns true if the reader finds published records without a wake-up.
  [[nodiscard]] bool is_watched() {
    // An exchange, not a load: either we see that it watches no more, or it sees what is there.
    return ring_.watched_.fetch_add(0, std::memory_order_seq_cst) != 0;
  }

 private:
  // The record that was added last, as far as its first line goes.
  struct alignas(64) Line {
    FrameRing::Header header;
    std::array<u8, 64 - sizeof(FrameRing::Header)> body;
  };

  [[nodiscard]] u8* at(u64 position) { return ring_.bytes_.data() + position % FrameRing::kBytes; }
  [[nodiscard]] bool has_room(u64 bytes);
  [[nodiscard]] bool find_addresses(const FrameRing::Addresses& wanted);
  void set_length(u64 position, u32 length);
  void store_last();

  FrameRing& ring_;
  u64 end_, before_last_ = 0;
  u64 published_;
  u32 first_length_ = 0;  // of what is not published yet
  u64 read_ = 0;          // as last seen
  Line line_;
  u64 line_at_ = 0;
  bool has_line_ = false;                                              // not in the ring yet
  std::array<FrameRing::Addresses, FrameRing::kAddresses> addresses_;  // of the table
  u32 addresses_known_ = 0;
  u16 addresses_at_ = 0;  // those of the last record
};

class FrameRingReader {
 public:
  explicit FrameRingReader(FrameRing& ring);

  struct Record {
    FrameRing::Header header{};
    FrameRing::Addresses addresses{};
    Bytes body{};  // good until the next call of poll() or has_more(), may change under our eyes
  };
  // Takes the next record. Returns false if there is none.
  [[nodiscard]] bool poll(Record& out) {
    free();
    return poll_and_keep(out);
  }
  // The same; but the bodies polled before are good until the next call of poll() or has_more().
  [[nodiscard]] bool poll_and_keep(Record& out);
  // Whether the writer has left what makes no sense; nothing more is read.
  [[nodiscard]] bool is_broken() const { return is_broken_; }
  // Returns true if the last record announced another one. It does not know of later records.
  [[nodiscard]] bool follows() const { return follows_; }
  [[nodiscard]] bool has_more() {
    free();
    return !is_broken_ && length_at(begin_) != 0;
  }
  // From now on has_more() is asked again and again.
  void watch() { ring_.watched_.store(1, std::memory_order_relaxed); }
  // No more: has_more() is to be asked once after this.
  void unwatch() { ring_.watched_.exchange(0, std::memory_order_seq_cst); }

 private:
  [[nodiscard]] u8* at(u64 position) const {
    return ring_.bytes_.data() + position % FrameRing::kBytes;
  }
  [[nodiscard]] u32 length_at(u64 position) const;
  [[nodiscard]] bool is_sound(u32 length) const;
  void free() {
    if (freed_ == begin_) return;
    freed_ = begin_;
    ring_.read_.store(begin_, std::memory_order_release);
  }

  FrameRing& ring_;
  u64 begin_;
  u64 freed_;  // up to where the writer may write again
  bool is_broken_ = false, follows_ = false;
};

}  // namespace verbena::host
