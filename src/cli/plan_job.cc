#include "cli/plan_job.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/comparison_page.h"
#include "cli/job_progress.h"
#include "cli/progress_line.h"
#include "cli/stop_signal.h"
#include "cli/text_file.h"
#include "fabric/scenario/units.h"
#include "jobs/job_file.h"
#include "jobs/plan/cloud.h"
#include "jobs/plan/plan_report.h"
#include "jobs/plan/plan_text.h"
#include "jobs/plan/topologies.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
using jobs::Candidate;

// A text to read jobs from: the file's, or the same on another topology.
struct Source {
  std::string topology;  // as the user named it; "": the file's
  std::string text;
};

class Planner {
 public:
  explicit Planner(const PlanJobRequest& request) : request_(request) {}

  Expected<SimOutcome> run() {
    if (const auto done = read_sources(); !done) return tl::unexpected(done.error());
    if (const auto done = read_candidates(); !done) return tl::unexpected(done.error());
    if (!request_.output.empty())
      if (const auto done = make_writable(request_.output); !done)
        return tl::unexpected(done.error());
    run_all(results_.candidates, kMayBeExtrapolated);
    compare_same_operation(results_.candidates);
    if (!is_stopped()) try_remedies();
    results_.best = best_of_each(results_.candidates, results_.tried);
    results_.recommendation = jobs::recommend(results_.best);
    if (results_.recommendation.best != nullptr && !is_stopped()) vary();
    prove();
    SimOutcome outcome;
    outcome.was_interrupted = results_.is_interrupted = is_stopped();
    const std::string text = jobs::text_of(results_);
    outcome.output = request_.format == OutputFormat::kJSON ? json_of(rows()) : text;
    if (request_.output.empty()) return outcome;
    if (const auto done = write(text); !done) return tl::unexpected(done.error());
    return outcome;
  }

 private:
  bool is_stopped() const { return stop_.wait(Duration()); }
  jobs::Stop stop() const {
    return [this](const jobs::Progress&) { return is_stopped(); };
  }

  // --- what is compared
  fabric::Parsed<jobs::Job> read(const Source& source,
                                 const std::vector<fabric::Setting>& settings) const {
    const fs::path folder = fs::path(request_.job).parent_path();
    return jobs::read_job(request_.job, source.text, settings,
                          [&folder](const std::string& name) -> fabric::Parsed<std::string> {
                            Expected<std::string> file = read_text(folder / name);
                            if (!file)
                              return tl::unexpected(fabric::InputError{file.error().message});
                            return *std::move(file);
                          });
  }
  std::vector<fabric::Setting> settings_for(fabric::Technology technology) const {
    std::vector<fabric::Setting> settings = request_.settings;
    settings.push_back({"technology", std::string(name_of(technology))});
    return settings;
  }
  // Reads the job, with the technology's usual path to the GPU if the file names none.
  fabric::Parsed<jobs::Job> read_for(const Source& source, fabric::Technology technology,
                                     const std::vector<fabric::Setting>& more,
                                     std::vector<fabric::Setting>& used) const {
    used = settings_for(technology);
    fabric::Parsed<jobs::Job> job = read(source, used);
    if (!job) return job;
    if (!job->says_host_path)
      used.push_back(
          {"hosts.path", std::string(jobs::model_of(jobs::usual_path(technology)).name)});
    used.insert(used.end(), more.begin(), more.end());
    return read(source, used);
  }
  Expected<void> read_sources() {
    const Expected<std::string> text = read_text(request_.job);
    if (!text) return tl::unexpected(text.error());
    const std::string kind = jobs::is_job(*text) ? jobs::section_of_job(*text) : "";
    if (kind == "serving" || kind == "loading")
      return cannot(fmt::format("{} is a job of {}: verbena sim simulates it", request_.job, kind));
    if (!jobs::is_job(*text))
      return cannot(
          fmt::format("{} is no job: it needs a section collective, training, inference or "
                      "chakra",
                      request_.job));
    sources_.push_back({"", *text});
    if (request_.topologies.empty()) return {};
    const auto job = read_any(sources_.front());
    if (!job) return cannot(job.error().message);
    const jobs::JobSize size{job->cluster.ranks(), job->cluster.gpus_per_node};
    sources_.clear();
    for (const std::string& name : request_.topologies)
      if (const auto done = add_source(*text, name, size); !done) return done;
    return {};
  }
  // Reads the job with the first technology that accepts it.
  fabric::Parsed<jobs::Job> read_any(const Source& source) const {
    fabric::Parsed<jobs::Job> job = read(source, settings_for(request_.technologies.front()));
    for (std::size_t i = 1; i < request_.technologies.size() && !job; ++i)
      if (auto other = read(source, settings_for(request_.technologies[i])); other) return other;
    return job;
  }
  Expected<void> add_source(const std::string& text, const std::string& name, jobs::JobSize size) {
    std::string other = jobs::topology_of_kind(name, size.gpus, size.gpus_per_node), folder;
    if (!other.empty()) {
      other = "topology: " + other;
    } else if (fs::exists(name)) {
      const Expected<std::string> file = read_text(name);
      if (!file) return tl::unexpected(file.error());
      other = *file;
      folder = fs::absolute(name).parent_path().string();
    } else {
      return cannot(fmt::format("--topologies {}: no such file, and none of the kinds {}", name,
                                fmt::join(jobs::topology_kinds(), ", ")));
    }
    const auto made = jobs::with_topology(text, other, folder, size);
    if (!made) return cannot(fmt::format("{}: {}", name, made.error().message));
    sources_.push_back({fs::path(name).stem().string(), *made});
    return {};
  }
  Candidate candidate_of(const Source& source, fabric::Technology technology,
                         const std::vector<fabric::Setting>& more) const {
    Candidate candidate;
    candidate.topology = source.topology;
    candidate.technology = technology;
    fabric::Parsed<jobs::Job> job = read_for(source, technology, more, candidate.settings);
    if (!job) {
      candidate.mistake = job.error().message;
      return candidate;
    }
    candidate.job = *std::move(job);
    const bool has_packets = candidate.job.method != jobs::Method::kFlows;
    if (has_packets && candidate.job.plan.topology.nodes > fabric::kMaxNodes)
      candidate.mistake = fmt::format(
          "{} nodes are too many for packets, which technologies are "
          "compared by; there may be {}",
          candidate.job.plan.topology.nodes, fabric::kMaxNodes);
    candidate.bill = jobs::bill_of({.plan = candidate.job.plan,
                                    .technology = technology,
                                    .preset = jobs::preset_named(candidate.job.preset),
                                    .cable_metres = request_.cable_metres.value_or(0)});
    return candidate;
  }
  Expected<void> read_candidates() {
    results_.file = request_.job;
    for (const Source& source : sources_)
      for (const fabric::Technology technology : request_.technologies)
        results_.candidates.push_back(candidate_of(source, technology, {}));
    const bool is_any_good = std::ranges::any_of(
        results_.candidates, [](const Candidate& one) { return one.mistake.empty(); });
    if (!is_any_good) return cannot(results_.candidates.front().mistake);
    return {};
  }

