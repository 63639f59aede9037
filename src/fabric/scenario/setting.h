// Setting: a value that is given besides a scenario's file.
#pragma once

#include <string>

namespace verbena::fabric {

// `key` may be a key's whole path (switch.ecn.kmin) or as much of its end as no other key has.
struct Setting {
  std::string key, value;
};

}  // namespace verbena::fabric
