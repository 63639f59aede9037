// Topologies from files of nodes and links, in two formats; which of them it is shows at once.
//   HPCC's ns-3 model   hpcc_ns3/scenario.h; begins with three numbers
//   a plain list        a line for each link, `a b [rate [delay [error_rate]]]`, by names. Missing
//                       values are as for generated links. A node with one link is a host, others
//                       are switches; `host NAME` and `switch NAME` say otherwise. # begins a
//                       comment.
#pragma once

#include "fabric/hpcc_ns3/words.h"
#include "fabric/topologies/plan.h"

namespace verbena::fabric {

// `name`: of the file, for errors.
[[nodiscard]] Parsed<Plan> imported_plan(std::string_view name, std::string_view text,
                                         const LinkConfig& defaults);

}  // namespace verbena::fabric
