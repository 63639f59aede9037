// ProcessGroups: the ranks of each group that collective operations of a trace name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "fabric/hpcc_ns3/words.h"

namespace verbena::jobs::chakra {

using ProcessGroups = std::map<std::string, std::vector<u32>>;

// A file of ASTRA-sim's --comm-group-configuration: {"1": [0, 1, 2, 3], "2": [4, 5]}.
[[nodiscard]] fabric::Parsed<ProcessGroups> read_groups(const std::string& file,
                                                        const std::string& text);
// Parses the text that PyTorch writes into the node of its process groups: a list of {pg_name,
// ranks, ...} in JSON, with quotes and brackets around it. A group whose `ranks` is empty has all
// ranks; the result omits it. Returns nullopt if `text` is no such list.
[[nodiscard]] std::optional<ProcessGroups> groups_of_pytorch(const std::string& text);

}  // namespace verbena::jobs::chakra
