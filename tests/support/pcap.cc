#include "tests/support/pcap.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "base/check.h"

namespace verbena::test {
namespace {

constexpr i64 kNanosecondsPerSecond = 1'000'000'000;
constexpr int kSnapLength = 65535;

using Pcap = std::unique_ptr<pcap_t, decltype(&pcap_close)>;

std::string path_of(const std::string& name) {
  return std::string(VERBENA_CAPTURES_DIR) + "/" + name;
}

}  // namespace

std::vector<CapturedFrame> read_capture(const std::string& name) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  const Pcap pcap(pcap_open_offline_with_tstamp_precision(path_of(name).c_str(),
                                                          PCAP_TSTAMP_PRECISION_NANO, error.data()),
                  &pcap_close);
  CHECK(pcap != nullptr && pcap_datalink(pcap.get()) == DLT_EN10MB);
  std::vector<CapturedFrame> frames;
  pcap_pkthdr* header = nullptr;
  const u8* data = nullptr;
  int result = 0;
  while ((result = pcap_next_ex(pcap.get(), &header, &data)) == 1) {
    CHECK(header->caplen == header->len);
    frames.push_back({.number = frames.size() + 1,
                      .time_ns = header->ts.tv_sec * kNanosecondsPerSecond + header->ts.tv_usec,
                      .bytes = {data, data + header->caplen}});
  }
  CHECK(result == PCAP_ERROR_BREAK);  // the end of the file
  return frames;
}

std::vector<u8> captured_frame(const std::string& name, std::size_t number) {
  std::vector<CapturedFrame> frames = read_capture(name);
  CHECK(number >= 1 && number <= frames.size());
  return std::move(frames[number - 1].bytes);
}

std::vector<std::string> capture_names(std::string_view prefix) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(VERBENA_CAPTURES_DIR)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".pcap")) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

bool write_capture(const std::string& path, const std::vector<CapturedFrame>& frames) {
  const Pcap pcap(
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength, PCAP_TSTAMP_PRECISION_NANO),
      &pcap_close);
  CHECK(pcap != nullptr);
  pcap_dumper_t* dumper = pcap_dump_open(pcap.get(), path.c_str());
  if (dumper == nullptr) return false;
  for (const CapturedFrame& frame : frames) {
    pcap_pkthdr header{};
    header.ts.tv_sec = frame.time_ns / kNanosecondsPerSecond;
    header.ts.tv_usec = frame.time_ns % kNanosecondsPerSecond;
    header.caplen = header.len = static_cast<u32>(frame.bytes.size());
    pcap_dump(reinterpret_cast<u8*>(dumper), &header, frame.bytes.data());
  }
  const bool written = pcap_dump_flush(dumper) == 0;
  pcap_dump_close(dumper);
  return written;
}

}  // namespace verbena::test
