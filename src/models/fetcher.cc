#include "models/fetcher.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace verbena::models {
namespace {

constexpr u8 kMaxWrong = 3;
constexpr double kRefreshSeconds = 0.1, kLookSeconds = 1;
constexpr double kFlightWaitSeconds = 0.002;
constexpr std::size_t kMaxSources = 16;
constexpr u64 kMaxUnverified = 8;  // units: their memory is still in the cache

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

u32 hash_threads() { return std::clamp(std::thread::hardware_concurrency(), 1u, 8u); }

}  // namespace

Fetcher::Fetcher(Sources& sources, const transfer::Manifest& manifest, Plan plan,
                 std::vector<MappedFile>& targets, Server* server, const FetchSettings& settings)
    : sources_(sources),
      manifest_(manifest),
      plan_(std::move(plan)),
      targets_(targets),
      server_(server),
      settings_(settings),
      progress_(plan_.units.size()),
      hashers_(hash_threads()) {
  for (u64 unit = 0; unit < plan_.units.size(); ++unit) {
    total_bytes_ += plan_.units[unit].bytes();
    waiting_.push_back(unit);
  }
}

void Fetcher::check_existing(const std::vector<bool>& had) {
  std::deque<u64> others;
  for (const u64 unit : waiting_) {
    if (had[plan_.units[unit].target])
      to_check_.push_back(unit);
    else
      others.push_back(unit);
  }
  waiting_ = std::move(others);
  for (const u64 unit : to_check_) progress_[unit].is_check = true;
  std::ranges::reverse(to_check_);
}

Expected<void> Fetcher::add_regions() {
  if (std::ranges::any_of(targets_, &MappedFile::is_file)) {
    const u64 bytes = std::min(manifest_.chunk_bytes, std::max<u64>(total_bytes_, 1));
    const u64 slots = settings_.in_flight + kMaxUnverified;
    slots_.resize(slots * bytes);
    for (u64 slot = 0; slot < slots; ++slot) free_slots_.push_back(slots_.data() + slot * bytes);
    const auto region =
        add_region(sources_.agent(), slots_.data(), slots_.size(), VERBENA_LOCAL_WRITE);
    if (!region) return tl::unexpected(region.error());
    slots_region_ = *region;
  }
  for (const MappedFile& target : targets_) {
    regions_.push_back(0);
    if (target.bytes() == 0 || target.is_file()) continue;
    const auto region =
        add_region(sources_.agent(), target.data(), target.bytes(), VERBENA_LOCAL_WRITE);
    if (!region) return tl::unexpected(region.error());
    regions_.back() = *region;
  }
  return {};
}

Expected<void> Fetcher::run(const std::function<void(u64)>& on_progress) {
  if (const auto added = add_regions(); !added) return added;
  meet_others();
  double last_progress = now_seconds();
  while (done_units_ < plan_.units.size()) {
    if (const auto started = start_flights(); !started) return started;
    const auto landed = land_flights();
    if (!landed) return tl::unexpected(landed.error());
    const auto hashed = take_hashes();
    if (!hashed) return tl::unexpected(hashed.error());
    const bool is_idle = flights_.empty() && landed_.empty();
    const auto judged = take_verdicts(is_idle ? Hashers::Wait::kYes : Hashers::Wait::kNo);
    if (!judged) return tl::unexpected(judged.error());
    const double now = now_seconds();
    if (now - refreshed_at_ > kRefreshSeconds) refresh_sources();
    if (now - looked_at_ > kLookSeconds) look_for_others();
    if (*landed || *hashed || *judged) {
      last_progress = now;
      on_progress(done_bytes_);
      continue;
    }
    if (now - last_progress > settings_.timeout_s)
      return tl::unexpected(fmt::format("no source delivered anything for {} s{}",
                                        settings_.timeout_s, why_no_source()));
    if (flights_.empty())
      sources_.poll_answers(kFlightWaitSeconds);
    else
      (void)verbena_transfer_wait(flights_.front().transfer.get(), kFlightWaitSeconds);
  }
  on_progress(done_bytes_);
  return {};
}

// Checks the data of earlier attempts first, then fetches the missing data.
Expected<void> Fetcher::start_flights() {
  while (!to_check_.empty() && hashers_.outstanding() + landed_.size() < kMaxUnverified) {
    const u64 unit = to_check_.back();
    to_check_.pop_back();
    if (!plan_.units[unit].hash) {
      const auto origin = choose_source(plan_.units[unit]);
      if (origin == nullptr) return tl::unexpected("there is no source" + why_no_source());
      if (const auto asked = ask_for_hash(unit, *origin); !asked) return asked;
      landed_.push_back(unit);
    } else {
      check_in_place(unit);
    }
  }
  for (std::size_t tries = waiting_.size();
       tries > 0 && flights_.size() < settings_.in_flight &&
       hashers_.outstanding() + landed_.size() < kMaxUnverified;
       --tries) {
    const u64 unit = waiting_.front();
    Source* const source = choose_source(plan_.units[unit]);
    const bool is_lost =
        std::ranges::all_of(sources_.all(), [](const auto& each) { return each->is_lost(); });
    if (is_lost) return tl::unexpected("all sources are gone" + why_no_source());
    waiting_.pop_front();
    const auto started = source == nullptr ? Expected<bool>(false) : start_flight(unit, *source);
    if (!started) return tl::unexpected(started.error());
    if (!*started) waiting_.push_back(unit);
  }
  return {};
}

