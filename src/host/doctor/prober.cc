#include "host/doctor/prober.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <climits>

#include "connect/comm_id_space.h"
#include "host/os/clock.h"
#include "host/os/random.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

constexpr std::size_t kMaxPayload = 4096;

}  // namespace

Expected<std::unique_ptr<Prober>> Prober::open(const LocalAddress& address) {
  Expected<std::unique_ptr<UDPLink>> link = UDPLink::open(address, random_u64());
  if (!link) return tl::unexpected(link.error());
  return std::unique_ptr<Prober>(new Prober(address, std::move(*link)));
}

std::optional<GID> Prober::source_for(const GID& destination) const {
  for (const GID& own : address_.all())  // itself first: loopback has many
    if (own == destination) return own;
  for (const GID& own : address_.all())
    if (own.is_ipv4() == destination.is_ipv4() &&
        (own.is_ipv4() || own.is_link_local() == destination.is_link_local()))
      return own;
  for (const GID& own : address_.all())
    if (own.is_ipv4() == destination.is_ipv4()) return own;
  return std::nullopt;
}

// Answers name it, so that they come to this process.
CommId Prober::own_id() const {
  PRNG prng(random_u64());
  return CommIdSpace(ProcessSlot{static_cast<u16>(link_->slot())}).draw(prng);
}

void Prober::send(const EgressFrame& frame) {
  link_->append(frame);
  link_->flush();
}

bool Prober::wait(Time deadline, int stop) {
  std::vector<pollfd> waiting = {{.fd = stop, .events = POLLIN, .revents = 0}};
  for (const int fd : link_->descriptors())
    waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  const Duration left = std::min(deadline, link_->next_timer()) - monotonic_now();
  const i64 milliseconds = std::clamp<i64>((left.ns() + 999'999) / 1'000'000, 0, INT_MAX);
  (void)::poll(waiting.data(), waiting.size(), static_cast<int>(milliseconds));
  return waiting[0].revents == 0 && monotonic_now() < deadline;
}

std::optional<ProbeResult> Prober::exchange(const Probe& probe, Duration patience) {
  const std::optional<GID> source = source_for(probe.destination);
  if (!source) return std::nullopt;
  const bool to_ourselves = *source == probe.destination;
  const EchoRequest request{.transaction_id = random_u64(),
                            .ours = own_id(),
                            .theirs = to_ourselves ? own_id() : CommId{},
                            .answer_traffic_class = probe.answer_traffic_class};
  std::vector<u8> payload(std::clamp(probe.payload_bytes, kMADSize, kMaxPayload));
  std::ranges::copy(request.encode(), payload.begin());
  const Time sent = monotonic_now();
  send(echo_frame(*source, probe.destination, probe.traffic_class, payload));

  IngressFrame frame;
  do {
    (void)link_->receive(Look::kEverywhere);
    while (link_->poll_frame(frame, monotonic_now())) {
      if (answer(frame)) continue;
      const auto mad = mad_in(frame);
      const std::optional<EchoReply> reply = mad ? decode_reply(*mad) : std::nullopt;
      if (reply && reply->transaction_id == request.transaction_id &&
          frame.source == probe.destination)
        return ProbeResult{.round_trip = monotonic_now() - sent,
                           .traffic_class = frame.traffic_class,
                           .hop_limit = frame.hop_limit,
                           .note = reply->note};
    }
  } while (wait(sent + patience, -1));
  return std::nullopt;
}

// Returns false if the frame is no question.
bool Prober::answer(const IngressFrame& frame) {
  const auto mad = mad_in(frame);
  const std::optional<EchoRequest> request = mad ? decode_request(*mad) : std::nullopt;
  if (!request) return false;
  const EchoReply reply{
      .transaction_id = request->transaction_id,
      .ours = request->theirs,
      .theirs = request->ours,
      .note = EchoNote{.transport_bytes = static_cast<u16>(frame.transport.size()),
                       .traffic_class = frame.traffic_class,
                       .hop_limit = frame.hop_limit}};
  const cm::MADBytes bytes = reply.encode();
  send(echo_frame(frame.destination, frame.source, request->answer_traffic_class, bytes));
  return true;
}

bool Prober::is_steered_to(Prober& other, Duration patience) {
  const GID address = address_.all().front();
  const std::array<u8, kMADSize> nothing{};
  EgressFrame frame = echo_frame(address, address, 0, nothing);
  PacketHeaders headers{.bth = {.opcode = {Service::kUD, Op::kSendOnly},
                                .dest_qp = first_qpn_of(other.link_->slot())},
                        .deth = {.q_key = kGSIQKey, .source_qp = kGSIQPN}};
  headers.encode(frame.headers);
  const u64 before = other.link_->counters().received_frames;
  const Time deadline = monotonic_now() + patience;
  send(frame);
  IngressFrame received;
  do {
    (void)other.link_->receive(Look::kEverywhere);
    while (other.link_->poll_frame(received, monotonic_now())) {
    }
    if (other.link_->counters().received_frames > before) return true;
  } while (other.wait(deadline, -1));
  return false;
}

void Prober::serve(int stop, const std::function<void(const GID&)>& answered) {
  IngressFrame frame;
  do {
    (void)link_->receive(Look::kEverywhere);
    while (link_->poll_frame(frame, monotonic_now()))
      if (answer(frame)) answered(frame.source);
  } while (wait(Time::never(), stop));
}

}  // namespace verbena::host
