// verbena nvmf read, and write: between a remote namespace and a file or a pipe.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "nvmf/status_text.h"
#include "nvmf_program/commands.h"
#include "nvmf_program/host_session.h"

namespace verbena::nvmf_program {
namespace {

using nvmf::Initiator;

constexpr u32 kParts = 16;              // commands at a time
constexpr u32 kPartBytes = 256 * 1024;  // of each, at most

class LocalFile {
 public:
  LocalFile(const std::string& name, bool is_read) : name_(name) {
    if (name == "-") {
      fd_ = is_read ? STDIN_FILENO : STDOUT_FILENO;
      return;
    }
    fd_ = ::open(name.c_str(),
                 is_read ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    owns_ = fd_ >= 0;
  }
  ~LocalFile() {
    if (owns_) ::close(fd_);
  }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] std::string error() const { return name_ + ": " + std::strerror(errno); }
  // As many bytes as there are; nullopt: an error.
  [[nodiscard]] std::optional<std::size_t> read(std::span<u8> into) const {
    const SignalsEndProcess signals;
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t bytes = ::read(fd_, into.data() + done, into.size() - done);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0) return std::nullopt;
      if (bytes == 0) break;
      done += static_cast<std::size_t>(bytes);
    }
    return done;
  }
  [[nodiscard]] bool write(std::span<const u8> from) const {
    const SignalsEndProcess signals;
    while (!from.empty()) {
      const ssize_t bytes = ::write(fd_, from.data(), from.size());
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) return false;
      from = from.subspan(static_cast<std::size_t>(bytes));
    }
    return true;
  }

 private:
  std::string name_;
  int fd_ = -1;
  bool owns_ = false;
};

// Moves a range in parts; up to kParts commands are outstanding.
class Transfer {
 public:
  Transfer(HostSession& session, const TransferOptions& options, const LocalFile& file,
           const application::Region& memory, u32 part_bytes, u8 block_log2)
      : session_(session),
        options_(options),
        file_(file),
        memory_(memory),
        part_bytes_(part_bytes),
        block_log2_(block_log2) {}

  [[nodiscard]] Expected<void> read(u64 bytes) {
    u64 asked = 0;
    u32 next = 0;
    while (asked < bytes || !parts_.empty()) {
      while (asked < bytes && parts_.size() < kParts) {
        const u32 part = static_cast<u32>(std::min<u64>(bytes - asked, part_bytes_));
        submit(nvme::IOOpcode::kRead, asked, part, next++ % kParts);
        asked += part;
      }
      if (auto done = wait_first(); !done) return done;
      const Part part = parts_.front();
      parts_.pop_front();
      if (!file_.write(bytes_of(part.slot).first(part.bytes))) return tl::unexpected(file_.error());
    }
    return {};
  }

  // Until the end of the file, or `limit`. The last block is filled with zeros.
  [[nodiscard]] Expected<u64> write(u64 limit) {
    u64 sent = 0;
    u32 next = 0;
    bool is_end = false;
    while (!is_end || !parts_.empty()) {
      while (!is_end && parts_.size() < kParts) {
        const u32 slot = next++ % kParts;
        const std::size_t wanted = std::min<u64>(part_bytes_, limit - sent);
        const auto bytes = file_.read(bytes_of(slot).first(wanted));
        if (!bytes) return tl::unexpected(file_.error());
        is_end = *bytes < wanted || wanted == 0 || sent + *bytes == limit;
        if (*bytes == 0) break;
        const u32 whole = up_to_blocks(static_cast<u32>(*bytes));
        std::memset(bytes_of(slot).data() + *bytes, 0, whole - *bytes);
        submit(nvme::IOOpcode::kWrite, sent, whole, slot);
        sent += *bytes;
      }
      if (parts_.empty()) break;
      if (auto done = wait_first(); !done) return tl::unexpected(done.error());
      parts_.pop_front();
    }
    session_.initiator().submit({.opcode = nvme::IOOpcode::kFlush, .nsid = options_.nsid});
    parts_.push_back({});
    if (auto done = wait_first(); !done) return tl::unexpected(done.error());
    return sent;
  }