// Returns the source with the least outstanding data among those that have the chunk. Parts of
// chunks come from the sources that the user named, because those can hash the parts.
Source* Fetcher::choose_source(const Unit& unit) {
  Source* best = nullptr;
  for (const auto& source : sources_.all()) {
    const bool has_it = unit.chunk ? source->has(*unit.chunk) : source->is_origin;
    if (source->is_lost() || !has_it) continue;
    if (best == nullptr || source->outstanding < best->outstanding ||
        (source->outstanding == best->outstanding && source->delivered < best->delivered))
      best = source.get();
  }
  return best;
}

// Returns false if the source is lost.
Expected<bool> Fetcher::start_flight(u64 number, Source& source) {
  const Unit& unit = plan_.units[number];
  const MappedFile& target = targets_[unit.target];
  ReadOrder order{.peer = source.peer};
  if (target.is_file()) {
    u8*& slot = progress_[number].slot;
    CHECK(slot == nullptr && !free_slots_.empty());
    slot = free_slots_.back();
    free_slots_.pop_back();
    order.local.push_back({reinterpret_cast<u64>(slot), unit.bytes(), slots_region_});
  } else {
    order.local.push_back({reinterpret_cast<u64>(target.data()) + unit.target_offset, unit.bytes(),
                           regions_[unit.target]});
  }
  const transfer::Place& place = source.places[unit.file];
  for (u64 run = 0; run < unit.count; ++run)
    order.remote.push_back(
        {place.address + unit.offset + run * unit.stride, unit.run, place.region});
  auto transfer = start_read(sources_.agent(), order);
  if (!transfer) {
    free_slot(number);
    lose(source, transfer.error());
    return false;
  }
  if (!unit.hash && settings_.verifies)
    if (const auto asked = ask_for_hash(number, source); !asked) {
      transfer->reset();  // it may write to the slot until then
      free_slot(number);
      lose(source, asked.error());
      return false;
    }
  source.outstanding += unit.bytes();
  flights_.push_back({number, &source, std::move(*transfer)});
  return true;
}

Expected<void> Fetcher::ask_for_hash(u64 number, const Source& source) {
  const Unit& unit = plan_.units[number];
  const auto id = sources_.ask_later(
      source, "hash",
      fmt::format("{} {} {} {} {}", unit.file, unit.offset, unit.run, unit.stride, unit.count));
  if (!id) return tl::unexpected(id.error());
  progress_[number].question = *id;
  return {};
}

// Returns whether one has landed.
Expected<bool> Fetcher::land_flights() {
  bool has_landed = false;
  for (std::size_t left = flights_.size(); left > 0; --left) {
    Flight flight = std::move(flights_.front());
    flights_.pop_front();
    const int status = verbena_transfer_status(flight.transfer.get());
    if (status == VERBENA_TRANSFER_IN_PROGRESS) {
      flights_.push_back(std::move(flight));
      continue;
    }
    const Unit& unit = plan_.units[flight.unit];
    flight.source->outstanding -= unit.bytes();
    if (status != VERBENA_TRANSFER_OK) {
      lose(*flight.source, verbena_transfer_error(flight.transfer.get()));
      free_slot(flight.unit);
      waiting_.push_front(flight.unit);
      continue;
    }
    has_landed = true;
    flight.source->delivered += unit.bytes();
    progress_[flight.unit].last_source = flight.source;
    progress_[flight.unit].is_check = false;
    if (unit.hash || !settings_.verifies)
      verify(flight.unit);
    else
      landed_.push_back(flight.unit);
  }
  return has_landed;
}

// Answers to questions for hashes. Returns whether one has come.
Expected<bool> Fetcher::take_hashes() {
  if (landed_.empty()) return false;
  sources_.poll_answers(0);
  bool has_come = false;
  std::vector<u64> without;
  for (const u64 unit : landed_) {
    auto answer = sources_.take_answer(*progress_[unit].question);
    if (!answer) {
      without.push_back(unit);
      continue;
    }
    if (!*answer) return tl::unexpected(answer->error());
    plan_.units[unit].hash = transfer::hash_from_hex(**answer);
    if (!plan_.units[unit].hash) return tl::unexpected<std::string>("a source gives no hash");
    verify(unit);
    has_come = true;
  }
  landed_ = std::move(without);
  return has_come;
}

