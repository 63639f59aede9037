// SQLiteReader: rows of an SQLite database that was written before, as JSON: reports are made of
// them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/types.h"

struct sqlite3;
struct sqlite3_stmt;

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
  // Calls `visit` with the columns of each row, all of them integers: for many rows.
  void visit(std::string_view query, const std::vector<std::string>& arguments,
             const std::function<void(std::span<const i64> row)>& visit);
  // Returns "" if all queries succeeded.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void for_each_row(std::string_view query, const std::vector<std::string>& arguments,
                    const std::function<void(sqlite3_stmt* row)>& visit);

  sqlite3* database_ = nullptr;
  std::string error_;
};

}  // namespace verbena::fabric
