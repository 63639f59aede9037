// Subsystem: namespaces under one NQN, and the hosts that may connect. NVM Express Base 2.0, 3.1.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nvmf/authentication/dh_hmac_chap.h"
#include "nvmf/block_store.h"
#include "wire/nvme/identify.h"

namespace verbena::nvmf {

struct Namespace {
  BlockStore* store = nullptr;
  std::array<u8, 16> uuid{};  // also the NGUID; its second half is the EUI64

  [[nodiscard]] u64 blocks() const { return store->bytes() >> store->block_log2(); }
  [[nodiscard]] nvme::IdentifyNamespace identify() const {
    nvme::IdentifyNamespace n{.blocks = blocks(),
                              .block_log2 = store->block_log2(),
                              .nguid = uuid,
                              .is_read_only = store->is_read_only()};
    std::copy(uuid.begin() + 8, uuid.end(), n.eui64.begin());
    return n;
  }
};

class Subsystem {
 public:
  explicit Subsystem(std::string nqn) : nqn_(std::move(nqn)) {}

  [[nodiscard]] const std::string& nqn() const { return nqn_; }
  [[nodiscard]] std::string serial() const;  // the same after a restart
  // `store` outlives it. The identifiers depend on the NQN and the number only, because hosts
  // compare them after a reconnect. Returns the NSID.
  u32 add_namespace(BlockStore& store);
  [[nodiscard]] const Namespace* find(u32 nsid) const {
    const auto found = namespaces_.find(nsid);
    return found == namespaces_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::map<u32, Namespace>& namespaces() const { return namespaces_; }

  void allow_host(std::string nqn) { hosts_.push_back(std::move(nqn)); }
  // Allows that host, which has to authenticate itself.
  void require_authentication(const std::string& host, CHAPKeys keys) {
    keys_[host] = std::move(keys);
  }
  // nullptr: the host needs none.
  [[nodiscard]] const CHAPKeys* keys_of(const std::string& host) const {
    const auto found = keys_.find(host);
    return found == keys_.end() ? nullptr : &found->second;
  }
  // All hosts are allowed where none is named.
  [[nodiscard]] bool allows(const std::string& host) const {
    if (hosts_.empty() && keys_.empty()) return true;
    return keys_.contains(host) || std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
  }

 private:
  std::string nqn_;
  std::map<u32, Namespace> namespaces_;
  std::vector<std::string> hosts_;
  std::map<std::string, CHAPKeys> keys_;  // by host NQN
};

}  // namespace verbena::nvmf
