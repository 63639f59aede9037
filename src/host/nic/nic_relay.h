// NICRelay: one TCP connection of a virtual function: moves bytes between the program's Unix socket
// and the network. A direction whose receiver takes no more waits, and its sender then waits, too:
// besides the kernel's buffers, one piece is kept. The end of a side is passed on behind its bytes;
// a reset is passed on at once. No call blocks. Not thread-safe.
//
// Contract: pass every edge-triggered event to on_program() or on_network(), then send() while
// can_send(), and receive() while can_receive(). Over: destroy it.
#pragma once

#include <array>
#include <memory>

#include "host/links/tcp/stream_socket.h"

namespace verbena::host {

class NICRelay {
 public:
  static constexpr std::size_t kPieceBytes = 128 << 10;
  using Piece = std::array<u8, kPieceBytes>;  // of the caller; no call keeps anything in it

  enum class Opener : u8 { kProgram, kPeer };
  // The first bytes that the program sends must be MPA's: a request of the side that opened the
  // connection, a reply of the other. RFC 5044, 7.1.
  NICRelay(Descriptor program, StreamSocket network, Opener opener)
      : program_{StreamSocket(std::move(program))}, network_{std::move(network)}, opener_(opener) {}
  ~NICRelay();

  // `events`: of epoll.
  void on_program(u32 events);
  void on_network(u32 events);

  [[nodiscard]] bool can_send() const { return can_move(out_, program_, network_); }
  [[nodiscard]] bool can_receive() const { return can_move(in_, network_, program_); }
  // Moves bytes of the program to the network, at most `bytes`. Returns how many it took.
  u64 send(u64 bytes, Piece& piece);
  // The other direction.
  u64 receive(u64 bytes, Piece& piece);

  [[nodiscard]] bool is_over() const { return is_broken_ || (out_.is_done && in_.is_done); }
  // The program has closed its socket. What it sent before may still be under way.
  [[nodiscard]] bool is_orphan() const { return is_orphan_; }
  [[nodiscard]] bool has_sent_no_mpa() const { return has_sent_no_mpa_; }
  // Both sides see a reset.
  void break_off() { is_broken_ = true; }

  [[nodiscard]] int program() const { return program_.socket.get(); }
  [[nodiscard]] int network() const { return network_.socket.get(); }

 private:
  struct Side {
    StreamSocket socket;
    bool is_readable = true, takes = true;  // as far as is known
    bool has_news = false;                  // an end or an error, behind what can be read
  };
  struct Direction {
    std::unique_ptr<u8[]> kept{};  // what its receiver has not taken
    std::size_t kept_from = 0, kept_to = 0;
    bool has_ended = false;  // its sender sends no more
    bool is_done = false;    // and its receiver knows that
    [[nodiscard]] bool has_kept() const { return kept_from != kept_to; }
  };

  static void note(u32 events, Side& side);
  [[nodiscard]] bool can_move(const Direction& direction, const Side& from, const Side& to) const {
    return !is_broken_ && !direction.is_done && to.takes &&
           (direction.has_kept() || direction.has_ended || from.is_readable);
  }
  u64 move(Direction& direction, Side& from, Side& to, u64 bytes, Piece& piece);
  [[nodiscard]] std::size_t fetch(Direction& direction, Side& from, std::span<u8> room);
  void deliver(Direction& direction, Side& to, std::span<u8> bytes);
  void deliver_kept(Direction& direction, Side& to);
  [[nodiscard]] std::size_t give(Direction& direction, Side& to, std::span<u8> bytes);
  void check_first(std::span<const u8> bytes);

  static constexpr std::size_t kKeyBytes = 16;  // of MPA

  Side program_, network_;
  Direction out_, in_;
  const Opener opener_;
  std::array<u8, kKeyBytes> first_{};
  std::size_t first_size_ = 0;
  bool is_broken_ = false, is_orphan_ = false, has_sent_no_mpa_ = false;
};

}  // namespace verbena::host
