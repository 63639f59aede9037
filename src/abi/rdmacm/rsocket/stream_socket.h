// StreamSocket: an rsocket of SOCK_STREAM, from rsocket() to rclose(). rsocket(7).
#pragma once

#include <deque>

#include "abi/rdmacm/rsocket/keepalive.h"
#include "abi/rdmacm/rsocket/socket.h"
#include "abi/rdmacm/rsocket/stream.h"

namespace verbena::rdmacm::rsocket {

class StreamSocket final : public Socket, public std::enable_shared_from_this<StreamSocket> {
 public:
  // nullptr and errno.
  [[nodiscard]] static std::shared_ptr<StreamSocket> create(int domain, int type);

  StreamSocket(int domain, host::Descriptor wake, int file_flags, rdma_event_channel* channel);
  ~StreamSocket() override;

  [[nodiscard]] int fd() const override { return number_.is_open() ? number_.get() : channel_->fd; }

  [[nodiscard]] int bind(const sockaddr* address, socklen_t length) override;
  [[nodiscard]] int listen(int backlog) override;
  [[nodiscard]] Made accept() override;
  [[nodiscard]] int connect(const sockaddr* address, socklen_t length) override;
  [[nodiscard]] int shutdown(int how) override;
  void close() override;
  [[nodiscard]] ssize_t send(std::span<const iovec> parts, int flags, const sockaddr* to,
                             socklen_t length) override;
  [[nodiscard]] ssize_t receive(std::span<const iovec> parts, int flags, NameBuffer from) override;
  [[nodiscard]] int local_name(NameBuffer name) override;
  [[nodiscard]] int peer_name(NameBuffer name) override;
  [[nodiscard]] int set_option(OptionKey key, const void* value, socklen_t length) override;
  [[nodiscard]] int get_option(OptionKey key, void* value, socklen_t* length) override;
  [[nodiscard]] off_t map(void* buffer, std::size_t length, int access, off_t offset) override;
  [[nodiscard]] int unmap(void* buffer, std::size_t length) override;
  [[nodiscard]] ssize_t write_mapped(const void* bytes, std::size_t length, off_t offset,
                                     int flags) override;

 private:
  enum class State : u8 {
    kIdle,
    kBound,
    kListening,
    kConnecting,  // either side
    kConnected,
    kRefused,  // it could not connect: error_
    kDisconnected,
    kBroken,  // error_
    kClosed,
  };
  struct Mapping {
    void* buffer;
    std::size_t length;
    u64 offset;
    ibv_mr* mr;
    bool is_remote;
    u32 index;  // in the peer's table, if remote
    bool is_pending;
  };

  void look() override;
  [[nodiscard]] short ready_now(short events) override;
  void arm(std::vector<pollfd>& to) override;
  bool drain() override { return stream_ != nullptr && stream_->drain_events(); }

  [[nodiscard]] int make_id();
  void drop_connection();
  [[nodiscard]] int open_stream();
  [[nodiscard]] std::shared_ptr<StreamSocket> make_accepted(rdma_cm_event& request);
  void take_new_number();
  [[nodiscard]] int answer(const rdma_cm_event& request);
  [[nodiscard]] int begin_connect(const sockaddr* address);
  [[nodiscard]] int resolve_route();
  [[nodiscard]] int request_connection();
  [[nodiscard]] int await_connected(Lock& lock, bool nonblocking);
  [[nodiscard]] int ready_to_send(Lock& lock, bool nonblocking);
  [[nodiscard]] int send_mappings(Lock& lock, bool nonblocking);
  void see_through();
  [[nodiscard]] ssize_t end_of_data(std::size_t received) const;
  [[nodiscard]] ssize_t receive_bytes(Lock& lock, IOCursor& to, int flags);
  [[nodiscard]] bool is_connected() const { return state_ == State::kConnected; }
  [[nodiscard]] bool can_read() const;
  [[nodiscard]] bool cannot_send() const { return !writing_ || !is_connected(); }
  [[nodiscard]] int send_error() const;
  void become(State state, int error = 0);
  void ask_for_service();
  void stop_listening(State next);
  void take_requests();
  void settle();
  [[nodiscard]] bool progress();
  void take_cm_events();
  void on_cm_event(const rdma_cm_event& event);
  void on_established(const rdma_cm_event& event);
  void fail_connecting(int error);
  void stop_sending(Lock& lock);
  void say_last(Lock& lock, Control what);
  [[nodiscard]] Clock::duration linger() const;
  [[nodiscard]] std::optional<u32> free_mapping_index() const;
  [[nodiscard]] int set_kept(OptionKey key, const void* value, socklen_t length);
  [[nodiscard]] int get_kept(OptionKey key, void* value, socklen_t* length) const;
  [[nodiscard]] int give_route(void* value, socklen_t* length) const;

  State state_ = State::kIdle;
  int error_ = 0;
  bool has_said_in_progress_ = false;     // connect(): its end is told once
  bool reading_ = true, writing_ = true;  // not shut down
  bool is_served_ = false;                // the ConnectionService looks at channel_
  rdma_event_channel* channel_;           // its descriptor never blocks
  rdma_cm_id* id_ = nullptr;
  std::unique_ptr<Stream> stream_;
  std::optional<ConnectionData> peer_;  // a passive side has it from the beginning
  std::size_t backlog_ = 0;             // of a listening one: how many accepted_ holds at most
  std::deque<std::shared_ptr<StreamSocket>> accepted_;  // that accept() has not returned yet
  Keepalive keepalive_;
  std::map<OptionKey, std::vector<u8>> options_;  // those kept for the program only
  std::vector<Mapping> mappings_;
  host::Descriptor number_;  // of an accepted one
};

}  // namespace verbena::rdmacm::rsocket
