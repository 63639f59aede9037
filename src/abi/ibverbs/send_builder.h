// SendBuilder: the work requests between ibv_wr_start and ibv_wr_complete. ibv_wr_post(3).
// Takes all its memory at construction (untouched pages cost nothing); building copies into it.
// The first mistake is remembered, and what follows it is ignored. Its QP's calls hold `building`.
#pragma once

#include <infiniband/verbs.h>

#include <mutex>
#include <span>
#include <vector>

#include "transport/send_queue.h"

namespace verbena::abi {

class SendBuilder {
 public:
  explicit SendBuilder(const SendQueueLimits& limits);

  std::mutex building;  // from ibv_wr_start to ibv_wr_complete or ibv_wr_abort

  void start();                            // empty again
  void begin(const SendWR& wr);            // the next request; the setters below are about it
  void begin_bind(SendWR wr, ibv_mw& mw);  // of `mw`, as what is in the batch leaves it
  void set_sges(std::span<const ibv_sge> sges);
  void set_inline(std::span<const ibv_data_buf> buffers);  // copied now
  void set_destination(const AddressVector& path, QPN dest_qp, QKey q_key);
  void set_xrc_srq(u32 number);
  void fail(PostError error);

  // The batch is posted: the windows have the keys that they will have once they are bound.
  void rename_windows();

  [[nodiscard]] PostError error() const { return error_; }
  [[nodiscard]] std::span<const SendWR> requests() const { return requests_; }

 private:
  [[nodiscard]] SendWR* current();  // nullptr after a mistake
  [[nodiscard]] RKey key_of(const ibv_mw& mw) const;

  struct Bind {
    ibv_mw* mw;
    RKey new_key;
  };

  SendQueueLimits limits_;
  PostError error_ = PostError::kOk;
  std::vector<Bind> binds_;
  std::vector<SendWR> requests_;  // none of the four ever grows beyond what was reserved, so that
  std::vector<SGE> sges_;         // what the requests point to stays where it is
  std::vector<u8> inline_bytes_;
};

}  // namespace verbena::abi
