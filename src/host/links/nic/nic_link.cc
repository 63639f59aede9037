#include "host/links/nic/nic_link.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "host/os/clock.h"
#include "host/os/time_slice.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

constexpr u32 kLooksBetweenDeaths = 4096;  // in vain, before the socket is asked for its end

// BTH .. ICRC, which the NIC fills in. The payload is the application's memory: call this inside
// touch().
void write_transport(const EgressFrame& frame, u32 packet, std::span<u8> out) {
  u8* end = out.data();
  std::memcpy(end, frame.headers.data(), frame.headers_size);
  if (packet != 0) EgressFrame::make_headers_of(packet, end);
  end += frame.headers_size;
  frame.for_each_part(packet, [&end](Bytes part) {
    std::memcpy(end, part.data(), part.size());
    end += part.size();
  });
  std::memset(end, 0, frame.pad_count + kICRCSize);
}

}  // namespace

Expected<std::unique_ptr<NICLink>> NICLink::open(const std::string& path,
                                                 const std::string& function) {
  set_time_slice(kShortTimeSlice);  // the NIC may need the core of the thread that polls
  std::unique_ptr<NICLink> link(new NICLink(path, function));
  link->poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!link->poll_.is_open())
    return failure(errno, std::string("cannot open an epoll instance: ") + std::strerror(errno));
  link->descriptors_[0] = link->poll_.get();
  if (Expected<void> attached = link->attach(0); !attached) return tl::unexpected(attached.error());
  return link;
}

Expected<void> NICLink::attach(u32 wanted_slot) {
  Expected<NICAttachment> attachment = attach_to_nic(path_, wanted_slot, function_);
  if (!attachment) return tl::unexpected(attachment.error());
  reader_.reset();
  writer_.reset();
  attachment_ = std::move(*attachment);
  writer_.emplace(rings());
  reader_.emplace(rings().to_program);
  for (const int fd : {attachment_.doorbell_of_program.get(), attachment_.socket.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    (void)::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  is_alive_ = true;
  return {};
}

void NICLink::append(const EgressFrame& frame) {
  for (u32 packet = 0; packet < frame.packets; ++packet)
    ++(append_packet(frame, packet) ? counters_.sent_frames : counters_.send_dropped);
  may_wait_ = may_wait_ && frame.urgency != Urgency::kNow && waiting_ < kMaxWaiting;
  if (waiting_bytes_ >= kEnoughBytes) flush();
}

// `packet`: of a train. Returns false if the ring is full or the payload is gone.
bool NICLink::append_packet(const EgressFrame& frame, u32 packet) {
  const std::size_t size = frame.transport_size() + kICRCSize;
  u8* const out = is_alive_ && size <= FrameRing::kMaxBody
                      ? writer_->add(frame.traffic_class, {frame.source, frame.destination},
                                     static_cast<u32>(size))
                      : nullptr;
  if (out == nullptr) return false;
  FrameRing::Header& header = writer_->last();
  header.udp_source_port = frame.udp_source_port;
  header.traffic_class = frame.traffic_class;
  header.hop_limit = frame.hop_limit;
  if (!touch([&] { write_transport(frame, packet, {out, size}); })) {
    writer_->take_back();
    return false;
  }
  ++waiting_;
  waiting_bytes_ += static_cast<u32>(size);
  return true;
}

void NICLink::flush() {
  may_wait_ = true;
  waiting_ = waiting_bytes_ = 0;
  if (is_alive_ && writer_->publish()) ring_doorbell(attachment_.doorbell_of_nic.get());
}

bool NICLink::receive(Look look) {
  if (!is_alive_) return false;
  if (reader_->has_more()) return true;
  if (look == Look::kEverywhere || ++looks_ % kLooksBetweenDeaths == 0) notice_death();
  return is_alive_ && reader_->has_more();
}

void NICLink::notice_death() {
  pollfd asked{.fd = attachment_.socket.get(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&asked, 1, 0) <= 0 || (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) return;
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, attachment_.socket.get(), nullptr);
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, attachment_.doorbell_of_program.get(), nullptr);
  is_alive_ = false;
  note_death();
  next_retry_ = monotonic_now() + kRetryInterval;
}

void NICLink::try_to_return(Time now) {
  if (has_left_ || now < next_retry_) return;
  const u32 slot = attachment_.attached.slot;
  next_retry_ = now + kRetryInterval;
  if (!attach(slot)) return;
  next_retry_ = Time::never();
  if (attachment_.attached.slot != slot) {  // another has our QPNs: nothing could reach us
    leave();
    return;
  }
  for (const GID& group : groups_) (void)join_group_on_nic(path_, attachment_.socket, group);
  note_return();
}

bool NICLink::poll_frame(IngressFrame& out, Time now) {
  if (!is_alive_) {
    try_to_return(now);
    return false;
  }
  if (!reader_->poll(record_)) return false;
  out = {.source = record_.addresses.source,
         .destination = record_.addresses.destination,
         .udp_source_port = record_.header.udp_source_port,
         .traffic_class = record_.header.traffic_class,
         .hop_limit = record_.header.hop_limit,
         .transport = record_.body,  // until the next poll()
         .authenticated = true};
  ++counters_.received_frames;
  return true;
}

bool NICLink::on_listening(Listening listening) {
  if (!is_alive_) return false;
  if (listening == Listening::kNo) {
    reader_->watch();
    return false;
  }
  reader_->unwatch();
  clear_doorbell(attachment_.doorbell_of_program.get());
  return reader_->has_more();
}

Expected<void> NICLink::join_multicast(const GID& group) {
  Expected<void> joined = join_group_on_nic(path_, attachment_.socket, group);
  if (joined) groups_.push_back(group);
  return joined;
}

void NICLink::leave_multicast(const GID& group) {
  std::erase(groups_, group);
  leave_group_on_nic(attachment_.socket, group);
}

void NICLink::leave() {
  has_left_ = true;
  is_alive_ = false;
  next_retry_ = Time::never();
  attachment_.socket.reset();
}

}  // namespace verbena::host
