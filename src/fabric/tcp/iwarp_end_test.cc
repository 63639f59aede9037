// iWARP's engines at the ends of a simulated TCP connection, and the pipe between them.
#include "fabric/tcp/iwarp_end.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "fabric/network.h"
#include "fabric/testing.h"

namespace verbena::fabric {
namespace {

constexpr u32 kMSS = 8948;

std::vector<u8> taken(FPDUPipe& pipe, u64 bytes, u64 longest) {
  std::vector<u8> all;
  while (bytes != 0) {
    const FPDUPipe::Piece piece = pipe.take(std::min(bytes, longest));
    all.insert(all.end(), piece.bytes.begin(), piece.bytes.end());
    all.resize(all.size() + piece.payload);
    bytes -= piece.bytes.size() + piece.payload;
  }
  return all;
}

TEST(FPDUPipe, GivesWhatWasPutInAnyPieces) {
  for (const u64 longest : {1u, 7u, 100'000u}) {
    FPDUPipe pipe;
    std::vector<u8> expected;
    for (u32 i = 0; i < 1000; ++i) {  // several chunks
      const std::vector<u8> bytes(i % (FPDUPipe::kMostBytes + 1), static_cast<u8>(i));
      pipe.put(bytes);
      pipe.put_payload(i % 3);
      expected.insert(expected.end(), bytes.begin(), bytes.end());
      expected.resize(expected.size() + i % 3);
    }
    EXPECT_EQ(taken(pipe, expected.size(), longest), expected) << longest;
  }
}

struct Connected {
  explicit Connected(u32 mss) : from(here, mss), to(there, mss) {
    from.connect(pipe, there.sink().r_key);
    to.connect(pipe, here.sink().r_key);
  }
  IWARPMemory here, there;
  std::shared_ptr<FPDUPipe> pipe = std::make_shared<FPDUPipe>();
  IWARPEnd from, to;
  StreamGather room;
};

// A message is told of with its last byte, whatever the lengths and the pieces.
TEST(IWARPEnd, TellsOfMessagesInOrderWithTheirLastByte) {
  for (const u32 mss : {64u, 1448u, kMSS})
    for (const u64 bytes : {0u, 1u, 5000u, 65'536u, 1'000'000u}) {
      Connected ends(mss);
      const u64 first = ends.from.post(bytes, 7), second = ends.from.post(bytes, 8);
      EXPECT_EQ(first, second);
      PRNG prng(1);
      std::vector<std::pair<u64, u32>> told;  // position, word
      for (u64 at = 0; at < first + second;) {
        at = std::min(at + 1 + prng.below(3 * mss), first + second);
        for (const u64 position :
             {std::min(at, first), at}) {  // the end of a message is not missed
          ends.from.make_until(position, ends.room, Time());
          ends.to.on_delivered(position, Time());
          while (const std::optional<u32> word = ends.to.poll_message())
            told.emplace_back(position, *word);
        }
      }
      const std::vector<std::pair<u64, u32>> expected = {{first, 7}, {first + second, 8}};
      EXPECT_EQ(told, expected) << mss << " " << bytes;
    }
}

// RFC 5044, 5.1: a flow's FPDUs fill segments, the last one aside.
TEST(IWARPEnd, MakesAsManyBytesOfAFlowAsItSays) {
  for (const u64 bytes : {0u, 1u, 8928u, 8929u, 1u << 20, 10'000'000u}) {
    Connected ends(kMSS);
    const u64 length = ends.from.post(bytes, std::nullopt);
    EXPECT_EQ(length, ends.to.bytes_of_flow(bytes));
    EXPECT_EQ(length, bytes + std::max<u64>((bytes + 8927) / 8928, 1) * 20 + (4 - bytes % 4) % 4);
    ends.from.make_until(length, ends.room, Time());
    ends.to.on_delivered(length, Time());
    EXPECT_EQ(ends.to.poll_message(), std::nullopt);
    EXPECT_EQ(ends.to.counters().rx_write_requests, std::max<u64>((bytes + 62'495) / 62'496, 1));
  }
}

// The receiver's engine checks what it executes.
TEST(IWARPEndDeathTest, TheReceiverRefusesAForeignKey) {
  Connected ends(kMSS);
  ends.from.connect(ends.pipe, RKey{ends.there.sink().r_key.value ^ 1});
  ends.from.make_until(ends.from.post(100, 7), ends.room, Time());
  EXPECT_DEATH(ends.to.on_delivered(120, Time()), "poll_event");
}

}  // namespace
}  // namespace verbena::fabric
