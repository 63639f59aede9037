// TCPHost: a computer whose connections are TCP's, with or without iWARP in them, and the port that
// it sends from. A flow is a stream that is written at once; a message of an Application is
//   TCP     its bytes behind a header of kMessageHeader, by which the receiver knows its end
//   iWARP   RDMA WRITEs and, since RDMAP has no WRITE with immediate data, a message of that kind
//           behind them (RFC 7306, 6), by the engine of live connections (iwarp_end.h): one FPDU
//           for each full segment, as MPA wants it.
// The program is told of a message when its last byte has come in order, so that what was placed
// before is complete (RFC 5041, 5.3). Its sender is told when TCP has the acknowledgement: iWARP
// itself lets a WRITE complete when it can be repeated from the stream (RFC 5040, 5.4), earlier.
//
// The NIC takes a segment of each connection in turn, when the port is free; acknowledgements wait
// for no data. So there is no queue of segments in the host: what TCP lets go waits in TCP, as with
// Linux's small queues (tcp_limit_output_bytes).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "fabric/egress_queues.h"
#include "fabric/endpoint.h"
#include "fabric/pfc.h"
#include "fabric/port.h"
#include "fabric/receiver.h"
#include "fabric/tcp/iwarp_end.h"
#include "fabric/tcp/tcp_host_config.h"
#include "transport/tcp/receiver.h"
#include "transport/tcp/sender.h"

namespace verbena::fabric {

class TCPHost final : public Endpoint {
 public:
  static constexpr u32 kMessageHeader = 8;  // bytes: length and word
  static constexpr u16 kServerPort = 5001;  // of the receiving end, where none is given

  // A receiver that is slow is a program that reads slowly: the window closes.
  TCPHost(Domain& domain, const TCPHostConfig& config, const ReceiverConfig& receiver,
          NodeIndex node, Port& port, u32 place);
  TCPHost(const TCPHost&) = delete;
  TCPHost& operator=(const TCPHost&) = delete;

  void on_arrival(u32 port, FrameIndex index) override;
  void on_lost(u32 port, FrameIndex index) override;
  void fetch(u32 step, FrameIndex index) const override;
  void on_wake() override;
  void on_own_timer() override;     // pauses that end, programs that read, what was posted
  void on_device_timer() override;  // TCP's
  void on_link_down(u32 port) override;
  void on_link_up(u32 port) override;
  void begin_stuck_pause(u32 port, u32 priority) override;
  void end_stuck_pause(u32 port, u32 priority) override;

  [[nodiscard]] EndNumber create_end(u32 sends, u32 receives) override;
  void connect(EndNumber end, const Connection& connection) override;
  [[nodiscard]] u16 source_port_of(EndNumber end) const override;
  void destroy_end(EndNumber end) override;
  [[nodiscard]] RKey memory_key() const override {
    return iwarp_ == nullptr ? RKey{} : iwarp_->sink().r_key;
  }
  [[nodiscard]] std::shared_ptr<FPDUPipe> make_pipe() const override {
    return iwarp_ == nullptr ? nullptr : std::make_shared<FPDUPipe>();
  }
  [[nodiscard]] std::optional<Rate> rate_of(EndNumber end, Time now) const override;
  void write(EndNumber end, u64 bytes, u32 flow) override;
  [[nodiscard]] bool expect_flow(EndNumber end, u64 bytes, u32 flow) override;
  [[nodiscard]] u32 messages_of(u64) const override { return 1; }
  void expect(EndNumber end, u32 messages, u32 connection) override;
  void send_message(EndNumber end, u32 bytes, u32 connection, u32 word) override;
  [[nodiscard]] Repairs repairs() const override;
  [[nodiscard]] u64 sent_bytes(u32 /*port*/) const override { return sent_bytes_; }

