#include "jobs/serving/serving_run.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "fabric/nodes/simulated_nodes.h"
#include "jobs/serving/kv_programs.h"

namespace verbena::jobs {
namespace {

using fabric::SimulatedNodes;

constexpr u16 kPort = 7472;
constexpr Duration kStretch = us(200);
constexpr Duration kPatience = sec(5);

// The programs of all simulated GPUs.
class ServingPrograms {
 public:
  ServingPrograms(const ServingConfig& config, const ServingPlan& plan, SimulatedNodes& nodes)
      : config_(config), layout_(cache_layout(config)), arrived_(plan.requests.size()) {
    for (auto& arrivals : arrived_) arrivals.resize(config.simulated_gpus, Time::never());
    for (u32 gpu = 0; gpu < config.simulated_gpus; ++gpu) add_rank(gpu, plan, nodes);
  }

  // never(): not all of it has come.
  [[nodiscard]] Time completion_of(u32 request) const {
    return std::ranges::max(arrived_[request]);
  }
  [[nodiscard]] u64 complete() const {
    return static_cast<u64>(std::ranges::count_if(arrived_, [](const std::vector<Time>& arrivals) {
      return std::ranges::max(arrivals) != Time::never();
    }));
  }
  [[nodiscard]] std::string mistake() const {
    for (const auto& sender : senders_)
      if (!sender->mistake().empty()) return sender->mistake();
    return "";
  }

 private:
  void add_rank(u32 gpu, const ServingPlan& plan, SimulatedNodes& nodes) {
    std::vector<application::Address> peers;
    for (u32 decode = 0; decode < config_.decode; ++decode) {
      const fabric::NodeIndex host = config_.host_of(config_.prefill + decode, gpu);
      peers.push_back(fabric::node_address(host, kPort));
      receivers_.push_back(std::make_unique<KVReceiver>(
          nodes.node(host), peers.back(), layout_.bytes(),
          [this, gpu](u32 request, Time now) { arrived_[request][gpu] = now; }));
      nodes.run_on(host, *receivers_.back());
    }
    for (u32 prefill = 0; prefill < config_.prefill; ++prefill) {
      const fabric::NodeIndex host = config_.host_of(prefill, gpu);
      KVSender::Config sender{.layout = layout_, .peers = peers, .by_layer = config_.by_layer};
      for (u32 i = 0; i < plan.requests.size(); ++i) {
        const PlannedRequest& request = plan.requests[i];
        if (request.prefill == prefill)
          sender.sends.push_back({.request = i,
                                  .decode = request.decode,
                                  .begin = request.begin,
                                  .end = request.end,
                                  .from = request.from,
                                  .to = request.to});
      }
      senders_.push_back(std::make_unique<KVSender>(nodes.node(host), std::move(sender)));
      nodes.run_on(host, *senders_.back());
    }
  }

  const ServingConfig& config_;
  const transfer::KVLayout layout_;
  std::vector<std::vector<Time>> arrived_;  // by request and GPU
  std::vector<std::unique_ptr<KVReceiver>> receivers_{};
  std::vector<std::unique_ptr<KVSender>> senders_{};
};

fabric::NodesConfig pairs_of(const ServingConfig& config) {
  fabric::NodesConfig nodes;
  for (u32 gpu = 0; gpu < config.simulated_gpus; ++gpu)
    for (u32 prefill = 0; prefill < config.prefill; ++prefill)
      for (u32 decode = 0; decode < config.decode; ++decode)
        nodes.pairs.push_back({.active = config.host_of(prefill, gpu),
                               .passive = config.host_of(config.prefill + decode, gpu)});
  return nodes;
}

// Nothing happens while GPUs compute: the next stretch begins with the next event.
Time end_of_next(const fabric::Network& network, Time end) {
  const Time next = network.next_event();
  return (next == Time::never() ? end : std::max(end, next)) + kStretch;
}

std::string run_to_end(fabric::Network& network, const ServingPrograms& pools, u64 requests,
                       Time last_begin, const Stop& stop) {
  Time moved = last_begin;
  u64 complete = 0;
  for (Time end = Time() + kStretch; pools.complete() < requests; end = end_of_next(network, end)) {
    const bool has_more = network.run(end);
    if (stop({end - Time(), network.counters().events, [&] {
                return static_cast<double>(pools.complete()) / static_cast<double>(requests);
              }}))
      return std::string(kInterrupted);
    if (!pools.mistake().empty()) return pools.mistake();
    if (pools.complete() != complete) moved = std::max(moved, end);
    complete = pools.complete();
    if (complete < requests && (!has_more || end - moved > kPatience))
      return "nothing moves any more: requests wait for blocks that never come";
  }
  return "";
}

double percentile(std::vector<double> values, double part) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const double at = part * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(at + 0.5)];
}

std::vector<double> seconds_of(const ServingResult& result, Duration ServedRequest::*part) {
  std::vector<double> values;
  for (const ServedRequest& request : result.requests) values.push_back((request.*part).seconds());
  return values;
}

}  // namespace

