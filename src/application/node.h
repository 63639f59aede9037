// Node: the RDMA interface that an application is written to, once for both drivers: verbs/ runs it
// on libibverbs and librdmacm, fabric/nodes/ on a simulated network. It has the verbs that a
// storage or transfer protocol needs: SEND, RDMA WRITE, RDMA READ, receives, memory regions, and
// connections with private data.
//
// Contract: a driver calls Program::on_ready() when poll() has an event. The program then calls
// poll() until it returns false. Calls never block, and no call of Node calls the program.
// A connection begins with connect() or kConnectRequest and ends with one kClosed or kRefused
// event. No event of the connection follows, and its memory is no longer accessed: work without a
// kDone is void. A failed work request closes its connection. Calls with the ID of a connection
// that has ended do nothing.
#pragma once

#include <optional>
#include <span>

#include "application/address.h"
#include "base/status.h"
#include "base/time.h"

namespace verbena::application {

using ConnectionId = u32;  // a Node never gives one twice

enum class Access : u8 { kLocal, kRemoteRead, kRemoteWrite, kRemoteReadWrite };

// kBytes: memory with contents. kCounted: in the simulator only its size exists, so that large
// transfers cost no memory there; a live driver allocates bytes.
enum class Content : u8 { kBytes, kCounted };

struct Region {
  u64 address = 0;  // of `bytes`, or a number that stands for counted memory
  u64 length = 0;
  u32 l_key = 0, r_key = 0;
  std::span<u8> bytes{};  // empty: counted
};

// Work requests of one connection that are posted and not complete. Further receives are an error.
// A live node keeps further sends until there is room.
struct QueueDepths {
  u32 sends = 64, receives = 64;
};

// A part of a registered region.
struct Slice {
  u64 address = 0;
  u32 bytes = 0;
  u32 l_key = 0;
};

enum class Operation : u8 { kSend, kWrite, kRead };
enum class Report : u8 { kAlways, kFailureOnly };  // kDone for each, or nothing if it succeeds

struct Work {
  static constexpr u32 kMaxSlices = 16;

  Operation operation = Operation::kSend;
  u32 id = 0;                       // of its kDone
  std::span<const Slice> local{};   // at most kMaxSlices
  u64 remote_address = 0;           // kWrite, kRead
  u32 r_key = 0;                    // kWrite, kRead
  std::optional<u32> invalidate{};  // kSend: the peer's R_Key that this SEND invalidates
  Report report = Report::kAlways;
};

struct Event {
  enum class Kind : u8 {
    kConnectRequest,  // `private_data`; answer by accept() or reject()
    kConnected,       // `private_data` of the peer's accept()
    kRefused,         // `private_data` of the peer's reject(), if it was one
    kClosed,          // by either side, or by a failure
    kDone,            // `id`: a work request has succeeded
    kReceived,        // `id`: this receive has a message of `bytes`
    kAlarm,
  };
  Kind kind = Kind::kAlarm;
  ConnectionId connection = 0;
  u32 id = 0;
  u32 bytes = 0;
  std::optional<u32> invalidated{};    // kReceived: our R_Key that the message has invalidated
  std::span<const u8> private_data{};  // until the next call of poll()
  Address peer{};                      // kConnectRequest
  u16 listen_port = 0;                 // kConnectRequest: the port that it was made to
};

class Node {
 public:
  static constexpr u32 kMaxPrivateData = 56;  // rdma_connect() of RC carries it everywhere

  virtual ~Node() = default;

  [[nodiscard]] virtual Time now() const = 0;
  // Sends kAlarm at that time or soon after. A node has one alarm: a later call replaces an earlier
  // one.
  virtual void set_alarm(Time at) = 0;

  // `bytes` stay valid until deregister().
  [[nodiscard]] virtual Result<Region> register_bytes(std::span<u8> bytes, Access access) = 0;
  [[nodiscard]] virtual Result<Region> allocate(u64 bytes, Content content, Access access) = 0;
  virtual void deregister(const Region& region) = 0;

  // Turns requests for that port into kConnectRequest. Their queues have these depths.
  [[nodiscard]] virtual Status listen(const Address& at, const QueueDepths& depths) = 0;
  [[nodiscard]] virtual Result<ConnectionId> connect(const Address& to, const QueueDepths& depths,
                                                     std::span<const u8> private_data) = 0;
  virtual void accept(ConnectionId connection, std::span<const u8> private_data) = 0;
  virtual void reject(ConnectionId connection, std::span<const u8> private_data) = 0;
  virtual void disconnect(ConnectionId connection) = 0;

  // Receives may be posted from connect() or kConnectRequest on, work from accept() or kConnected.
  virtual void post_receive(ConnectionId connection, u32 id, const Slice& into) = 0;
  virtual void post(ConnectionId connection, const Work& work) = 0;

  [[nodiscard]] virtual bool poll(Event& out) = 0;  // returns false if there is no event
};

// Program: the code that runs on a node.
class Program {
 public:
  virtual ~Program() = default;
  virtual void on_ready() = 0;
};

}  // namespace verbena::application
