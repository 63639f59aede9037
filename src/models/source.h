// Source: one agent that serves the model, as a fetcher sees it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/handles.h"
#include "transfer/manifest.h"

namespace verbena::models {

struct Source {
  std::string address{}, peer{};
  bool is_origin = false;  // named by the user
  u64 places_address = 0, places_bytes = 0, places_region = 0;
  transfer::Hash manifest_hash{};
  u64 manifest_address = 0, manifest_bytes = 0, manifest_region = 0;
  u32 turn = 0;  // the how many-th fetcher this is
  std::vector<std::string> others{};
  std::vector<transfer::Place> places{};
  std::vector<u8> bits{};
  u64 outstanding = 0;  // bytes
  u64 delivered = 0;    // bytes
  std::string why_lost{};

  [[nodiscard]] bool is_lost() const { return !why_lost.empty(); }
  [[nodiscard]] bool has(u64 chunk) const {
    return chunk / 8 < bits.size() && (bits[chunk / 8] >> (chunk % 8) & 1) != 0;
  }
};

// An agent that fetches, and what it knows of its sources.
class Sources {
 public:
  // `patience_s`: a source that does not answer for so long is lost.
  Sources(AgentPtr agent, double patience_s) : agent_(std::move(agent)), patience_s_(patience_s) {}
  [[nodiscard]] verbena_agent* agent() const { return agent_.get(); }

  // Fails if there is no model, or another one than that of the other sources.
  [[nodiscard]] Expected<Source*> add(const std::string& address, bool is_origin);
  [[nodiscard]] const std::vector<std::unique_ptr<Source>>& all() const { return sources_; }
  [[nodiscard]] Expected<transfer::Manifest> read_manifest(const Source& source);
  // Reads places and bits again.
  [[nodiscard]] Expected<void> refresh(Source& source, const transfer::Manifest& manifest);
  // Asks, and waits for the answer.
  [[nodiscard]] Expected<std::string> ask(const Source& source, const std::string& verb,
                                          const std::string& words = "");
  // Asks only: answers are taken by poll_answers(), into answers().
  [[nodiscard]] Expected<u64> ask_later(const Source& source, const std::string& verb,
                                        const std::string& words);
  void poll_answers(double seconds);
  [[nodiscard]] std::optional<Expected<std::string>> take_answer(u64 id);

 private:
  [[nodiscard]] Expected<void> read_into(const Source& source, u64 address, u64 region,
                                         std::span<u8> to);
  struct Answer {
    u64 id;
    Expected<std::string> text;
  };
  AgentPtr agent_;
  double patience_s_;
  std::vector<std::unique_ptr<Source>> sources_{};
  std::vector<Answer> answers_{};
  u64 next_question_ = 1;
};

}  // namespace verbena::models
