// Settings: values of a scenario that are given besides its file, by their keys' paths.
#pragma once

#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "fabric/hpcc_ns3/words.h"
#include "fabric/scenario/reading.h"
#include "fabric/scenario/setting.h"

namespace verbena::fabric {

// Puts the value where its key is. `known`: from reading the file without it.
[[nodiscard]] Parsed<void> apply(const Setting& setting, const Reading& known, YAML::Node root);

}  // namespace verbena::fabric
