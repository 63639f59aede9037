#include "fabric/tcp/fpdu_pipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace verbena::fabric {

void FPDUPipe::put(Bytes bytes) {
  CHECK(bytes.size() <= kMostBytes);
  if (!bytes.empty()) put_record({.bytes = static_cast<u32>(bytes.size())}, bytes);
}

void FPDUPipe::put_payload(u32 bytes) {
  if (bytes != 0) put_record({.bytes = bytes, .is_payload = true}, {});
}

// There is always room for the record that leads to the next chunk.
void FPDUPipe::put_record(const Record& record, Bytes bytes) {
  const u32 size = size_of(static_cast<u32>(bytes.size()));
  if (filled_ + size + size_of(0) > last_->bytes.size()) {
    last_->next = std::make_unique<Chunk>();
    const Record end;
    std::memcpy(last_->bytes.data() + filled_, &end, sizeof end);
    last_ = last_->next.get();
    filled_ = 0;
  }
  std::memcpy(last_->bytes.data() + filled_, &record, sizeof record);
  std::ranges::copy(bytes, last_->bytes.begin() + filled_ + sizeof record);
  filled_ += size;
}

FPDUPipe::Record FPDUPipe::next_record() {
  Record record;
  std::memcpy(&record, first_->bytes.data() + read_, sizeof record);
  if (record.bytes != 0) return record;
  first_ = std::exchange(first_->next, nullptr);
  read_ = 0;
  std::memcpy(&record, first_->bytes.data(), sizeof record);
  return record;
}

FPDUPipe::Piece FPDUPipe::take(u64 most) {
  const Record record = next_record();
  const u32 take = static_cast<u32>(std::min<u64>(most, record.bytes - taken_));
  const u8* const from = first_->bytes.data() + read_ + sizeof record + taken_;
  taken_ += take;
  if (taken_ == record.bytes) {
    read_ += size_of(record.is_payload ? 0 : record.bytes);
    taken_ = 0;
  }
  return record.is_payload ? Piece{{}, take} : Piece{{from, take}, 0};
}

}  // namespace verbena::fabric
