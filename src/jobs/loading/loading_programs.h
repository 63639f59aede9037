// The programs of a loading job, written to application::Node. A loader reads chunks by READ, and
// notifies the members of its group that read the chunk from it (RelayTree).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "application/node.h"
#include "jobs/loading/relay_tree.h"
#include "transfer/node_flow.h"

namespace verbena::jobs {

// Accepts connections, tells where the memory is, and receives tags.
class ChunkServer {
 public:
  ChunkServer(application::Node& node, const application::Address& at, u64 bytes);
  // The tag of a notification; nullopt of other events.
  [[nodiscard]] std::optional<u64> on_event(const application::Event& event);
  [[nodiscard]] const application::Region& memory() const { return memory_; }

 private:
  static constexpr u32 kReceives = 32;  // of a connection
  void accept(application::ConnectionId connection);
  void post_receive(application::ConnectionId connection, u32 slot);
  application::Node& node_;
  application::Region memory_{};
  std::map<application::ConnectionId, application::Region> inboxes_{};
};

class SourceProgram final : public application::Program {
 public:
  SourceProgram(application::Node& node, const application::Address& at, u64 bytes)
      : node_(node), server_(node, at, bytes) {}
  void on_ready() override;

 private:
  application::Node& node_;
  ChunkServer server_;
};

class LoaderProgram final : public application::Program {
 public:
  struct Config {
    application::Address self{}, source{};
    std::vector<application::Address> group{};  // by member; empty without relays
    u32 member = 0;
    u32 chunks = 0, chunk_bytes = 0;
  };
  LoaderProgram(application::Node& node, const Config& config);
  void on_ready() override;
  [[nodiscard]] bool is_done() const { return missing_ == 0; }
  [[nodiscard]] u32 missing() const { return missing_; }  // chunks
  [[nodiscard]] Time done_at() const { return done_at_; }
  [[nodiscard]] u32 from_source() const { return from_source_; }  // chunks
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

 private:
  struct Peer {
    application::ConnectionId connection = 0;
    std::unique_ptr<transfer::NodeFlow> flow{};
    u64 base = 0;
    bool is_connected = false;
    std::vector<u32> reads{}, notices{};  // of chunks, until it is connected
  };
  [[nodiscard]] u32 root_of(u32 chunk) const;
  void connect(Peer& peer, const application::Address& to);
  void on_event(const application::Event& event);
  void on_connected(Peer& peer, const application::Event& event);
  void read(Peer& peer, u32 chunk);
  void notify(Peer& peer, u32 chunk);
  void drain(Peer& peer);
  void on_chunk(u32 chunk);

  application::Node& node_;
  Config config_;
  ChunkServer server_;
  RelayTree tree_;
  Peer source_{};
  std::map<u32, Peer> peers_{};  // neighbours of the tree, by member
  std::map<application::ConnectionId, Peer*> peer_of_{};
  u32 missing_, from_source_ = 0, next_notice_ = 0;
  Time done_at_{};
  std::string mistake_{};
};

}  // namespace verbena::jobs
