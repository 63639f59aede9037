// Measurement: one operation of one size, done again and again by a rank, timed and checked.
#pragma once

#include <string>

#include <verbena/collectives.h>

#include "perf/options.h"

namespace verbena::perf {

enum class Place : u8 { kOutOfPlace, kInPlace };

struct Result {
  double us = 0;   // of one operation, the average of all ranks
  i64 wrong = -1;  // elements, on all ranks; -1: not checked
};

// Buffers for the largest size, and the operation on a part of them.
class Measurement {
 public:
  Measurement(const Options& options, verbena_comm* comm);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // Returns what is missing, such as memory, or "" if nothing is.
  [[nodiscard]] std::string prepare(u64 most_bytes);
  // Returns the error, or "" if there is none.
  [[nodiscard]] std::string run(u64 bytes, Place place, u32 iterations, Result& result);
  [[nodiscard]] u64 elements(u64 bytes) const;  // as nccl-tests prints them

 private:
  [[nodiscard]] u64 share(u64 bytes) const;  // elements of one rank's block
  void fill_inputs(u64 bytes, Place place);
  [[nodiscard]] u64 count_wrong_outputs(u64 bytes, Place place) const;
  [[nodiscard]] int operate(u64 bytes, Place place);
  [[nodiscard]] int send_receive(u64 bytes);
  [[nodiscard]] int check(u64 bytes, Place place, i64& wrong);
  [[nodiscard]] u8* own(u8* buffer, u64 bytes) const;

  const Options& options_;
  verbena_comm* comm_;
  const u32 ranks_, rank_;
  u8* in_ = nullptr;
  u8* out_ = nullptr;
  u64 bytes_ = 0;
};

}  // namespace verbena::perf