 private:
  struct Part {
    u32 slot = 0, bytes = 0;
    u64 tag = 0;
    bool is_done = false;
  };

  [[nodiscard]] u32 up_to_blocks(u32 bytes) const {
    const u32 block = 1u << block_log2_;
    return (bytes + block - 1) & ~(block - 1);
  }
  [[nodiscard]] std::span<u8> bytes_of(u32 slot) const {
    return memory_.bytes.subspan(u64{slot} * part_bytes_, part_bytes_);
  }
  void submit(nvme::IOOpcode opcode, u64 at, u32 bytes, u32 slot) {
    const u32 whole = up_to_blocks(bytes);
    const u64 tag = ++last_tag_;
    parts_.push_back({slot, bytes, tag, false});
    session_.initiator().submit({.opcode = opcode,
                                 .nsid = options_.nsid,
                                 .lba = (options_.offset + at) >> block_log2_,
                                 .blocks = whole >> block_log2_,
                                 .data = slice_of(memory_, u64{slot} * part_bytes_, whole),
                                 .tag = tag});
  }
  Expected<void> wait_first() {
    nvme::Status failed = nvme::Status::kSuccess;
    const auto is_over = [&] {
      for (Initiator::Result r; session_.initiator().poll_result(r);) {
        if (r.status != nvme::Status::kSuccess) failed = r.status;
        for (Part& part : parts_)
          if (part.tag == r.tag) part.is_done = true;
      }
      return parts_.front().is_done || failed != nvme::Status::kSuccess;
    };
    const bool is_done = session_.run_until(is_over);
    if (failed != nvme::Status::kSuccess) return tl::unexpected(nvmf::describe(failed));
    if (!is_done)
      return tl::unexpected(session_.is_stopped() ? "interrupted" : session_.initiator().failure());
    return {};
  }

  HostSession& session_;
  const TransferOptions& options_;
  const LocalFile& file_;
  const application::Region memory_;
  const u32 part_bytes_;
  const u8 block_log2_;
  std::deque<Part> parts_;
  u64 last_tag_ = 0;
};

}  // namespace

Expected<void> transfer(const TransferOptions& options) {
  const StopDescriptor stop;
  auto session = HostSession::open(options.host, &stop);
  if (!session) return tl::unexpected(session.error());
  Initiator& initiator = (*session)->initiator();
  const auto space = initiator.namespaces().find(options.nsid);
  if (space == initiator.namespaces().end())
    return tl::unexpected("the subsystem has no namespace " + std::to_string(options.nsid));
  const u8 block_log2 = space->second.block_log2;
  const u64 size = space->second.blocks << block_log2, block = u64{1} << block_log2;
  const u64 rest = size - std::min(size, options.offset);
  if (options.offset % block != 0)
    return tl::unexpected("--offset is no multiple of the block size, " + std::to_string(block));
  if (options.offset >= size || options.length.value_or(1) > rest)
    return tl::unexpected("the range ends after the namespace, which has " + std::to_string(size) +
                          " bytes");
  const LocalFile file(options.file, options.is_write);
  if (!file.is_open()) return tl::unexpected(file.error());
  const u32 part = std::min(kPartBytes, initiator.max_transfer_bytes());
  const auto memory = (*session)->node().allocate(u64{part} * kParts, application::Content::kBytes,
                                                  application::Access::kRemoteReadWrite);
  if (!memory) return tl::unexpected(std::string("no memory for data"));
  Transfer work(**session, options, file, *memory, part, block_log2);
  const u64 bytes = options.length.value_or(rest);
  if (options.is_write) {
    const auto sent = work.write(bytes);
    if (!sent) return tl::unexpected(sent.error());
    std::array<u8, 1> more{};
    if (!options.length && *sent == rest && file.read(more).value_or(0) > 0)
      return tl::unexpected("the input is longer than the namespace; " + std::to_string(*sent) +
                            " bytes were written");
  } else if (const auto done = work.read(bytes); !done) {
    return done;
  }
  (*session)->close();
  return {};
}

}  // namespace verbena::nvmf_program
