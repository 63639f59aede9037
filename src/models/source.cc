#include "models/source.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "transfer/fields.h"

namespace verbena::models {
namespace {

constexpr double kAnswerPollSeconds = 0.5;
constexpr u64 kMaxManifestBytes = u64{1} << 30;

template <typename T>
bool read_number(const std::string& word, T& value) {
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  return read.ec == std::errc{} && read.ptr == word.data() + word.size();
}

Expected<void> read_description(const std::string& text, Source& source) {
  const std::vector<std::string> words = split(text, ' ');
  const bool is_complete =
      words.size() >= 8 && read_number(words[0], source.manifest_address) &&
      read_number(words[1], source.manifest_bytes) &&
      read_number(words[2], source.manifest_region) &&
      read_number(words[3], source.places_address) && read_number(words[4], source.places_bytes) &&
      read_number(words[5], source.places_region) && read_number(words[7], source.turn) &&
      source.manifest_bytes <= kMaxManifestBytes && source.places_bytes <= kMaxManifestBytes;
  if (!is_complete) return tl::unexpected(source.address + " serves no model");
  for (std::size_t i = 0; i < source.manifest_hash.size() && words[6].size() == 64; ++i)
    std::from_chars(words[6].data() + 2 * i, words[6].data() + 2 * i + 2, source.manifest_hash[i],
                    16);
  if (words.size() > 8) source.others = split(words[8], ',');
  return {};
}

}  // namespace

Expected<Source*> Sources::add(const std::string& address, bool is_origin) {
  auto source = std::make_unique<Source>();
  source->address = address;
  source->is_origin = is_origin;
  const auto met = meet(agent(), address, patience_s_);
  if (!met) return tl::unexpected(met.error());
  source->peer = *met;
  const auto described = ask(*source, "model");
  if (!described) return tl::unexpected(address + ": " + described.error());
  if (const auto read = read_description(*described, *source); !read)
    return tl::unexpected(read.error());
  if (!sources_.empty() && sources_.front()->manifest_hash != source->manifest_hash)
    return tl::unexpected(address + " serves another model than " + sources_.front()->address);
  // The regions of its files are in its metadata of now.
  if (const auto again = meet(agent(), address, patience_s_); !again)
    return tl::unexpected(again.error());
  sources_.push_back(std::move(source));
  return sources_.back().get();
}

Expected<void> Sources::read_into(const Source& source, u64 address, u64 region, std::span<u8> to) {
  const auto own = add_region(agent(), to.data(), to.size(), VERBENA_LOCAL_WRITE);
  if (!own) return tl::unexpected(own.error());
  Expected<void> result;
  {
    const auto transfer =
        start_read(agent(), {.peer = source.peer,
                             .local = {{reinterpret_cast<u64>(to.data()), to.size(), *own}},
                             .remote = {{address, to.size(), region}}});
    result = transfer ? finish(*transfer, patience_s_)
                      : Expected<void>(tl::unexpected(transfer.error()));
  }
  verbena_agent_deregister(agent(), *own);
  return result;
}

Expected<transfer::Manifest> Sources::read_manifest(const Source& source) {
  std::vector<u8> bytes(source.manifest_bytes);
  const auto read = read_into(source, source.manifest_address, source.manifest_region, bytes);
  if (!read) return tl::unexpected(source.address + ": " + read.error());
  if (transfer::blake3(bytes) != source.manifest_hash)
    return tl::unexpected(source.address + ": the manifest's hash does not match");
  auto manifest =
      transfer::Manifest::decode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!manifest) return tl::unexpected(source.address + ": " + manifest.error());
  return manifest;
}

Expected<void> Sources::refresh(Source& source, const transfer::Manifest& manifest) {
  if (source.places_bytes != transfer::Places::bytes_for(manifest))
    return tl::unexpected(source.address + ": its places do not fit the manifest");
  std::vector<u8> bytes(source.places_bytes);
  if (bytes.empty()) return {};
  const auto read = read_into(source, source.places_address, source.places_region, bytes);
  if (!read) return read;
  source.places.resize(manifest.files.size());
  std::memcpy(source.places.data(), bytes.data(), source.places.size() * sizeof(transfer::Place));
  source.bits.assign(
      bytes.begin() + static_cast<std::ptrdiff_t>(transfer::Places::bits_offset(manifest)),
      bytes.end());
  return {};
}

Expected<u64> Sources::ask_later(const Source& source, const std::string& verb,
                                 const std::string& words) {
  const u64 id = next_question_++;
  const auto told = tell(
      agent(), source.peer,
      fmt::format("{} {} {} {}", verb, id, verbena_agent_address(agent()), words), patience_s_);
  if (!told) return tl::unexpected(told.error());
  return id;
}

Expected<std::string> Sources::ask(const Source& source, const std::string& verb,
                                   const std::string& words) {
  const auto id = ask_later(source, verb, words);
  if (!id) return tl::unexpected(id.error());
  for (double waited = 0; waited < patience_s_; waited += kAnswerPollSeconds) {
    poll_answers(kAnswerPollSeconds);
    if (auto answer = take_answer(*id)) return std::move(*answer);
  }
  return tl::unexpected(source.address + " does not answer");
}

void Sources::poll_answers(double seconds) {
  while (const auto note = next_note(agent(), seconds)) {
    seconds = 0;
    const std::size_t first = note->text.find(' ');
    u64 id = 0;
    if (first == std::string::npos || !read_number(note->text.substr(0, first), id)) continue;
    const std::string rest = note->text.substr(first + 1);
    const std::string text = rest.substr(std::min<std::size_t>(3, rest.size()));
    if (rest.starts_with("ok"))
      answers_.push_back({id, text});
    else
      answers_.push_back({id, tl::unexpected(text)});
  }
}

std::optional<Expected<std::string>> Sources::take_answer(u64 id) {
  const auto found = std::ranges::find(answers_, id, &Answer::id);
  if (found == answers_.end()) return std::nullopt;
  Expected<std::string> text = std::move(found->text);
  answers_.erase(found);
  return text;
}

}  // namespace verbena::models