ServingResult run_serving(const ServingConfig& config, const fabric::Topology& topology,
                          const fabric::NetworkConfig& network_config, const Stop& stop) {
  ServingResult result;
  result.plan = plan_serving(config, &result.mistake);
  if (!result.mistake.empty()) return result;
  fabric::Network network(topology, network_config);
  SimulatedNodes nodes(network, pairs_of(config));
  if (!nodes.is_connected()) {
    result.mistake = "there is no path between two instances";
    return result;
  }
  network.set_application(&nodes);
  ServingPrograms pools(config, result.plan, nodes);
  const auto& requests = result.plan.requests;
  result.mistake = run_to_end(network, pools, requests.size(),
                              std::ranges::max(requests, {}, &PlannedRequest::end).end, stop);
  if (!result.mistake.empty()) return result;
  const transfer::KVLayout layout = cache_layout(config);
  for (u32 i = 0; i < requests.size(); ++i) {
    const PlannedRequest& request = requests[i];
    const Time complete = std::max(pools.completion_of(i), request.end);
    const Time first_token = complete + decode_step(config);
    result.requests.push_back({.queue = request.begin - request.arrival,
                               .prefill = request.end - request.begin,
                               .transfer = complete - request.end,
                               .ttft = first_token - request.arrival});
    result.time = std::max(result.time, first_token - Time());
    result.transferred_bytes +=
        u64{config.gpus} * layout.layers * layout.layer_bytes(request.from.size());
  }
  result.counters = network.counters();
  return result;
}

std::vector<fabric::Metric> metrics_of(const ServingConfig& config, const ServingResult& result) {
  std::vector<fabric::Metric> metrics;
  const auto add = [&](const std::string& name, Duration ServedRequest::*part) {
    for (const auto& [suffix, at] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"max", 1.0}})
      metrics.push_back({name + "." + suffix, percentile(seconds_of(result, part), at)});
  };
  add("ttft", &ServedRequest::ttft);
  add("queue", &ServedRequest::queue);
  add("prefill", &ServedRequest::prefill);
  add("transfer", &ServedRequest::transfer);
  const double time = result.time.seconds();
  const double tokens =
      static_cast<double>(result.plan.computed_tokens + result.plan.reused_tokens);
  u64 output = 0;
  for (const auto& request : config.trace.requests) output += request.output_tokens;
  metrics.push_back({"requests_per_s", static_cast<double>(result.requests.size()) / time});
  metrics.push_back({"input_tokens_per_s", tokens / time});
  metrics.push_back({"reused", static_cast<double>(result.plan.reused_tokens) / tokens});
  metrics.push_back({"bytes", static_cast<double>(result.transferred_bytes)});
  metrics.push_back({"output_tokens", static_cast<double>(output)});
  return metrics;
}

std::string serving_csv(const ServingResult& result) {
  std::string text =
      "arrival_s,prefill_instance,decode_instance,computed_tokens,queue_s,prefill_s,transfer_s,"
      "ttft_s\n";
  for (std::size_t i = 0; i < result.requests.size(); ++i) {
    const PlannedRequest& planned = result.plan.requests[i];
    const ServedRequest& served = result.requests[i];
    text += fmt::format("{:.6f},{},{},{},{:.9f},{:.9f},{:.9f},{:.9f}\n",
                        (planned.arrival - Time()).seconds(), planned.prefill, planned.decode,
                        planned.computed_tokens, served.queue.seconds(), served.prefill.seconds(),
                        served.transfer.seconds(), served.ttft.seconds());
  }
  return text;
}

std::string serving_text(const ServingConfig& config, std::string_view technology,
                         const ServingResult& result) {
  if (!result.mistake.empty()) return result.mistake + "\n";
  std::map<std::string, double> metrics;
  for (const fabric::Metric& metric : metrics_of(config, result))
    metrics[metric.name] = metric.value;
  std::string text = fmt::format(
      "{}: {} requests, {} prefill and {} decode instances of {} GPUs, {}\n", config.model.name,
      result.requests.size(), config.prefill, config.decode, config.gpus, technology);
  text += fmt::format("{:<24} {:>11} {:>11} {:>11}\n", "ms", "p50", "p99", "max");
  for (const auto& [name, title] : {std::pair{"queue", "waiting for prefill"},
                                    {"prefill", "prefill"},
                                    {"transfer", "KV cache after prefill"},
                                    {"ttft", "time to first token"}})
    text += fmt::format(
        "{:<24} {:>11.3f} {:>11.3f} {:>11.3f}\n", title, metrics[std::string(name) + ".p50"] * 1e3,
        metrics[std::string(name) + ".p99"] * 1e3, metrics[std::string(name) + ".max"] * 1e3);
  text += fmt::format(
      "{:.2f} requests/s, {:.0f} input tokens/s, {:.1f} % from caches, {:.2f} GB of "
      "KV caches transferred\n",
      metrics["requests_per_s"], metrics["input_tokens_per_s"], metrics["reused"] * 100,
      metrics["bytes"] / 1e9);
  return text;
}

}  // namespace verbena::jobs