 private:
  struct Sending {  // a message, or a flow, that is not acknowledged
    u64 end = 0;    // in the stream
    u32 about = 0;  // connection, or flow
  };
  struct End {
    explicit End(const tcp::Config& config) : sender(config), receiver(config) {}
    Connection connection{};
    tcp::Sender sender;
    tcp::Receiver receiver;
    std::unique_ptr<IWARPEnd> iwarp;  // nullptr if the stream is TCP's alone
    std::deque<Sending> sending;
    u32 expects = kNoEnd;  // the connection whose messages come here
    bool is_flow = false, is_queued = false;
    Time timer = Time::never();  // that is set
    u64 read = 0;                // bytes that the program has been given, or will be
    u64 to_read = 0;             // of the flow that it expects
    u32 flow = kNoEnd;
  };
  struct Posting {
    Time at;
    EndNumber end;
    u64 bytes;
    u32 word;
  };
  struct Reading {
    Time at;
    EndNumber end;
    u64 bytes;
    std::optional<u32> word{};  // of a message that ends with them
  };
  struct Completion {
    Time at;
    Message message;
    bool of_flow;
  };
  struct Timer {
    Time at;
    EndNumber end;
    bool operator<(const Timer& other) const {  // the first on top
      return at != other.at ? at > other.at : end > other.end;
    }
  };

  [[nodiscard]] bool reads_slowly() const { return receiver_.drain != Rate::unlimited(); }
  [[nodiscard]] static u64 bytes_of_flow(const End& end, u64 bytes);
  void post(EndNumber end, u64 bytes, u32 word, u32 about);
  void write_due();
  void settle(EndNumber number);
  void send_acknowledgements(EndNumber number, End& end);
  void take_messages(EndNumber number, End& end);
  [[nodiscard]] std::optional<u32> poll_message(End& end) const;
  void make_fpdus(End& end, const tcp::Segment& segment);
  void take_acknowledged(End& end);
  void complete(const Message& message, bool of_flow);
  void tell(const Completion& completion);
  void read_slowly(EndNumber number, End& end);
  void read_due();
  void finish_reading(const Reading& reading, End& end);
  void set_timer(EndNumber number, End& end);
  void arm_timer();
  void fill(Frame& frame, const End& end, const tcp::Segment& segment) const;
  void set_ports(Frame& frame, EndNumber number, const End& end) const;

  void on_pause_frame(const Frame& frame);
  void resume(u32 priority);
  void end_pauses();
  void ask_to_pause(u32 priority, u16 quanta);

  void queue(EndNumber number, End& end);
  void transmit();
  [[nodiscard]] bool transmit_data();
  void put_on_wire(FrameIndex index);
  void wake_at(Time at);

  Domain& domain_;
  const TCPHostConfig config_;
  const tcp::Config tcp_;  // with segments that are whole FPDUs, for iWARP
  const ReceiverConfig receiver_;
  const NodeIndex node_;
  Port& port_;
  const u32 place_;
  std::unique_ptr<IWARPMemory> iwarp_;      // nullptr if the host does not speak iWARP
  std::vector<std::unique_ptr<End>> ends_;  // by number; nullptr if destroyed
  Repairs of_the_dead_;                     // of connections that have ended
  std::priority_queue<Timer> timers_;
  EgressQueues acknowledgements_;
  std::deque<EndNumber> ready_;                                 // ends that may have a segment
  std::array<std::deque<EndNumber>, kPriorities> paused_ends_;  // likewise, when their pause ends
  u8 paused_ = 0;                                               // priorities, a bit each
  std::array<Time, kPriorities> paused_until_{};
  u8 asking_ = 0;  // the switch to pause them
  std::array<Time, kPriorities> ask_again_{};
  std::deque<Posting> postings_;
  std::deque<Completion> completions_;
  std::deque<Reading> readings_;
  Time reads_at_;                                      // the program has read until then
  Time wake_ = Time::never(), timer_ = Time::never();  // set already
  u64 sent_bytes_ = 0;                                 // in frames
};

}  // namespace verbena::fabric
