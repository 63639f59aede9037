// SQLiteFile: a new SQLite database being filled with tables, in one transaction. The first error
// stays, and nothing is done after it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

struct sqlite3;
struct sqlite3_stmt;

namespace verbena::fabric {

class SQLiteFile {
 public:
  // Replaces an existing file of that name.
  explicit SQLiteFile(const std::string& path);
  ~SQLiteFile();
  SQLiteFile(const SQLiteFile&) = delete;
  SQLiteFile& operator=(const SQLiteFile&) = delete;

  void run(const std::string& sql);
  // Returns "" if there was no error and the file is complete.
  [[nodiscard]] std::string finish();

  // Rows of one table: row.add(1).add("x").end(); as many values as it has columns.
  class Rows {
   public:
    // `columns`: as in CREATE TABLE, with commas between.
    Rows(SQLiteFile& file, std::string_view table, std::string_view columns);
    ~Rows();
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;

    Rows& add(i64 value);
    Rows& add(u64 value) { return add(static_cast<i64>(value)); }
    Rows& add(u32 value) { return add(static_cast<i64>(value)); }
    Rows& add(double value);
    Rows& add(std::string_view value);
    Rows& add_null();
    void end();

   private:
    SQLiteFile& file_;
    sqlite3_stmt* insert_ = nullptr;
    int column_ = 0;
  };

 private:
  void note_error();

  sqlite3* database_ = nullptr;
  std::string error_;
};

}  // namespace verbena::fabric
