// SQLiteReader: rows of an SQLite database that was written before, as JSON: reports are made of
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

struct sqlite3;

namespace verbena::fabric {

class SQLiteReader {
 public:
  using JSON = nlohmann::ordered_json;

  explicit SQLiteReader(const std::string& path);
  ~SQLiteReader();
  SQLiteReader(const SQLiteReader&) = delete;
  SQLiteReader& operator=(const SQLiteReader&) = delete;

  // An array of rows, each an array of numbers, texts and nulls. Arguments are ?1, ?2, ...
  [[nodiscard]] JSON rows(std::string_view query, const std::vector<std::string>& arguments = {});
  // "": all queries went well.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  sqlite3* database_ = nullptr;
  std::string error_;
};

}  // namespace verbena::fabric
