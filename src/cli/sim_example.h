// The scenario that `verbena sim` runs where it is given none, and what it shows.
#pragma once

#include <string_view>

namespace verbena::cli {

inline constexpr std::string_view kExampleScenario =
    R"(# Eight hosts send to a ninth at the same time.
topology: {kind: star, hosts: 9}
workload: {kind: incast, size: 4MB}
links: {rate: 100Gbps, delay: 1us}
switch: {buffer: 4MiB}
hosts: {congestion_control: dcqcn}
seed: 1
)";

inline constexpr std::string_view kExampleBefore =
    R"(An incast: eight hosts send 4 MB each to a ninth at the same time, through one switch.
All links have 100 Gb/s, so that eight times what fits comes to the port of h0. This is
the scenario; in a file of your own, `verbena sim FILE -o FOLDER` runs it:

)";

inline constexpr std::string_view kExampleAfter = R"(
What it shows: nothing is dropped. The queue to h0 grows until the switch asks its
neighbours to pause (PFC). Frames that were marked on their way (ECN) make receivers
send CNPs, and DCQCN slows the senders; then queues are short, and pauses end. Slowdown
is the time that a flow took over what it takes alone: 8 would be fair here. It is more,
since the senders' rates recover slowly, so that the link is not always full.
Try: verbena sim --set ecn=off        the pauses do all the work
     verbena sim --set pfc=off        what does not fit is lost and sent again
     verbena sim --sweep kmin=50k,100k,400k --sweep congestion_control=dcqcn,swift
     verbena sim -o out/              results.sqlite and report.html
)";

}  // namespace verbena::cli
