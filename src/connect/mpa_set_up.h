// MPASetUp: the request and the reply that begin an iWARP connection, at one end. RFC 5044, 7.1;
// RFC 6581 (revision 2: IRD and ORD, ready-to-receive messages). Bytes in, bytes out.
//
// Sans-IO: no socket, clock, thread, lock, global or log sink. Same calls in the same order give
// the same outputs, bit for bit. The driver keeps the time: a peer that never speaks causes no
// event.
//
//   active    kSending -> kAwaitsReply -> kAgreed, kRejected or kFailed
//   passive   kAwaitsRequest -> kRequested -> accept() -> kAgreed, reject() -> kRejected; kFailed
// Once kAgreed the stream is the QP's, when to_send() is empty.
#pragma once

#include <array>
#include <vector>

#include "base/status.h"
#include "transport/stream_agreement.h"
#include "wire/iwarp/mpa.h"

namespace verbena {

// MPAConfig: the capabilities that one end has, and the options with which it begins.
struct MPAConfig {
  u8 revision = 2;
  bool crc = true;           // asks for CRCs; they are used where either end asks
  bool markers = false;      // asks the peer for markers
  bool peer_to_peer = true;  // active: offers to send a ready-to-receive message. Revision 2
  bool rfc7306 = true;       // atomics and immediate data
  u8 ird = 0, ord = 0;
};

class MPASetUp {
 public:
  // The size limit of the private data, in either revision.
  static constexpr std::size_t kMaxPrivateData =
      iwarp::MPAFrame::kMostPrivateData - iwarp::MPAEnhancement::kSize;

  enum class State : u8 {
    kSending,  // the request
    kAwaitsReply,
    kAwaitsRequest,
    kRequested,  // accept() or reject()
    kAgreed,
    kRejected,
    kFailed,  // the peer does not speak MPA, or what it asks for is not to be had
  };

  // Precondition: private_data.size() <= kMaxPrivateData.
  [[nodiscard]] static MPASetUp active(const MPAConfig& config, std::span<const u8> private_data);
  [[nodiscard]] static MPASetUp passive(const MPAConfig& config);

  [[nodiscard]] State state() const { return state_; }
  // Takes the bytes of the peer's frame. Returns those behind it: the stream's.
  [[nodiscard]] std::span<const u8> on_bytes(std::span<const u8> bytes);
  [[nodiscard]] std::span<const u8> to_send() const { return std::span(outgoing_).subspan(sent_); }
  void on_sent(std::size_t bytes);

  // Passive, in kRequested.
  void accept(u8 ird, u8 ord, std::span<const u8> private_data);
  void reject(std::span<const u8> private_data);

  // Returns the peer's values. Valid in kRequested and after.
  [[nodiscard]] std::span<const u8> private_data() const;
  [[nodiscard]] u8 peer_ird() const { return peer_ird_; }
  [[nodiscard]] u8 peer_ord() const { return peer_ord_; }
  // Valid in kAgreed. `segment_bytes` is the segment size of the TCP connection.
  [[nodiscard]] StreamAgreement agreement(u32 segment_bytes) const;

 private:
  MPASetUp(const MPAConfig& config, State state) : config_(config), state_(state) {}

  [[nodiscard]] bool has_frame() const;
  void on_frame();
  void on_request();
  void on_reply();
  void note_depths();
  [[nodiscard]] bool choose_ready();
  void send(iwarp::MPAFrame frame, const iwarp::MPAEnhancement& enhancement,
            std::span<const u8> private_data);
  void refuse();

  MPAConfig config_;
  State state_;
  std::vector<u8> incoming_, outgoing_;
  std::size_t sent_ = 0;
  iwarp::MPAFrame frame_;              // the peer's
  iwarp::MPAEnhancement enhancement_;  // the peer's; revision 2
  bool is_enhanced_ = false;
  u8 peer_ird_ = 0, peer_ord_ = 0;
  ReadyToReceive ready_ = ReadyToReceive::kNone;
};

}  // namespace verbena
