// Packets from the files in tests/captures/, for tests. README.md there says what each file holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace verbena::test {

struct CapturedFrame {
  std::size_t number = 0;  // from 1, as tshark counts
  i64 time_ns = 0;         // since 1970
  std::vector<u8> bytes;   // from the Ethernet header on
};

// All frames of one file ("rxe-ud.pcap"). A file that is missing or broken ends the test program.
[[nodiscard]] std::vector<CapturedFrame> read_capture(const std::string& name);

// One frame, by its number.
[[nodiscard]] std::vector<u8> captured_frame(const std::string& name, std::size_t number);

// The names of all captures that begin so ("rxe-"), sorted.
[[nodiscard]] std::vector<std::string> capture_names(std::string_view prefix);

// Writes frames as an Ethernet capture, for a person or tshark to look at. False: cannot write.
[[nodiscard]] bool write_capture(const std::string& path, const std::vector<CapturedFrame>& frames);

}  // namespace verbena::test
