// The rings of a program on a virtual function, in memory that it shares with the NIC: one to the
// NIC for each traffic class, so that no packet waits behind one of a lower class, and one to the
// program. Memory of a ring that is not used is not allocated. Neither side trusts what the other
// can change.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "host/local/frame_ring.h"
#include "host/nic/traffic_classes.h"

namespace verbena::host {

struct NICRings {
  std::array<FrameRing, kTrafficClasses> to_nic;
  FrameRing to_program;
  // Bit i: the ring of class i is used. The program sets it before it publishes the first record.
  alignas(64) std::atomic<u32> used;
  alignas(64) std::array<std::atomic<u8>, kDSCPs> class_of_dscp;  // the NIC writes it
};

// The program's side. Opens the writer of a class when it is first used.
class ClassWriters {
 public:
  explicit ClassWriters(NICRings& rings) : rings_(rings) {}

  // As FrameRingWriter's, in the ring of the packet's class. `traffic_class`: of its IP header.
  [[nodiscard]] u8* add(u8 traffic_class, const FrameRing::Addresses& addresses, u32 body_bytes);
  [[nodiscard]] FrameRing::Header& last() { return last_->last(); }
  void take_back() { last_->take_back(); }
  // Publishes the records of all classes. Returns true if the NIC needs its doorbell.
  [[nodiscard]] bool publish();

 private:
  [[nodiscard]] FrameRingWriter& writer_of(u32 traffic_class);

  NICRings& rings_;
  std::array<std::optional<FrameRingWriter>, kTrafficClasses> writers_;
  FrameRingWriter* last_ = nullptr;  // that a record was added to
  u32 unpublished_ = 0;              // bit i: the ring of class i
};

// The NIC's side. Opens the reader of a class when the program says that it uses its ring.
class ClassReaders {
 public:
  explicit ClassReaders(NICRings& rings) : rings_(rings) {}

  void set_classes(const ClassOfDSCP& classes);  // for the program
  // The classes whose rings have a record: bit i for class i. Frees what was polled before.
  [[nodiscard]] u32 pending();
  // Takes the next record of a class whose ring has had one. Its body is good until pending().
  [[nodiscard]] bool poll_and_keep(u32 traffic_class, FrameRingReader::Record& out);
  [[nodiscard]] bool is_broken() const;
  // As FrameRingReader's, of all rings.
  void watch();
  void unwatch();

 private:
  void open_used();

  NICRings& rings_;
  std::array<std::optional<FrameRingReader>, kTrafficClasses> readers_;
  u32 open_ = 0;  // bit i: the reader of class i
  bool watches_ = false;
};

}  // namespace verbena::host
