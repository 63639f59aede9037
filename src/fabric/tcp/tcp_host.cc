#include "fabric/tcp/tcp_host.h"

#include <algorithm>
#include <utility>

#include "fabric/pause_frame.h"
#include "fabric/tcp/segment_codec.h"

namespace verbena::fabric {
namespace {

// Ports of clients: Linux's ip_local_port_range.
constexpr u16 kFirstPort = 32768, kPorts = 28232;

tcp::Config with_whole_fpdus(const TCPHostConfig& config) {
  tcp::Config tcp = config.tcp;
  if (config.framing == TCPHostConfig::Framing::kIWARP) tcp.mss -= tcp.mss % 4;
  return tcp;
}

// Neighbours in number get ports that are far apart, as connections to many servers would.
u16 client_port(NodeIndex node, EndNumber end) {
  const u32 mixed = (node * 0x9e3779b1u) ^ (end * 0x85ebca6bu);
  return static_cast<u16>(kFirstPort + (mixed ^ mixed >> 15) % kPorts);
}

}  // namespace

u32 TCPHostConfig::longest_frame() const { return kFrameOverhead + kTimestampBytes + tcp.mss; }

TCPHost::TCPHost(Domain& domain, const TCPHostConfig& config, const ReceiverConfig& receiver,
                 NodeIndex node, Port& port, u32 place)
    : domain_(domain),
      config_(config),
      tcp_(with_whole_fpdus(config)),
      receiver_(receiver),
      node_(node),
      port_(port),
      place_(place) {
  CHECK(tcp_.valid());
  if (config.framing == TCPHostConfig::Framing::kIWARP) iwarp_ = std::make_unique<IWARPMemory>();
}

// --- connections

EndNumber TCPHost::create_end(u32, u32) {
  CHECK(ends_.size() < kMostEnds);
  ends_.push_back(std::make_unique<End>(tcp_));
  if (reads_slowly()) ends_.back()->receiver.keep_unread();
  if (iwarp_ != nullptr) ends_.back()->iwarp = std::make_unique<IWARPEnd>(*iwarp_, tcp_.mss);
  return static_cast<EndNumber>(ends_.size() - 1);
}

void TCPHost::connect(EndNumber end, const Connection& connection) {
  ends_[end]->connection = connection;
  if (iwarp_ != nullptr) ends_[end]->iwarp->connect(connection.pipe, connection.peer_key);
}

u16 TCPHost::source_port_of(EndNumber end) const {
  const u16 given = ends_[end]->connection.source_port;
  return given != 0 ? given : client_port(node_, end);
}

void TCPHost::destroy_end(EndNumber end) {
  const tcp::SenderCounters& counters = ends_[end]->sender.counters();
  of_the_dead_.retransmissions += counters.retransmissions;
  of_the_dead_.timeouts += counters.timeouts;
  ends_[end].reset();
}

Repairs TCPHost::repairs() const {
  Repairs sum = of_the_dead_;
  for (const auto& end : ends_) {
    if (end == nullptr) continue;
    sum.retransmissions += end->sender.counters().retransmissions;
    sum.timeouts += end->sender.counters().timeouts;
  }
  return sum;
}

// A window in each round trip.
std::optional<Rate> TCPHost::rate_of(EndNumber end, Time) const {
  const tcp::Sender& sender = ends_[end]->sender;
  const double seconds = sender.round_trip().smoothed().seconds();
  if (seconds == 0) return port_.rate;
  const double bps = static_cast<double>(sender.window()) * 8 / seconds;
  return std::min(port_.rate, Rate::from_bps(static_cast<u64>(std::min(bps, 1e15))));
}

// --- what the program asks for

u64 TCPHost::bytes_of_flow(const End& end, u64 bytes) {
  return end.iwarp != nullptr ? end.iwarp->bytes_of_flow(bytes) : std::max<u64>(bytes, 1);
}

void TCPHost::write(EndNumber number, u64 bytes, u32 flow) {
  End& end = *ends_[number];
  end.is_flow = true;
  const u64 length =
      end.iwarp != nullptr ? end.iwarp->post(bytes, std::nullopt) : bytes_of_flow(end, bytes);
  post(number, length, 0, flow);
}

bool TCPHost::expect_flow(EndNumber end, u64 bytes, u32 flow) {
  if (!reads_slowly()) return false;
  ends_[end]->to_read = bytes_of_flow(*ends_[end], bytes);
  ends_[end]->flow = flow;
  return true;
}

void TCPHost::expect(EndNumber end, u32, u32 connection) { ends_[end]->expects = connection; }

void TCPHost::send_message(EndNumber number, u32 bytes, u32 connection, u32 word) {
  const End& end = *ends_[number];
  const u64 length =
      end.iwarp != nullptr ? end.iwarp->post(bytes, word) : u64{bytes} + kMessageHeader;
  post(number, length, word, connection);
}

void TCPHost::post(EndNumber number, u64 bytes, u32 word, u32 about) {
  End& end = *ends_[number];
  const u64 before = end.sending.empty() ? end.sender.written() : end.sending.back().end;
  end.sending.push_back({before + bytes, about});
  const Time at = domain_.now + config_.posting;
  postings_.push_back({at, number, bytes, word});
  if (config_.posting != Duration{})
    domain_.events.add({at, EventKind::kPause, place_});
  else
    write_due();
}

void TCPHost::write_due() {
  for (; !postings_.empty() && postings_.front().at <= domain_.now; postings_.pop_front()) {
    const Posting& posting = postings_.front();
    End* const end = ends_[posting.end].get();
    if (end == nullptr) continue;
    end->sender.on_write(posting.bytes, posting.word, domain_.now);
    queue(posting.end, *end);
  }
  transmit();
}

// --- what arrives

void TCPHost::on_arrival(u32 /*port*/, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kPause) {
    on_pause_frame(frame);
    domain_.frames.give_back(index);
    return transmit();
  }
  const EndNumber number = end_of(frame);
  const tcp::Segment segment = segment_of(frame);
  domain_.frames.give_back(index);
  End* const end = ends_[number].get();
  if (end == nullptr) return;  // the connection is over
  if (segment.ack)
    end->sender.on_acknowledgement(segment, domain_.now);
  else
    end->receiver.on_segment(segment, domain_.now);
  settle(number);
  transmit();
}

