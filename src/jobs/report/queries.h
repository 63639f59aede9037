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
    "SELECT communicator, kind, algorithm, gpus, octets, times, waiting_ps, mean_ps, busbw "
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
inline constexpr NamedQuery kNodesQuery{"nodes", "SELECT name, is_switch, tier FROM nodes"};

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
    "SELECT octets, slowdown FROM messages WHERE algorithm = ?1 AND way = 'network' "
    "ORDER BY octets, slowdown"};
inline constexpr NamedQuery kLongestQueuesQuery{
    "longest queues",
    "SELECT q.node, q.port, n.name || ' -> ' || m.name, max(q.octets) AS most FROM queues q "
    "JOIN ports p USING (node, port, algorithm) JOIN nodes n ON n.node = q.node "
    "JOIN nodes m ON m.node = p.peer WHERE q.algorithm = ?1 GROUP BY q.node, q.port "
    "ORDER BY most DESC, q.node, q.port LIMIT 8"};
inline constexpr NamedQuery kQueuesQuery{
    "queues over time",
    "SELECT time_ps, octets FROM queues WHERE algorithm = ?1 AND node = ?2 AND port = ?3 "
    "ORDER BY time_ps"};
inline constexpr NamedQuery kBusiestQuery{
    "busiest links",
    "SELECT p.node, p.port, n.name || ' -> ' || m.name, p.sent_octets AS sent FROM ports p "
    "JOIN nodes n ON n.node = p.node JOIN nodes m ON m.node = p.peer WHERE p.algorithm = ?1 "
    "AND sent > 0 ORDER BY sent DESC, p.node, p.port LIMIT 4"};
inline constexpr NamedQuery kLoadsQuery{
    "loads over time",
    "SELECT time_ps, octets FROM loads WHERE algorithm = ?1 AND node = ?2 AND port = ?3 "
    "ORDER BY time_ps"};
inline constexpr NamedQuery kUtilizationQuery{
    "utilization",
    "SELECT min(9, CAST(utilization * 10 AS INTEGER)) AS tenth, count(*) FROM ports "
    "WHERE algorithm = ?1 GROUP BY tenth"};
inline constexpr NamedQuery kHeldQuery{
    "pauses on the topology",
    "SELECT l.name, l.a, l.b, (a.paused_ps + a.waited_for_credits_ps) * 1e-6, "
    "(b.paused_ps + b.waited_for_credits_ps) * 1e-6 FROM links l "
    "JOIN ports a ON a.node = l.a AND a.port = l.a_port "
    "JOIN ports b ON b.node = l.b AND b.port = l.b_port AND b.algorithm = a.algorithm "
    "WHERE a.algorithm = ?1 ORDER BY l.link LIMIT 3000"};

inline constexpr std::array kQueries = {
    kRunQuery,         kSummaryQuery, kCollectivesQuery, kOperationsQuery,  kIdleQuery,
    kMeanAccountQuery, kAccountQuery, kTasksQuery,       kNodesQuery,       kRunsQuery,
    kPathQuery,        kEndsQuery,    kProgressQuery,    kMessagesQuery,    kLongestQueuesQuery,
    kQueuesQuery,      kBusiestQuery, kLoadsQuery,       kUtilizationQuery, kHeldQuery};

}  // namespace verbena::jobs
