// Request: what a program waits for: a collective operation, a Send or a Recv. All members are
// guarded by the lock of the World.
#pragma once

#include <memory>
#include <vector>

#include "coll/error.h"

namespace verbena::coll {

class World;

class Request : public std::enable_shared_from_this<Request> {
 public:
  Request() = default;
  virtual ~Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  [[nodiscard]] bool is_done() const { return done_; }
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] int source() const { return source_; }

  // --- called by Transfers and Offers
  virtual void on_transferred(u32 lane) = 0;
  virtual void on_transfer_lost() = 0;  // the connection broke, and the memory is no longer written
  virtual void on_offer_taken() = 0;

 protected:
  bool done_ = false;
  Error error_{};
  int source_ = -1;
};

}  // namespace verbena::coll