void TCPHost::on_lost(u32 /*port*/, FrameIndex index) { domain_.frames.give_back(index); }

void TCPHost::fetch(u32 step, FrameIndex index) const {
  const Frame& frame = domain_.frames[index];
  if (frame.type != FrameType::kTCP) return;
  const std::unique_ptr<End>& end = ends_[end_of(frame)];
  if (step == 0) __builtin_prefetch(&end);
  if (step == 1) __builtin_prefetch(end.get());
}

// Handles the results of an end after any call. Data that the end sends waits for the port.
void TCPHost::settle(EndNumber number) {
  End& end = *ends_[number];
  send_acknowledgements(number, end);
  take_messages(number, end);
  take_acknowledged(end);
  queue(number, end);
  set_timer(number, end);
}

void TCPHost::send_acknowledgements(EndNumber number, End& end) {
  tcp::Segment segment;
  while (end.receiver.poll_acknowledgement(segment)) {
    const FrameIndex index = domain_.frames.take();
    Frame& frame = domain_.frames[index];
    fill(frame, end, segment);
    set_ports(frame, number, end);
    acknowledgements_.push(frame.priority, index, domain_.frames);
  }
}

void TCPHost::take_messages(EndNumber number, End& end) {
  if (reads_slowly()) read_slowly(number, end);
  if (end.iwarp != nullptr) end.iwarp->on_delivered(end.receiver.received(), domain_.now);
  while (const std::optional<u32> word = poll_message(end)) {
    if (end.expects == kNoEnd) continue;
    if (reads_slowly())
      readings_.push_back({std::max(reads_at_, domain_.now), number, 0, word});
    else
      complete({.connection = end.expects, .word = *word, .arrived = true}, false);
  }
  if (!readings_.empty()) domain_.events.add({readings_.back().at, EventKind::kPause, place_});
}

// The word that TCP tells of is iWARP's too, which has it from its own bytes.
std::optional<u32> TCPHost::poll_message(End& end) const {
  const std::optional<u32> told = end.receiver.poll_message();
  if (end.iwarp == nullptr || end.expects == kNoEnd || !told) return told;
  const std::optional<u32> word = end.iwarp->poll_message();
  CHECK(word == told);
  return word;
}

void TCPHost::take_acknowledged(End& end) {
  while (!end.sending.empty() && end.sending.front().end <= end.sender.acknowledged()) {
    complete({.connection = end.sending.front().about}, end.is_flow);
    end.sending.pop_front();
  }
  if (!end.sender.has_failed() || !end.is_flow || end.sending.empty()) return;
  failed_.push_back(end.sending.front().about);
  end.sending.clear();
}

void TCPHost::complete(const Message& message, bool of_flow) {
  const Completion completion{domain_.now + config_.completion, message, of_flow};
  if (config_.completion == Duration{}) return tell(completion);
  completions_.push_back(completion);
  domain_.events.add({completion.at, EventKind::kPause, place_});
}

