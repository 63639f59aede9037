// Server: gives a model to fetchers. They read manifest, places and chunks from its memory by
// themselves; it answers only their few questions, each a notification of words:
//
//   model ID ADDRESS                                 where manifest and places are; other servers
//   serve ID ADDRESS SERVER                          the agent at SERVER serves the model, too
//   others ID ADDRESS                                those agents, with commas between them
//   hash ID ADDRESS FILE OFFSET RUN STRIDE COUNT     the hash of a slice
//   state ID ADDRESS                                 whether the files are as they were
//
// Answers: "ID ok WORDS" or "ID no TEXT". ADDRESS is that of the asking agent.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "models/handles.h"
#include "models/mapped_file.h"
#include "transfer/manifest.h"

namespace verbena::models {

class Server {
 public:
  // The files are those of the manifest, in its order, and stay where they are.
  [[nodiscard]] static Expected<std::unique_ptr<Server>> make(
      const transfer::Manifest& manifest, const std::vector<const MappedFile*>& files,
      const AgentSettings& settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::string address() const { return verbena_agent_address(agent_.get()); }
  // Chunks are numbered through all files. From now on others may read it.
  void offer_chunk(u64 chunk);
  void offer_all();
  // Answers until `is_over` returns true. on_event gets lines for the user.
  void run(const std::function<bool()>& is_over,
           const std::function<void(const std::string&)>& on_event);
  [[nodiscard]] u64 bytes_hashed() const { return bytes_hashed_; }

 private:
  Server() = default;
  [[nodiscard]] Expected<void> open(const AgentSettings& settings);
  void answer(const Note& note, const std::function<void(const std::string&)>& on_event);
  [[nodiscard]] Expected<std::string> result_of(const std::vector<std::string>& words);
  [[nodiscard]] Expected<std::string> describe();
  [[nodiscard]] std::string others() const;
  [[nodiscard]] Expected<std::string> hash_slice(const std::vector<std::string>& words);
  [[nodiscard]] Expected<std::string> check_files() const;

  transfer::Manifest manifest_{};
  std::vector<const MappedFile*> files_{};
  AgentPtr agent_{};
  std::string encoded_{};
  transfer::Hash manifest_hash_{};
  std::vector<u8> places_{};
  u64 manifest_region_ = 0, places_region_ = 0;
  std::vector<std::string> others_{};            // addresses of other servers
  std::map<std::string, std::string> askers_{};  // address to name
  u32 asked_ = 0;
  u64 bytes_hashed_ = 0;
};

}  // namespace verbena::models
