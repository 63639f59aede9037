// ScriptedNode: application::Node without a network, for tests and fuzz targets. The test is the
// peer: it makes connections, delivers messages, and sees what the program posts. A READ returns
// the bytes of `fetched`, over and over. Each slice that is posted has to lie in its region.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "application/node.h"
#include "base/check.h"

namespace verbena::nvmf::test {

class ScriptedNode final : public application::Node {
 public:
  struct Sent {
    application::ConnectionId connection = 0;
    application::Operation operation = application::Operation::kSend;
    std::vector<u8> bytes{};
    u64 remote_address = 0;
    u32 r_key = 0;
    std::optional<u32> invalidate{};
  };

  std::vector<Sent> sent{};
  std::vector<u8> fetched{};
  std::vector<application::ConnectionId> rejected{}, closed{};
  Time time{};

  // --- the test's side
  application::ConnectionId request(std::span<const u8> private_data) {
    const application::ConnectionId id = next_++;
    open_[id];
    tell({.kind = application::Event::Kind::kConnectRequest, .connection = id}, private_data);
    return id;
  }
  // False: the connection has ended, or no receive is posted.
  bool deliver(application::ConnectionId id, std::span<const u8> message) {
    const auto found = open_.find(id);
    if (found == open_.end() || found->second.empty()) return false;
    const auto [work, into] = found->second.front();
    found->second.pop_front();
    const std::size_t bytes = std::min<std::size_t>(message.size(), into.bytes);
    std::copy_n(message.begin(), bytes, reinterpret_cast<u8*>(into.address));
    tell({.kind = application::Event::Kind::kReceived,
          .connection = id,
          .id = work,
          .bytes = static_cast<u32>(bytes)});
    return true;
  }
  void establish(application::ConnectionId id) {
    tell({.kind = application::Event::Kind::kConnected, .connection = id});
  }
  [[nodiscard]] bool is_open(application::ConnectionId id) const { return open_.contains(id); }
  [[nodiscard]] Time alarm() const { return alarm_; }
  void ring_alarm() {
    if (alarm_ == Time::never()) return;
    time = std::max(time, alarm_);
    alarm_ = Time::never();
    tell({.kind = application::Event::Kind::kAlarm});
  }

  // --- the program's side
  [[nodiscard]] Time now() const override { return time; }
  void set_alarm(Time at) override { alarm_ = at; }
  [[nodiscard]] Result<application::Region> register_bytes(std::span<u8> bytes,
                                                           application::Access) override {
    return enter(bytes, nullptr);
  }
  [[nodiscard]] Result<application::Region> allocate(u64 length, application::Content,
                                                     application::Access) override {
    // memset(3): with a sanitizer, a loop over bytes is most of a fuzz target's time.
    auto owned = std::make_unique_for_overwrite<u8[]>(length);
    std::memset(owned.get(), 0, length);
    const std::span<u8> bytes(owned.get(), length);
    return enter(bytes, std::move(owned));
  }
  void deregister(const application::Region& region) override { regions_.erase(region.l_key); }
  [[nodiscard]] Status listen(const application::Address&,
                              const application::QueueDepths&) override {
    return Status::kOk;
  }
  [[nodiscard]] Result<application::ConnectionId> connect(const application::Address&,
                                                          const application::QueueDepths&,
                                                          std::span<const u8>) override {
    open_[next_];
    return next_++;
  }
  void accept(application::ConnectionId id, std::span<const u8>) override { establish(id); }
  void reject(application::ConnectionId id, std::span<const u8>) override {
    rejected.push_back(id);
    disconnect(id);
  }
  void disconnect(application::ConnectionId id) override {
    if (open_.erase(id) == 0) return;
    closed.push_back(id);
    tell({.kind = application::Event::Kind::kClosed, .connection = id});
  }
  void post_receive(application::ConnectionId id, u32 work,
                    const application::Slice& into) override {
    check(into);
    if (const auto found = open_.find(id); found != open_.end())
      found->second.push_back({work, into});
  }
  void post(application::ConnectionId id, const application::Work& work) override {
    if (!open_.contains(id)) return;
    Sent message{.connection = id,
                 .operation = work.operation,
                 .remote_address = work.remote_address,
                 .r_key = work.r_key,
                 .invalidate = work.invalidate};
    for (const application::Slice& slice : work.local) {
      check(slice);
      u8* const at = reinterpret_cast<u8*>(slice.address);
      if (work.operation == application::Operation::kRead)
        for (u32 i = 0; i < slice.bytes; ++i)
          at[i] = fetched.empty() ? u8{0} : fetched[i % fetched.size()];
      else
        message.bytes.insert(message.bytes.end(), at, at + slice.bytes);
    }
    sent.push_back(std::move(message));
    if (work.report == application::Report::kAlways)
      tell({.kind = application::Event::Kind::kDone, .connection = id, .id = work.id});
  }
  [[nodiscard]] bool poll(application::Event& out) override {
    if (events_.empty()) return false;
    private_data_ = std::move(events_.front().private_data);
    out = events_.front().event;
    out.private_data = private_data_;
    events_.pop_front();
    return true;
  }

 private:
  struct Queued {
    application::Event event;
    std::vector<u8> private_data;
  };
  struct Receive {
    u32 work = 0;
    application::Slice into;
  };
  struct Entry {
    application::Region region;
    std::unique_ptr<u8[]> owned;
  };

  void tell(application::Event event, std::span<const u8> private_data = {}) {
    events_.push_back({event, {private_data.begin(), private_data.end()}});
  }
  application::Region enter(std::span<u8> bytes, std::unique_ptr<u8[]> owned) {
    const u32 key = next_key_++;
    const application::Region region{.address = reinterpret_cast<u64>(bytes.data()),
                                     .length = bytes.size(),
                                     .l_key = key,
                                     .r_key = key,
                                     .bytes = bytes};
    regions_.emplace(key, Entry{region, std::move(owned)});
    return region;
  }
  void check(const application::Slice& slice) const {
    if (slice.bytes == 0) return;
    const application::Region& region = regions_.at(slice.l_key).region;
    CHECK(slice.address >= region.address && slice.bytes <= region.length &&
          slice.address - region.address <= region.length - slice.bytes);
  }

  std::map<u32, Entry> regions_;
  std::map<application::ConnectionId, std::deque<Receive>> open_;
  std::deque<Queued> events_;
  std::vector<u8> private_data_;
  application::ConnectionId next_ = 1;
  u32 next_key_ = 1;
  Time alarm_ = Time::never();
};

}  // namespace verbena::nvmf::test