void TCPHost::tell(const Completion& completion) {
  if (completion.of_flow)
    finished_.push_back(completion.message.connection);
  else
    messages_.push_back(completion.message);
}

// --- a program that reads slowly

void TCPHost::read_slowly(EndNumber number, End& end) {
  u64 bytes = end.receiver.received() - end.read;
  end.read += bytes;
  while (bytes != 0) {
    const u64 part = std::min(bytes, Rate::kMaxBytes);
    bytes -= part;
    reads_at_ = std::max(reads_at_, domain_.now) + receiver_.drain.time_of(part);
    readings_.push_back({reads_at_, number, part, {}});
    domain_.events.add({reads_at_, EventKind::kPause, place_});
  }
}

void TCPHost::read_due() {
  for (; !readings_.empty() && readings_.front().at <= domain_.now; readings_.pop_front()) {
    const Reading& reading = readings_.front();
    End* const end = ends_[reading.end].get();
    if (end == nullptr) continue;
    if (reading.bytes != 0) end->receiver.on_read(reading.bytes);
    send_acknowledgements(reading.end, *end);
    finish_reading(reading, *end);
  }
}

void TCPHost::finish_reading(const Reading& reading, End& end) {
  if (reading.word)
    complete({.connection = end.expects, .word = *reading.word, .arrived = true}, false);
  if (end.flow == kNoEnd) return;
  end.to_read -= std::min(end.to_read, reading.bytes);
  if (end.to_read == 0) complete({.connection = std::exchange(end.flow, kNoEnd)}, true);
}

// --- timers

void TCPHost::set_timer(EndNumber number, End& end) {
  const Time at = std::min(end.sender.next_timer(), end.receiver.next_timer());
  if (at >= end.timer) return;  // what comes too early asks again
  end.timer = at;
  timers_.push({at, number});
  arm_timer();
}

void TCPHost::arm_timer() {
  if (timers_.empty() || timers_.top().at >= timer_) return;
  timer_ = std::max(timers_.top().at, domain_.now);
  domain_.events.add({timer_, EventKind::kDeviceTimer, place_});
}

void TCPHost::on_device_timer() {
  timer_ = Time::never();
  while (!timers_.empty() && timers_.top().at <= domain_.now) {
    const Timer timer = timers_.top();
    timers_.pop();
    End* const end = ends_[timer.end].get();
    if (end == nullptr || end->timer != timer.at) continue;
    end->timer = Time::never();
    end->sender.on_timer(domain_.now);
    end->receiver.on_timer(domain_.now);
    settle(timer.end);
  }
  arm_timer();
  transmit();
}

void TCPHost::on_own_timer() {
  for (; !completions_.empty() && completions_.front().at <= domain_.now; completions_.pop_front())
    tell(completions_.front());
  read_due();
  end_pauses();
  write_due();
}

// --- frames

void TCPHost::fill(Frame& frame, const End& end, const tcp::Segment& segment) const {
  frame.type = FrameType::kTCP;
  frame.source = node_;
  frame.destination = end.connection.peer;
  frame.priority = end.connection.priority;
  frame.obeys_pause = true;
  frame.notifies = false;
  frame.traffic_class = 0;
  put_segment(segment, end.connection.peer_end, frame);
  frame.size_bytes =
      static_cast<u16>(TCPHostConfig::kFrameOverhead + option_bytes(segment) + segment.bytes);
}

// The sending end is the client.
void TCPHost::set_ports(Frame& frame, EndNumber number, const End& end) const {
  const Connection& connection = end.connection;
  const bool sends = frame.payload_bytes != 0 || end.sender.written() != 0;
  const u16 client =
      sends ? client_port(node_, number) : client_port(connection.peer, connection.peer_end);
  frame.source_port = sends ? client : kServerPort;
  frame.destination_port = sends ? kServerPort : client;
  if (connection.source_port != 0) frame.source_port = connection.source_port;
  if (connection.destination_port != 0) frame.destination_port = connection.destination_port;
}

// --- the port

void TCPHost::queue(EndNumber number, End& end) {
  if (end.is_queued || end.sender.written() == 0) return;
  end.is_queued = true;
  const u32 priority = end.connection.priority;
  ((paused_ & bit(priority)) != 0 ? paused_ends_[priority] : ready_).push_back(number);
}

void TCPHost::wake_at(Time at) {
  if (at >= wake_) return;
  wake_ = at;
  domain_.events.add({at, EventKind::kPortWake, place_});
}

void TCPHost::on_wake() {
  if (domain_.now >= wake_) wake_ = Time::never();
  transmit();
}

