#include "fabric/tcp/fpdu_pipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace verbena::fabric {

void FPDUPipe::put(Bytes octets) {
  CHECK(octets.size() <= kMostOctets);
  if (!octets.empty()) put_record({.octets = static_cast<u32>(octets.size())}, octets);
}

void FPDUPipe::put_payload(u32 octets) {
  if (octets != 0) put_record({.octets = octets, .is_payload = true}, {});
}

// There is always room for the record that leads to the next chunk.
void FPDUPipe::put_record(const Record& record, Bytes octets) {
  const u32 size = size_of(static_cast<u32>(octets.size()));
  if (filled_ + size + size_of(0) > last_->bytes.size()) {
    last_->next = std::make_unique<Chunk>();
    const Record end;
    std::memcpy(last_->bytes.data() + filled_, &end, sizeof end);
    last_ = last_->next.get();
    filled_ = 0;
  }
  std::memcpy(last_->bytes.data() + filled_, &record, sizeof record);
  std::ranges::copy(octets, last_->bytes.begin() + filled_ + sizeof record);
  filled_ += size;
}

FPDUPipe::Record FPDUPipe::next_record() {
  Record record;
  std::memcpy(&record, first_->bytes.data() + read_, sizeof record);
  if (record.octets != 0) return record;
  first_ = std::exchange(first_->next, nullptr);
  read_ = 0;
  std::memcpy(&record, first_->bytes.data(), sizeof record);
  return record;
}

FPDUPipe::Piece FPDUPipe::take(u64 most) {
  const Record record = next_record();
  const u32 take = static_cast<u32>(std::min<u64>(most, record.octets - taken_));
  const u8* const from = first_->bytes.data() + read_ + sizeof record + taken_;
  taken_ += take;
  if (taken_ == record.octets) {
    read_ += size_of(record.is_payload ? 0 : record.octets);
    taken_ = 0;
  }
  return record.is_payload ? Piece{{}, take} : Piece{{from, take}, 0};
}

}  // namespace verbena::fabric