void Fetcher::verify(u64 number) {
  const Unit& unit = plan_.units[number];
  const MappedFile& target = targets_[unit.target];
  const u8* const at =
      target.is_file() ? progress_[number].slot : target.data() + unit.target_offset;
  hashers_.add({.unit = number,
                .bytes = {at, unit.bytes()},
                .expected = settings_.verifies ? unit.hash : std::nullopt,
                .file = target.is_file() ? &target : nullptr,
                .offset = unit.target_offset});
}

void Fetcher::check_in_place(u64 number) {
  const Unit& unit = plan_.units[number];
  hashers_.add({.unit = number,
                .bytes = {targets_[unit.target].data() + unit.target_offset, unit.bytes()},
                .expected = unit.hash});
}

void Fetcher::free_slot(u64 unit) {
  if (u8* const slot = std::exchange(progress_[unit].slot, nullptr)) free_slots_.push_back(slot);
}

Expected<bool> Fetcher::take_verdicts(Hashers::Wait wait) {
  bool has_come = false;
  while (const auto verdict = hashers_.take(has_come ? Hashers::Wait::kNo : wait)) {
    has_come = true;
    Progress& progress = progress_[verdict->unit];
    if (const int error = verdict->write_error; error != 0)
      return tl::unexpected(targets_[plan_.units[verdict->unit].target].write_failure(error));
    if (verdict->is_right) {
      free_slot(verdict->unit);
      if (progress.is_check) kept_bytes_ += plan_.units[verdict->unit].bytes();
      on_right(verdict->unit);
    } else if (progress.is_check) {
      progress.is_check = false;
      waiting_.push_back(verdict->unit);
    } else if (const auto repeated = on_wrong(verdict->unit); !repeated) {
      return tl::unexpected(repeated.error());
    }
  }
  return has_come;
}

// A fetcher that serves wrong bytes is left; the user's sources get another chance.
Expected<void> Fetcher::on_wrong(u64 number) {
  const Unit& unit = plan_.units[number];
  Progress& progress = progress_[number];
  Source& source = *progress.last_source;
  const std::string what =
      fmt::format("{}: bytes {} to {}: the hash does not match", manifest_.files[unit.file].name,
                  unit.offset, unit.offset + unit.run);
  if (!source.is_origin) {
    lose(source, what);
  } else if (++progress.wrong >= kMaxWrong) {
    const auto state = sources_.ask(source, "state");
    return tl::unexpected(
        what + (state ? " in what " + source.address + " serves" : ": " + state.error()));
  }
  free_slot(number);
  waiting_.push_front(number);
  return {};
}

void Fetcher::on_right(u64 number) {
  const Unit& unit = plan_.units[number];
  done_bytes_ += unit.bytes();
  ++done_units_;
  if (server_ != nullptr && unit.chunk) server_->offer_chunk(*unit.chunk);
}

void Fetcher::lose(Source& source, const std::string& why) {
  if (source.is_lost()) return;
  source.why_lost = why;
  if (!source.is_origin) return;
  // It may be alive and refuse, since a file has changed.
  const auto state = sources_.ask(source, "state");
  if (!state) source.why_lost = state.error() == why ? why : state.error() + " (" + why + ")";
}

std::string Fetcher::why_no_source() const {
  std::string text;
  for (const auto& source : sources_.all())
    if (source->is_lost() && source->is_origin)
      text += fmt::format(": {}: {}", source->address, source->why_lost);
  return text;
}

void Fetcher::refresh_sources() {
  refreshed_at_ = now_seconds();
  for (const auto& source : sources_.all())
    if (!source->is_lost() && !source->is_origin)
      if (const auto read = sources_.refresh(*source, manifest_); !read)
        lose(*source, read.error());
}

// The fetchers that the sources know of. One that cannot be reached is left out.
void Fetcher::meet_others() {
  std::set<std::string> others;
  std::set<std::string> known;
  for (const auto& source : sources_.all()) {
    others.insert(source->others.begin(), source->others.end());
    known.insert(source->address);
  }
  if (server_ != nullptr) others.erase(server_->address());
  for (const std::string& address : others) {
    if (sources_.all().size() >= kMaxSources) break;
    if (known.contains(address) || !tried_.insert(address).second) continue;
    const auto added = sources_.add(address, false);
    if (!added) continue;
    if (const auto read = sources_.refresh(**added, manifest_); !read) lose(**added, read.error());
  }
  refreshed_at_ = looked_at_ = now_seconds();
}

void Fetcher::look_for_others() {
  if (server_ == nullptr) {
    looked_at_ = now_seconds();
    return;
  }
  for (const auto& source : sources_.all()) {
    if (source->is_lost() || !source->is_origin) continue;
    if (const auto list = sources_.ask(*source, "others")) source->others = split(*list, ',');
  }
  meet_others();
}

}  // namespace verbena::models