void TCPHost::transmit() {
  if (!port_.up) return;
  if (domain_.now >= port_.free_at) {
    const FrameIndex index = acknowledgements_.pop({.strict = 0xff}, domain_.frames);
    if (index != kNoFrame)
      put_on_wire(index);
    else if (!transmit_data())
      return;
  }
  if (acknowledgements_.may_send() || !ready_.empty()) wake_at(port_.free_at);
}

void TCPHost::put_on_wire(FrameIndex index) {
  sent_bytes_ += domain_.frames[index].size_bytes;
  send(domain_, port_, index);
}

// Returns false if no connection has anything to send now.
bool TCPHost::transmit_data() {
  while (!ready_.empty()) {
    const EndNumber number = ready_.front();
    ready_.pop_front();
    End* const end = ends_[number].get();
    if (end == nullptr) continue;
    end->is_queued = false;
    if ((paused_ & bit(end->connection.priority)) != 0) {
      queue(number, *end);
      continue;
    }
    tcp::Segment segment;
    const bool has_segment = end->sender.poll_segment(domain_.now, segment);
    set_timer(number, *end);
    if (!has_segment) continue;
    queue(number, *end);
    const FrameIndex index = domain_.frames.take();
    if (end->iwarp != nullptr) make_fpdus(*end, segment);
    fill(domain_.frames[index], *end, segment);
    set_ports(domain_.frames[index], number, *end);
    put_on_wire(index);
    return true;
  }
  return false;
}

void TCPHost::make_fpdus(End& end, const tcp::Segment& segment) {
  if (domain_.gathered == nullptr) domain_.gathered = std::make_unique<StreamGather>();
  end.iwarp->make_until(segment.sequence + segment.bytes, *domain_.gathered, domain_.now);
}

// --- pauses

void TCPHost::on_pause_frame(const Frame& frame) {
  const u32 priority = frame.priority;
  if (domain_.trace != nullptr)
    domain_.trace->on_pause_received(node_, 0, priority, frame.pause_quanta, domain_.now);
  if (frame.pause_quanta == 0) return resume(priority);
  paused_ |= bit(priority);
  acknowledgements_.pause(priority);
  if (config_.pause_expiry == PauseExpiry::kNever) return;
  paused_until_[priority] = domain_.now + pause_time(frame.pause_quanta, port_.rate);
  domain_.events.add({paused_until_[priority], EventKind::kPause, place_});
}

void TCPHost::resume(u32 priority) {
  paused_ &= static_cast<u8>(~bit(priority));
  acknowledgements_.resume(priority);
  ready_.insert(ready_.end(), paused_ends_[priority].begin(), paused_ends_[priority].end());
  paused_ends_[priority].clear();
}

void TCPHost::end_pauses() {
  for (u32 priority = 0; priority < kPriorities; ++priority) {
    if ((asking_ & bit(priority)) != 0 && ask_again_[priority] == domain_.now)
      ask_to_pause(priority, kLongestPause);
    if ((paused_ & bit(priority)) != 0 && paused_until_[priority] == domain_.now) resume(priority);
  }
}

void TCPHost::ask_to_pause(u32 priority, u16 quanta) {
  const FrameIndex index =
      make_pause(domain_.frames, domain_.counters, priority, quanta, config_.pause_frame_bytes);
  acknowledgements_.push(EgressQueues::kControl, index, domain_.frames);
  transmit();
  if (quanta == 0) {
    asking_ &= static_cast<u8>(~bit(priority));
    return;
  }
  asking_ |= bit(priority);
  if (config_.pause_expiry == PauseExpiry::kNever) return;
  // Half the time that it lasts: the refresh is there before it ends.
  ask_again_[priority] = domain_.now + pause_time(quanta, port_.rate) / 2;
  domain_.events.add({ask_again_[priority], EventKind::kPause, place_});
}

void TCPHost::begin_stuck_pause(u32 /*port*/, u32 priority) {
  ask_to_pause(priority, kLongestPause);
}

void TCPHost::end_stuck_pause(u32 /*port*/, u32 priority) { ask_to_pause(priority, 0); }

void TCPHost::on_link_down(u32 /*port*/) {
  for (u32 priority = 0; priority < kPriorities; ++priority) resume(priority);
}

// The switch has forgotten what it was told.
void TCPHost::on_link_up(u32 /*port*/) {
  for (u32 priority = 0; priority < kPriorities; ++priority)
    if ((asking_ & bit(priority)) != 0) ask_to_pause(priority, kLongestPause);
  wake_at(std::max(port_.free_at, domain_.now));
}

}  // namespace verbena::fabric
