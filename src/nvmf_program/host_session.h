// HostSession: an initiator on a live node, with calls that wait.
#pragma once

#include <functional>
#include <memory>

#include "nvmf/initiator.h"
#include "nvmf_program/openssl_cryptography.h"
#include "nvmf_program/options.h"
#include "nvmf_program/stop_descriptor.h"
#include "verbs/live_node.h"

namespace verbena::nvmf_program {

class HostSession {
 public:
  // Connects, and waits until the association is live. `stop` outlives it; nullptr: none.
  [[nodiscard]] static Expected<std::unique_ptr<HostSession>> open(const HostOptions& options,
                                                                   const StopDescriptor* stop);
  [[nodiscard]] nvmf::Initiator& initiator() { return *initiator_; }
  [[nodiscard]] verbs::LiveNode& node() { return *node_; }

  // One round of events; `descriptors` wake it too. True: one of them is readable.
  bool step(Duration at_most, std::span<const int> descriptors = {});
  // The same without sleeping.
  void try_step();
  // False: a signal came first, or the association has failed.
  [[nodiscard]] bool run_until(const std::function<bool()>& is_over);
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }
  // Sends it and waits for its result.
  [[nodiscard]] Expected<void> get_log(u8 page, u64 offset, const nvmf::DataSlice& data);
  void close();

 private:
  HostSession() = default;

  OpenSSLCryptography cryptography_;
  std::unique_ptr<verbs::LiveNode> node_;
  std::unique_ptr<nvmf::Initiator> initiator_;
  const StopDescriptor* stop_ = nullptr;
  bool polls_ = false, is_stopped_ = false;
};

[[nodiscard]] nvmf::DataSlice slice_of(const application::Region& region, u64 offset, u32 bytes);

}  // namespace verbena::nvmf_program
