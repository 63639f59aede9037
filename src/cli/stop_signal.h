// StopSignal: SIGINT and SIGTERM as something to wait for: commands that run until they are told to
// stop then end in order, with exit status 0. One at a time, for the whole process.
#pragma once

#include "base/time.h"
#include "host/os/descriptor.h"

namespace verbena::cli {

class StopSignal {
 public:
  StopSignal();

  [[nodiscard]] int fd() const { return signals_.get(); }  // readable once it has come
  [[nodiscard]] bool wait(Duration limit) const;           // true if it came
  // Waits for the limit, the signal or `also`, and returns which came first. `also`: a descriptor,
  // or -1.
  enum class Woken { kTimeout, kStopped, kReadable };
  [[nodiscard]] Woken wait(Duration limit, int also) const;

 private:
  host::Descriptor signals_;
};

}  // namespace verbena::cli