  // --- running
  // Ends with `whole_events`, which it estimates, set, where those are more than `most_events`.
  jobs::Measured measure(const Candidate& candidate, std::mutex& printing,
                         u64 most_events = ~u64{0}, u64* whole_events = nullptr) const {
    ProgressLine line;
    return jobs::measure(candidate.job, [&](const jobs::Progress& progress) {
      if (progress.events > most_events && progress.part) {
        *whole_events = static_cast<u64>(static_cast<double>(progress.events) / progress.part());
        return true;
      }
      if (line.is_due()) {
        const std::lock_guard lock(printing);
        line.show(fmt::format("{}: {}", candidate.name(), text_of(progress, line.seconds())));
      }
      return is_stopped();
    });
  }
  // Too many events: the job is run in two parts, and the rest is extrapolated.
  jobs::Measured measure_or_extrapolate(const Candidate& candidate, std::mutex& printing) const {
    u64 events = 0;
    jobs::Measured whole = measure(candidate, printing, jobs::kMostEventsOfAWhole, &events);
    if (events == 0 || is_stopped()) return whole;
    const std::optional<jobs::TwoParts> parts = jobs::two_parts_of(candidate.job, events);
    if (!parts) return measure(candidate, printing);
    const auto source = std::ranges::find(sources_, candidate.topology, &Source::topology);
    std::array<jobs::Measured, 2> measured;
    for (const bool is_large : {false, true}) {
      const Candidate part =
          candidate_of(*source, candidate.technology, is_large ? parts->large : parts->small);
      measured[is_large] = measure(part, printing);
      if (!measured[is_large].mistake.empty()) return measured[is_large];
    }
    return jobs::extrapolated(measured[0], measured[1], *parts);
  }
  // Runs the candidates. Each thread takes the next candidate that no thread has.
  void run_all(std::vector<Candidate>& candidates, bool may_be_extrapolated = false) {
    std::atomic<std::size_t> next = 0;
    std::size_t done = 0;
    std::mutex printing;
    const auto work = [&] {
      for (std::size_t i = next++; i < candidates.size(); i = next++) {
        Candidate& candidate = candidates[i];
        if (!candidate.mistake.empty()) continue;
        candidate.measured = may_be_extrapolated ? measure_or_extrapolate(candidate, printing)
                                                 : measure(candidate, printing);
        const std::lock_guard lock(printing);
        fmt::print(stderr, "{} of {}: {}{}{}\n", ++done, candidates.size(), candidate.name(),
                   candidate.variant.empty() ? "" : ", ", candidate.variant);
      }
    };
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t threads = request_.threads == 0 ? cores : request_.threads;
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < std::min(threads, candidates.size()); ++i)
      workers.emplace_back(work);
    work();
  }
  void try_remedies() {
    std::vector<Candidate> runs;
    std::vector<std::size_t>
        without;  // places in `runs`, by candidate; kWhole: the candidate's own
    for (std::size_t i = 0; i < results_.candidates.size(); ++i)
      add_remedies(i, runs, without.emplace_back(kWhole));
    run_all(runs);
    std::size_t next = 0;
    for (jobs::Tried& tried : results_.tried) {
      const std::size_t part = without[tried.of];
      if (next == part) ++next;  // a part without a remedy
      const Candidate& base = part == kWhole ? results_.candidates[tried.of] : runs[part];
      tried.candidate = runs[next++];
      if (base.is_done()) tried.without = base.measured.time;
    }
  }
  void add_remedies(std::size_t of, std::vector<Candidate>& runs, std::size_t& without) {
    const Candidate& candidate = results_.candidates[of];
    if (!candidate.is_done()) return;
    const auto source = std::ranges::find(sources_, candidate.topology, &Source::topology);
    const std::vector<fabric::Setting> part = jobs::part_of(candidate);
    std::vector<jobs::Remedy> remedies = jobs::remedies_of(candidate);
    if (!part.empty() && !remedies.empty()) {
      without = runs.size();
      runs.push_back(candidate_of(*source, candidate.technology, part));
      runs.back().variant = "a part of the job";
    }
    for (jobs::Remedy& remedy : remedies) {
      std::vector<fabric::Setting> settings = part;
      settings.insert(settings.end(), remedy.settings.begin(), remedy.settings.end());
      runs.push_back(candidate_of(*source, candidate.technology, settings));
      runs.back().variant = remedy.name;
      results_.tried.push_back({.of = of, .remedy = std::move(remedy), .candidate = {}});
    }
  }
  // Base: the settings with which a variant of a candidate runs, and the time to compare it with.
  // The settings are those of the candidate's best remedy, and those of a part of the job if the
  // whole job takes too many events to be repeated. `time` is 0 if the variant has another size
  // than the job; then no time is scaled.
  struct Base {
    std::vector<fabric::Setting> settings{};
    Duration time{};
  };
  Base base_of(std::size_t place, const jobs::Variant& variant) const {
    Base base{.settings = jobs::part_of(results_.candidates[place])};
    const jobs::Tried *best = nullptr, *any = nullptr;
    for (const jobs::Tried& tried : results_.tried) {
      if (tried.of != place || !tried.is_done()) continue;
      any = &tried;
      if (tried.remedy.name == results_.best[place].variant) best = &tried;
    }
    const bool has_other_size = std::ranges::any_of(base.settings, [&](const auto& setting) {
      return std::ranges::count(variant.settings, setting.key, &fabric::Setting::key) != 0;
    });
    if (!has_other_size && any != nullptr)
      base.time = best != nullptr ? best->candidate.measured.time : any->without;
    if (has_other_size || any == nullptr) base.settings.clear();
    if (best != nullptr)
      base.settings.insert(base.settings.end(), best->remedy.settings.begin(),
                           best->remedy.settings.end());
    base.settings.insert(base.settings.end(), variant.settings.begin(), variant.settings.end());
    return base;
  }
  // Times of parts become those of the whole.
  void scale_varied(const std::vector<std::pair<std::size_t, Duration>>& bases) {
    for (std::size_t i = 0; i < bases.size(); ++i) {
      Candidate& varied = results_.varied[i];
      const auto [place, part] = bases[i];
      if (!varied.is_done() || part == Duration()) continue;
      const double whole = results_.best[place].measured.time.seconds() / part.seconds();
      varied.measured.time =
          ps(std::llround(static_cast<double>(varied.measured.time.ps()) * whole));
    }
  }
  void vary() {
    const Candidate& best = *results_.recommendation.best;
    const auto source = std::ranges::find(sources_, best.topology, &Source::topology);
    std::vector<std::pair<std::size_t, Duration>> bases;  // of `varied`, one by one
    for (const jobs::Variant& variant : jobs::variants_of(results_.best, best))
      for (std::size_t place = 0; place < results_.best.size(); ++place) {
        const Candidate& candidate = results_.best[place];
        const bool is_tcp = candidate.technology == fabric::Technology::kTCP;
        if (!candidate.is_done() || candidate.topology != best.topology ||
            (variant.of_tcp_only && !is_tcp))
          continue;
        const Base base = base_of(place, variant);
        results_.varied.push_back(candidate_of(*source, candidate.technology, base.settings));
        results_.varied.back().variant = variant.name;
        bases.emplace_back(place, base.time);
      }
    run_all(results_.varied);
    scale_varied(bases);
    compare_same_operation(results_.varied);
    results_.lessons = jobs::lessons_of(results_.best, results_.varied, best);
  }
  // Returns the RoCEv2 candidate on the recommended topology, or else the first RoCEv2 candidate.
  const Candidate* of_rocev2() const {
    const Candidate* found = nullptr;
    for (const Candidate& candidate : results_.candidates) {
      if (candidate.technology != fabric::Technology::kRoCEv2 || !candidate.is_done()) continue;
      if (found == nullptr) found = &candidate;
      if (results_.recommendation.best != nullptr &&
          candidate.topology == results_.recommendation.best->topology)
        return &candidate;
    }
    return found;
  }
  void prove() {
    const Candidate* const candidate = of_rocev2();
    if (candidate == nullptr) return;
    results_.tuned = tuned_links(candidate->job, candidate->bill.switch_buffer_bytes,
                                 request_.cable_metres.value_or(0));
    if (is_stopped()) return;
    fmt::print(stderr, "proof of RoCEv2's settings\n");
    const jobs::TunedLinks& links = results_.tuned.front();
    results_.proof_ports = jobs::ports_of_largest_switch(candidate->job.plan.topology);
    results_.proof = jobs::prove(
        {links.request, links.tuning, candidate->job.network, results_.proof_ports}, stop());
  }

  Expected<void> write(const std::string& text) const {
    const fs::path folder = request_.output;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return cannot(fmt::format("cannot make {}: {}", folder.string(), error.message()));
    std::vector<jobs::PlanFile> files = jobs::settings_files(results_);
    for (const Candidate& candidate : results_.candidates)
      if (candidate.mistake.empty()) {
        for (jobs::PlanFile& file : jobs::cloud_files(candidate.job, results_.candidates))
          files.push_back(std::move(file));
        break;
      }
    files.push_back({"plan.txt", text});
    files.push_back({"plan.html", comparison_page("Plan of " + request_.job, rows(), text)});
    for (const jobs::PlanFile& file : files)
      if (const auto done = write_text(folder / file.name, file.text); !done) return done;
    const std::string failed = jobs::write_database(folder / "results.sqlite", results_);
    if (!failed.empty()) return cannot(failed);
    return {};
  }

  // Each technology as the file has it, then its remedies.
  std::vector<SimResult> rows() const {
    std::vector<SimResult> rows;
    for (const Candidate& candidate : results_.candidates) rows.push_back(row_of(candidate));
    for (const jobs::Tried& tried : results_.tried) rows.push_back(row_of(tried.candidate));
    return rows;
  }
  static SimResult row_of(const Candidate& candidate) {
    SimResult row;
    row.title = candidate.name();
    if (!candidate.variant.empty()) row.title += ", " + candidate.variant;
    if (!candidate.is_done()) {
      row.notes.push_back(candidate.mistake.empty() ? candidate.measured.mistake
                                                    : candidate.mistake);
      return row;
    }
    const jobs::Measured& m = candidate.measured;
    const double dollars = candidate.bill.dollars.middle();
    row.lines = {{"time", fabric::duration_text(m.time)},
                 {"busbw, GB/s", fmt::format("{:.2f}", m.bus_bandwidth / 1e9)},
                 {"network", jobs::dollars_text(candidate.bill.dollars)},
                 {"cost of work, relative", fmt::format("{:.4g}", jobs::cost_of_work(candidate))}};
    row.metrics = {{"time", m.time.seconds()},
                   {"busbw", m.bus_bandwidth},
                   {"cores", m.cores},
                   {"network.dollars", dollars},
                   {"network.watts", candidate.bill.watts.middle()},
                   {"pauses", static_cast<double>(m.packets.counters.pauses)},
                   {"retransmissions", static_cast<double>(m.packets.repairs.retransmissions)}};
    return row;
  }

  static constexpr bool kMayBeExtrapolated = true;
  static constexpr std::size_t kWhole = ~std::size_t{0};

  const PlanJobRequest& request_;
  const StopSignal stop_;
  std::vector<Source> sources_;
  jobs::PlanResults results_;
};

}  // namespace

Expected<SimOutcome> plan_job(const PlanJobRequest& request) { return Planner(request).run(); }

}  // namespace verbena::cli
