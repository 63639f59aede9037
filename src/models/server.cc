#include "models/server.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace verbena::models {
namespace {

using transfer::Manifest;
using transfer::Place;
using transfer::Places;

constexpr u64 kMaxSliceBytes = u64{64} << 20, kMaxSliceSpan = u64{1} << 30;
constexpr std::size_t kMaxOthers = 64, kOthersTold = 16;
constexpr double kPollSeconds = 0.2, kPeerSeconds = 10;

std::optional<u64> number_of(const std::string& word) {
  u64 value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  if (read.ec != std::errc{} || read.ptr != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace

Expected<std::unique_ptr<Server>> Server::make(const Manifest& manifest,
                                               const std::vector<const MappedFile*>& files,
                                               const AgentSettings& settings) {
  std::unique_ptr<Server> server(new Server);
  server->manifest_ = manifest;
  server->files_ = files;
  if (const auto opened = server->open(settings); !opened) return tl::unexpected(opened.error());
  return server;
}

Server::~Server() = default;

Expected<void> Server::open(const AgentSettings& settings) {
  auto agent = make_agent("model", settings);
  if (!agent) return tl::unexpected(agent.error());
  agent_ = std::move(*agent);
  encoded_ = manifest_.encode();
  manifest_hash_ =
      transfer::blake3({reinterpret_cast<const u8*>(encoded_.data()), encoded_.size()});
  places_.assign(Places::bytes_for(manifest_), 0);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i]->bytes() == 0) continue;
    const auto region =
        add_region(agent_.get(), files_[i]->data(), files_[i]->bytes(), VERBENA_REMOTE_READ);
    if (!region) return tl::unexpected(manifest_.files[i].name + ": " + region.error());
    const Place place{.address = reinterpret_cast<u64>(files_[i]->data()), .region = *region};
    std::memcpy(places_.data() + i * sizeof place, &place, sizeof place);
  }
  const auto manifest_region =
      add_region(agent_.get(), encoded_.data(), encoded_.size(), VERBENA_REMOTE_READ);
  if (!manifest_region) return tl::unexpected(manifest_region.error());
  const auto places_region =
      add_region(agent_.get(), places_.data(), places_.size(), VERBENA_REMOTE_READ);
  if (!places_region) return tl::unexpected(places_region.error());
  manifest_region_ = *manifest_region;
  places_region_ = *places_region;
  return {};
}

// Peers read the bit while it changes: a byte is read whole.
void Server::offer_chunk(u64 chunk) {
  u8& bits = places_[Places::bits_offset(manifest_) + chunk / 8];
  std::atomic_ref<u8>(bits).fetch_or(static_cast<u8>(1u << (chunk % 8)), std::memory_order_release);
}

void Server::offer_all() {
  for (u64 chunk = 0; chunk < manifest_.chunks(); ++chunk) offer_chunk(chunk);
}

void Server::run(const std::function<bool()>& is_over,
                 const std::function<void(const std::string&)>& on_event) {
  while (!is_over())
    if (const auto note = next_note(agent_.get(), kPollSeconds)) answer(*note, on_event);
}

void Server::answer(const Note& note, const std::function<void(const std::string&)>& on_event) {
  const std::vector<std::string> words = split(note.text, ' ');
  if (words.size() < 3) return;
  const std::string& id = words[1];
  const std::string& address = words[2];
  auto asker = askers_.find(address);
  if (asker == askers_.end() || asker->second != note.peer) {
    const auto met = meet(agent_.get(), address, kPeerSeconds);
    if (!met || *met != note.peer) return;  // it has gone since, or lies
    if (askers_.size() >= 4096) askers_.clear();
    asker = askers_.insert_or_assign(address, *met).first;
    on_event(fmt::format("{} asks from {}", note.peer, address));
  }
  const auto result = result_of(words);
  (void)tell(agent_.get(), asker->second,
             result ? id + " ok " + *result : id + " no " + result.error(), kPeerSeconds);
}

Expected<std::string> Server::result_of(const std::vector<std::string>& words) {
  const std::string& verb = words[0];
  if (verb == "model") return describe();
  if (verb == "others") return others();
  if (verb == "hash") return hash_slice(words);
  if (verb == "state") return check_files();
  if (verb == "serve" && words.size() == 4) {
    if (std::ranges::find(others_, words[3]) == others_.end()) others_.push_back(words[3]);
    if (others_.size() > kMaxOthers) others_.erase(others_.begin());
    return "";
  }
  return tl::unexpected("a question that nobody understands: " + verb);
}

// The last ones.
std::string Server::others() const {
  std::string list;
  for (std::size_t i = others_.size() - std::min(others_.size(), kOthersTold); i < others_.size();
       ++i)
    list += (list.empty() ? "" : ",") + others_[i];
  return list;
}

Expected<std::string> Server::describe() {
  if (const auto checked = check_files(); !checked) return checked;
  return fmt::format("{} {} {} {} {} {} {} {} {}", reinterpret_cast<u64>(encoded_.data()),
                     encoded_.size(), manifest_region_, reinterpret_cast<u64>(places_.data()),
                     places_.size(), places_region_, transfer::to_hex(manifest_hash_), asked_++,
                     others());
}

Expected<std::string> Server::check_files() const {
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (files_[i]->bytes() != 0 && files_[i]->has_changed())
      return tl::unexpected(manifest_.files[i].name + " has changed since it is served");
  return "";
}

Expected<std::string> Server::hash_slice(const std::vector<std::string>& words) {
  std::array<u64, 5> values{};  // file, offset, run, stride, count
  const bool is_complete = words.size() == 3 + values.size();
  for (std::size_t i = 0; is_complete && i < values.size(); ++i) {
    const auto value = number_of(words[3 + i]);
    if (!value) return tl::unexpected<std::string>("a number is wrong");
    values[i] = *value;
  }
  const auto [file, offset, run, stride, count] = values;
  u64 bytes = 0, span = 0;
  const bool is_possible = is_complete && file < files_.size() && count != 0 &&
                           !__builtin_mul_overflow(run, count, &bytes) && bytes <= kMaxSliceBytes &&
                           !__builtin_mul_overflow(stride, count - 1, &span) &&
                           !__builtin_add_overflow(span, run, &span) &&
                           offset <= files_[file]->bytes() &&
                           span <= files_[file]->bytes() - offset && span <= kMaxSliceSpan;
  if (!is_possible) return tl::unexpected<std::string>("there is no such slice");
  std::vector<u8> slice(bytes), rows(span);
  if (!files_[file]->read_at(offset, rows))
    return tl::unexpected(manifest_.files[file].name + " cannot be read");
  for (u64 i = 0; i < count; ++i)
    std::memcpy(slice.data() + i * run, rows.data() + i * stride, run);
  bytes_hashed_ += bytes;
  return transfer::to_hex(transfer::blake3(slice));
}

}  // namespace verbena::models
