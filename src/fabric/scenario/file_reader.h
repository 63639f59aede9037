// FileReader: a file that a scenario names, by the name that it has there.
#pragma once

#include <functional>
#include <string>

#include "fabric/hpcc_ns3/words.h"

namespace verbena::fabric {

using FileReader = std::function<Parsed<std::string>(const std::string& name)>;

}  // namespace verbena::fabric
