// ProcessChannel: how the Verbena processes of one user and network namespace reach each other: a
// Unix datagram socket each, in the abstract namespace, named after its slot. To bind the name is
// to own the slot; the kernel frees it when the process ends, however it ends. Carries frames that
// reached the wrong process, and answers to probes. Lossy, as the network is.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "device/port/frame.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

// "My slot is `slot`, and the probe with this nonce for socket `index` came to me."
struct ProbeAnswer {
  u64 nonce = 0;
  u32 index = 0;
  u32 slot = 0;
};

class ProcessChannel {
 public:
  ProcessChannel() = default;  // closed
  // Takes a free slot, the search beginning at one drawn from `random`.
  [[nodiscard]] static Expected<ProcessChannel> claim(u64 random);

  [[nodiscard]] u32 slot() const { return slot_; }
  [[nodiscard]] int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }

  [[nodiscard]] static bool is_alive(u32 slot);  // some process of this user has it
  [[nodiscard]] static u32 count_alive();
  // Returns false if it was not delivered: the process is gone, or its queue is full.
  [[nodiscard]] bool send(u32 slot, const IngressFrame& frame);
  // The same, but waits until `deadline` for room in its queue.
  [[nodiscard]] bool send(u32 slot, const IngressFrame& frame, Time deadline);
  [[nodiscard]] bool send(u32 slot, const ProbeAnswer& answer);

  enum class Received { kNothing, kFrame, kAnswer, kIgnored };
  // Takes the next message, without blocking. The result is valid until the next call.
  [[nodiscard]] Received receive();
  [[nodiscard]] const IngressFrame& frame() const { return frame_; }
  [[nodiscard]] const ProbeAnswer& answer() const { return answer_; }

 private:
  struct Header;
  ProcessChannel(Descriptor socket, u32 slot);
  bool send(u32 slot, const Header& header, std::span<const u8> body);
  Received decode(std::span<const u8> message);

  Descriptor socket_;
  uid_t user_ = 0;  // who opened it
  u32 slot_ = 0;
  std::unique_ptr<u8[]> buffer_;
  IngressFrame frame_;
  ProbeAnswer answer_;
};

// Wakes processes that wait for their channel: it gets a message that says nothing.
class ProcessWaker {
 public:
  ProcessWaker();
  void wake(u32 slot);
  void close() { socket_.reset(); }

 private:
  Descriptor socket_;
  uid_t user_;
};

}  // namespace verbena::host
