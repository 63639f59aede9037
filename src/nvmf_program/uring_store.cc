// A FileStore on io_uring. Without liburing make_uring_store() returns nullptr.
#include "nvmf_program/file_store.h"

#ifdef VERBENA_LIBURING

#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <vector>

namespace verbena::nvmf_program {
namespace {

constexpr unsigned kRingEntries = 1024;

class UringStore final : public FileStore {
 public:
  UringStore(int fd, const io_uring& ring, int event) : FileStore(fd), ring_(ring), event_(event) {}
  ~UringStore() override {
    io_uring_queue_exit(&ring_);
    close(event_);
  }
  [[nodiscard]] int descriptor() const override { return event_; }
  [[nodiscard]] std::string_view method() const override { return "io_uring"; }

  void submit(const Request& request) override {
    const u32 slot = take_slot();
    slots_[slot] = {request, 0};
    if (!enqueue(slot)) waiting_.push_back(slot);
  }
  void flush_submissions() override {
    if (std::exchange(unsubmitted_, false)) (void)io_uring_submit(&ring_);
  }
  [[nodiscard]] bool poll(Done& out) override {
    flush_submissions();
    take_completions();
    if (done_.empty()) return false;
    out = done_.front();
    done_.pop_front();
    return true;
  }

 private:
  struct Slot {
    Request request;
    u64 done = 0;  // bytes that are transferred
  };

  u32 take_slot() {
    if (free_.empty()) {
      free_.push_back(static_cast<u32>(slots_.size()));
      slots_.emplace_back();
    }
    const u32 slot = free_.back();
    free_.pop_back();
    return slot;
  }

  // Returns false if the ring is full.
  bool enqueue(u32 number) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return false;
    const auto& [request, done] = slots_[number];
    const auto part = static_cast<unsigned>(request.length - done);
    const u64 at = request.offset + done;
    switch (request.kind) {
      case Kind::kRead: io_uring_prep_read(entry, fd_, request.bytes + done, part, at); break;
      case Kind::kWrite:
      case Kind::kDurableWrite:
        io_uring_prep_write(entry, fd_, request.bytes + done, part, at);
        if (request.kind == Kind::kDurableWrite) entry->rw_flags = RWF_DSYNC;
        break;
      case Kind::kFlush: io_uring_prep_fsync(entry, fd_, IORING_FSYNC_DATASYNC); break;
      case Kind::kWriteZeroes:
      case Kind::kDeallocate:
        io_uring_prep_fallocate(
            entry, fd_,
            FALLOC_FL_KEEP_SIZE |
                (request.kind == Kind::kDeallocate ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE),
            static_cast<off_t>(request.offset), static_cast<off_t>(request.length));
        break;
    }
    io_uring_sqe_set_data64(entry, number);
    unsubmitted_ = true;
    return true;
  }

  void take_completions() {
    io_uring_cqe* entry = nullptr;
    unsigned head = 0, count = 0;
    io_uring_for_each_cqe(&ring_, head, entry) {
      ++count;
      on_completion(static_cast<u32>(io_uring_cqe_get_data64(entry)), entry->res);
    }
    if (count == 0) return;
    io_uring_cq_advance(&ring_, count);
    u64 events = 0;
    if (read(event_, &events, sizeof events) < 0 && errno != EAGAIN) return;
    while (!waiting_.empty() && enqueue(waiting_.front())) waiting_.pop_front();
    flush_submissions();
  }

  void on_completion(u32 number, int result) {
    auto& [request, done] = slots_[number];
    const bool moves = request.kind == Kind::kRead || request.kind == Kind::kWrite ||
                       request.kind == Kind::kDurableWrite;
    const bool zeroes = request.kind == Kind::kWriteZeroes || request.kind == Kind::kDeallocate;
    if (result == -EINTR || result == -EAGAIN) return waiting_.push_back(number);
    if (result < 0 && zeroes) return finish(number, execute(request));  // writes zeros
    if (result < 0) return finish(number, outcome_of(-result));
    if (!moves) return finish(number, Outcome::kDone);
    if (result == 0) return finish(number, Outcome::kFailed);  // the file has become shorter
    done += static_cast<u64>(result);
    if (done == request.length) return finish(number, Outcome::kDone);
    waiting_.push_back(number);
  }

  void finish(u32 number, Outcome outcome) {
    done_.push_back({slots_[number].request.tag, outcome});
    free_.push_back(number);
  }

  io_uring ring_;
  const int event_;
  std::vector<Slot> slots_;
  std::vector<u32> free_;
  std::deque<u32> waiting_;  // for room in the ring
  std::deque<Done> done_;
  bool unsubmitted_ = false;
};

}  // namespace

std::unique_ptr<FileStore> make_uring_store(int fd) {
  io_uring ring{};
  if (io_uring_queue_init(kRingEntries, &ring, 0) != 0) return nullptr;
  const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event < 0 || io_uring_register_eventfd(&ring, event) != 0) {
    if (event >= 0) close(event);
    io_uring_queue_exit(&ring);
    return nullptr;
  }
  return std::make_unique<UringStore>(fd, ring, event);
}

}  // namespace verbena::nvmf_program

#else

namespace verbena::nvmf_program {

std::unique_ptr<FileStore> make_uring_store(int) { return nullptr; }

}  // namespace verbena::nvmf_program

#endif
