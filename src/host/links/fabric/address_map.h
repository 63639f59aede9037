// AddressMap: which port of an InfiniBand subnet an IP address stands for, where there is no IPoIB
// to say so. A file, in the format of ibacm's ibacm_hosts.data: a line has an IP address and,
// behind blanks, the GID of a port, or the address 127.64.x.y of a host of the fabric. '#' begins a
// comment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/os/error.h"
#include "wire/ib/gid.h"

namespace verbena::host {

inline constexpr const char* kAddressesVariable = "VERBENA_ADDRESSES";  // the file

class AddressMap {
 public:
  // An Error names the line.
  [[nodiscard]] static Expected<AddressMap> parse(const std::string& text);
  // Reads the file that VERBENA_ADDRESSES names; empty without the variable.
  [[nodiscard]] static Expected<AddressMap> from_environment();

  // The port or host behind the address; nullopt: the file does not have it.
  [[nodiscard]] std::optional<GID> target_of(const GID& address) const;
  // The first address of the family that stands for the target.
  [[nodiscard]] std::optional<GID> address_of(const GID& target, bool ipv4) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    GID address, target;
  };
  std::vector<Entry> entries_;  // by address
};

}  // namespace verbena::host
