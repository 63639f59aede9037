#include "cli/top_screen.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/qp_text.h"
#include "transport/qp_state_name.h"

namespace verbena::cli {
namespace {

struct Row {
  double activity = 0;  // bytes per second, both ways
  std::string text;
};

double rate(u64 now, u64 before, double seconds) {
  return seconds > 0 ? static_cast<double>(now - before) / seconds : 0;
}

constexpr std::string_view kTitle =
    "    PID COMMAND         QP       TYPE    STATE PEER               TX B/s TX p/s RX B/s RX p/s "
    "RETRANS    RNR TIMEOUT ERRORS";

Row row_of(const DeviceStats& device, const DeviceStats* before, const host::QPSnapshot& qp) {
  const host::QPSnapshot& earlier = find_same(before, qp);
  const double seconds = seconds_between(before, device);
  const QPTraffic &n = qp.traffic, &b = earlier.traffic;
  const double tx = rate(n.sent_bytes, b.sent_bytes, seconds);
  const double rx = rate(n.received_bytes, b.received_bytes, seconds);
  const EngineCounters& t = qp.transport;
  return {tx + rx,
          fmt::format(
              "{:>7} {:<15} {} {:<7} {:<5} {:<18} {:>6} {:>6} {:>6} {:>6} {:>7} {:>6} {:>7} {:>6}",
              device.observed.pid, device.command.substr(0, 15), qpn_text(qp.qpn), text_of(qp.type),
              verbs_name_of(qp.state), peer_text(qp), short_number(tx),
              short_number(rate(n.sent_packets, b.sent_packets, seconds)), short_number(rx),
              short_number(rate(n.received_packets, b.received_packets, seconds)),
              t.retransmitted_packets, t.rnr_nak_retry_err, t.local_ack_timeout_err,
              t.req_cqe_error + t.resp_cqe_error)};
}

std::string summary(const StatsReport& now, std::size_t qps, double bytes_per_second) {
  return fmt::format("verbena top: {} device{}, {} QP{}, {}B/s", now.size(),
                     now.size() == 1 ? "" : "s", qps, qps == 1 ? "" : "s",
                     short_number(bytes_per_second));
}

}  // namespace

std::string short_number(double value) {
  constexpr std::array<const char*, 6> kUnits = {"", "K", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, kUnits[unit]);
}

std::string top_screen(const StatsReport& now, const StatsReport* before, const ScreenSize* size) {
  std::vector<Row> rows;
  double total = 0;
  for (const DeviceStats& device : now) {
    const DeviceStats* const earlier = before == nullptr ? nullptr : find_same(*before, device);
    for (const host::QPSnapshot& qp : device.observed.qps) {
      rows.push_back(row_of(device, earlier, qp));
      total += rows.back().activity;
    }
  }
  std::ranges::stable_sort(rows, std::greater(), &Row::activity);
  std::vector<std::string> lines = {summary(now, rows.size(), total), std::string(kTitle)};
  for (Row& row : rows) lines.push_back(std::move(row.text));
  if (size != nullptr && lines.size() > size->rows) lines.resize(size->rows);

  std::string text;
  for (std::string& line : lines) {
    if (size != nullptr && line.size() > size->columns) line.resize(size->columns);
    text += line + "\n";
  }
  return text;
}

}  // namespace verbena::cli
