// A key-value store, as an example of an application of a Node: a PUT is a SEND that the server
// answers by a SEND, a GET is one RDMA READ of the table, in which the server's processor has no
// part. Each key has one place in the table. A GET returns nullopt where another key, or none, is.
//
// The server's accept() tells the table's address and R_Key in its private data: 8 and 4 bytes,
// big endian, and 4 bytes with the number of places.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "application/node.h"
#include "base/check.h"

namespace verbena::application {

struct KeyValueEntry {
  static constexpr std::size_t kKeyBytes = 32, kValueBytes = 96;

  std::array<char, kKeyBytes> key{};  // zeros fill both
  std::array<char, kValueBytes> value{};

  void set(std::string_view new_key, std::string_view new_value) {
    *this = {};
    new_key.copy(key.data(), kKeyBytes - 1);
    new_value.copy(value.data(), kValueBytes - 1);
  }
  [[nodiscard]] bool has(std::string_view wanted) const { return wanted == key.data(); }
};

[[nodiscard]] constexpr u32 key_value_place(std::string_view key, u32 places) {
  u32 hash = 2166136261;  // FNV-1a
  for (const char c : key) hash = (hash ^ static_cast<u8>(c)) * 16777619;
  return hash % places;
}

class KeyValueServer final : public Program {
 public:
  KeyValueServer(Node& node, const Address& at, u32 places);
  void on_ready() override;

 private:
  static constexpr u32 kReceives = 8;
  void take_put(const Event& event);

  Node& node_;
  const u32 places_;
  Region table_, inbox_;
};

class KeyValueClient final : public Program {
 public:
  KeyValueClient(Node& node, const Address& server);
  void on_ready() override;

  // One operation at a time: the next one after is_done().
  void put(std::string_view key, std::string_view value);
  void get(std::string_view key);
  [[nodiscard]] bool is_connected() const { return places_ != 0; }
  [[nodiscard]] bool is_done() const { return is_done_; }
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  [[nodiscard]] std::optional<std::string> value() const;  // of the last get()
  void close() { node_.disconnect(connection_); }

 private:
  [[nodiscard]] KeyValueEntry& entry() {
    return *reinterpret_cast<KeyValueEntry*>(buffer_.bytes.data());
  }
  [[nodiscard]] Slice slice() const {
    return {buffer_.address, sizeof(KeyValueEntry), buffer_.l_key};
  }

  Node& node_;
  Region buffer_;
  ConnectionId connection_ = 0;
  u64 table_ = 0;
  u32 r_key_ = 0, places_ = 0;
  std::string wanted_;
  bool is_done_ = true, is_closed_ = false;
};

}  // namespace verbena::application
