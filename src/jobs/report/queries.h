// The queries that a job's report is made of. ?1 is a GPU, or in those of a run its name: an
// algorithm's, or "step"; ?2 then is a GPU, ?2 and ?3 a node and its port.
#pragma once

#include <array>
#include <string_view>

namespace verbena::jobs {

struct NamedQuery {
  std::string_view name, text;
};

// --- of the job
inline constexpr NamedQuery kRunQuery{"head", "SELECT key, value FROM run"};
inline constexpr NamedQuery kSummaryQuery{"numbers", "SELECT name, value FROM summary"};
inline constexpr NamedQuery kCollectivesQuery{
    "collectives",
    "SELECT algorithm, seconds, algbw, busbw, flow_level_seconds, mistake FROM collectives"};
inline constexpr NamedQuery kOperationsQuery{
    "operations",
    "SELECT communicator, kind, algorithm, gpus, bytes, times, waiting_ps, mean_ps, busbw "
    "FROM operations"};
inline constexpr NamedQuery kIdleQuery{
    "idle GPUs",
    "SELECT gpu, sum(idle_ps) * 1.0 / sum(idle_ps + computing_ps) AS idle FROM accounts "
    "GROUP BY gpu ORDER BY idle, gpu"};
inline constexpr NamedQuery kMeanAccountQuery{
    "time of all GPUs",
    "SELECT purpose, sum(computing_ps * stands_for) * 1e-6, sum(idle_ps * stands_for) * 1e-6 FROM "
    "accounts GROUP BY purpose"};
inline constexpr NamedQuery kAccountQuery{
    "time of a GPU",
    "SELECT purpose, computing_ps * 1e-6, idle_ps * 1e-6 FROM accounts WHERE gpu = ?1"};
inline constexpr NamedQuery kTasksQuery{
    "timeline of a GPU",
    "SELECT t.name, t.purpose, o.communicator, t.begin_ps * 1e-6, t.end_ps * 1e-6 FROM tasks t "
    "LEFT JOIN operations o ON o.operation = t.operation AND o.purpose = t.purpose "
    "WHERE t.gpu = ?1 AND t.end_ps > t.begin_ps ORDER BY t.begin_ps, t.end_ps"};
inline constexpr NamedQuery kNodesQuery{"nodes",
                                        "SELECT name, is_switch, tier FROM nodes ORDER BY node"};
inline constexpr NamedQuery kLinksQuery{"links", "SELECT a, b, rate_bps FROM links ORDER BY link"};
inline constexpr NamedQuery kFaultsQuery{
    "faults", "SELECT link, what, from_ps * 1e-6, until_ps * 1e-6 FROM faults"};
inline constexpr NamedQuery kGPUsQuery{"GPUs", "SELECT node, server FROM gpus ORDER BY gpu"};

// --- of a run
inline constexpr NamedQuery kRunsQuery{"runs",
                                       "SELECT algorithm, end_ps, interval_ps FROM samples"};
inline constexpr NamedQuery kPathQuery{
    "where the time went", "SELECT part, ps * 1e-6 FROM critical_path WHERE algorithm = ?1"};
inline constexpr NamedQuery kEndsQuery{
    "fastest and slowest GPUs",
    "SELECT gpu, max(time_ps) AS ended FROM progress WHERE algorithm = ?1 GROUP BY gpu "
    "ORDER BY ended, gpu"};
inline constexpr NamedQuery kProgressQuery{
    "timeline",
    "SELECT lane, eighths, time_ps * 1e-6 FROM progress WHERE algorithm = ?1 AND gpu = ?2 "
    "ORDER BY lane, eighths"};
inline constexpr NamedQuery kMessagesQuery{
    "messages",
    "SELECT bytes, slowdown FROM messages WHERE algorithm = ?1 AND way = 'network' "
    "ORDER BY bytes, slowdown"};
inline constexpr NamedQuery kLongestQueuesQuery{
    "longest queues",
    "SELECT q.node, q.port, n.name || ' -> ' || m.name, max(q.bytes) AS most FROM queues q "
    "JOIN ports p USING (node, port, algorithm) JOIN nodes n ON n.node = q.node "
    "JOIN nodes m ON m.node = p.peer WHERE q.algorithm = ?1 GROUP BY q.node, q.port "
    "ORDER BY most DESC, q.node, q.port LIMIT 8"};
inline constexpr NamedQuery kQueuesQuery{
    "queues over time",
    "SELECT time_ps, bytes FROM queues WHERE algorithm = ?1 AND node = ?2 AND port = ?3 "
    "ORDER BY time_ps"};
inline constexpr NamedQuery kBusiestQuery{
    "busiest links",
    "SELECT p.node, p.port, n.name || ' -> ' || m.name, p.sent_bytes AS sent FROM ports p "
    "JOIN nodes n ON n.node = p.node JOIN nodes m ON m.node = p.peer WHERE p.algorithm = ?1 "
    "AND sent > 0 ORDER BY sent DESC, p.node, p.port LIMIT 4"};
inline constexpr NamedQuery kLoadsQuery{
    "loads over time",
    "SELECT time_ps, bytes FROM loads WHERE algorithm = ?1 AND node = ?2 AND port = ?3 "
    "ORDER BY time_ps"};
inline constexpr NamedQuery kUtilizationQuery{
    "utilization",
    "SELECT min(9, CAST(utilization * 10 AS INTEGER)) AS tenth, count(*) FROM ports "
    "WHERE algorithm = ?1 GROUP BY tenth"};
// A direction is twice its link, and one more where the link's end b sends.
inline constexpr NamedQuery kTotalsQuery{
    "use of links",
    "SELECT 2 * p.link + (p.node = l.b), p.utilization, p.longest_queue_bytes, p.marks, "
    "p.paused_ps + p.waited_for_credits_ps, n.name || ' -> ' || m.name FROM ports p "
    "JOIN links l ON l.link = p.link JOIN nodes n ON n.node = p.node "
    "JOIN nodes m ON m.node = p.peer WHERE p.algorithm = ?1"};
inline constexpr NamedQuery kQueueUseQuery{
    "queues of all links",
    "SELECT 2 * p.link + (p.node = l.b), q.time_ps, q.bytes FROM queues q "
    "JOIN ports p USING (node, port, algorithm) JOIN links l ON l.link = p.link "
    "WHERE q.algorithm = ?1"};
inline constexpr NamedQuery kLoadUseQuery{
    "loads of all links",
    "SELECT 2 * p.link + (p.node = l.b), q.time_ps, q.bytes, q.bps FROM loads q "
    "JOIN ports p USING (node, port, algorithm) JOIN links l ON l.link = p.link "
    "WHERE q.algorithm = ?1"};
inline constexpr NamedQuery kMarkUseQuery{
    "marks of all links",
    "SELECT 2 * p.link + (p.node = l.b), q.time_ps, q.marks FROM marks q "
    "JOIN ports p USING (node, port, algorithm) JOIN links l ON l.link = p.link "
    "WHERE q.algorithm = ?1"};
inline constexpr NamedQuery kPauseUseQuery{
    "pauses of all links",
    "SELECT 2 * p.link + (p.node = l.b), q.time_ps, q.priority, q.quanta FROM pauses q "
    "JOIN ports p USING (node, port, algorithm) JOIN links l ON l.link = p.link "
    "WHERE q.algorithm = ?1"};
inline constexpr NamedQuery kWaitUseQuery{
    "waits for credits of all links",
    "SELECT 2 * p.link + (p.node = l.b), q.time_ps, q.ps FROM waits q "
    "JOIN ports p USING (node, port, algorithm) JOIN links l ON l.link = p.link "
    "WHERE q.algorithm = ?1"};
inline constexpr NamedQuery kSlowestQuery{
    "slowest messages",
    "SELECT source, destination, bytes, posted_ps * 1e-6, arrived_ps * 1e-6, alone_ps * 1e-6, "
    "lane FROM (SELECT source, destination, bytes, posted_ps, arrived_ps, alone_ps, lane "
    "FROM slowest_messages WHERE algorithm = ?1 UNION "
    "SELECT source, destination, bytes, posted_ps, arrived_ps, alone_ps, lane "
    "FROM messages WHERE algorithm = ?1) ORDER BY arrived_ps - posted_ps - alone_ps DESC, "
    "posted_ps, source, destination, lane LIMIT 3000"};
inline constexpr NamedQuery kMessageCountQuery{
    "how many messages", "SELECT sum(stands_for) FROM messages WHERE algorithm = ?1"};
inline constexpr NamedQuery kPathsQuery{
    "paths of messages",
    "SELECT h.source, h.destination, h.lane, 2 * p.link + (p.node = l.b) FROM paths h "
    "JOIN ports p USING (node, port, algorithm) JOIN links l ON l.link = p.link "
    "WHERE h.algorithm = ?1 ORDER BY h.rowid"};

inline constexpr std::array kQueries = {
    kRunQuery,         kSummaryQuery,       kCollectivesQuery, kOperationsQuery, kIdleQuery,
    kMeanAccountQuery, kAccountQuery,       kTasksQuery,       kNodesQuery,      kLinksQuery,
    kFaultsQuery,      kGPUsQuery,          kRunsQuery,        kPathQuery,       kEndsQuery,
    kProgressQuery,    kMessagesQuery,      kQueuesQuery,      kLoadsQuery,      kTotalsQuery,
    kUtilizationQuery, kLongestQueuesQuery, kBusiestQuery,     kQueueUseQuery,   kLoadUseQuery,
    kMarkUseQuery,     kPauseUseQuery,      kWaitUseQuery,     kSlowestQuery,    kPathsQuery,
    kMessageCountQuery};

}  // namespace verbena::jobs
