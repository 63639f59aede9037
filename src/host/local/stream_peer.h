// StreamPeer: ProcessMemory of the QP at the other end of a TCP connection. The two ends do not
// know each other's QPNs; the peer's is found by the connection (stream_directory.h).
#pragma once

#include "host/local/process_memory.h"

namespace verbena::host {

class StreamPeer final : public PeerMemory {
 public:
  StreamPeer(std::shared_ptr<ProcessMemory> process, QPN qpn)
      : process_(std::move(process)), qpn_(qpn) {}

  [[nodiscard]] bool has_executed(const QPAttributes& qp, PSN before) const override {
    return process_->has_executed(addressed(qp), before);
  }
  [[nodiscard]] bool write(const QPAttributes& qp, std::span<const MemoryPiece> from,
                           std::span<const PeerRange> to) override {
    return process_->write(addressed(qp), from, to);
  }
  [[nodiscard]] bool read(const QPAttributes& qp, std::span<const PeerRange> from,
                          std::span<const MemoryPiece> to) override {
    return process_->read(addressed(qp), from, to);
  }
  [[nodiscard]] Admission admit(const QPAttributes& qp, Access need,
                                std::span<const PeerRange> ranges,
                                std::span<PeerPlace> out) override {
    return process_->admit(addressed(qp), need, ranges, out);
  }
  void on_copied(const QPAttributes& qp, const LocalWork& work) override {
    process_->on_copied(addressed(qp), work);
  }

 private:
  [[nodiscard]] QPAttributes addressed(const QPAttributes& qp) const {
    QPAttributes attributes = qp;
    attributes.dest_qp = qpn_;
    return attributes;
  }

  std::shared_ptr<ProcessMemory> process_;
  QPN qpn_;
};

}  // namespace verbena::host
