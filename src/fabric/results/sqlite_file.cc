#include "fabric/results/sqlite_file.h"

#include <sqlite3.h>
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace verbena::fabric {

SQLiteFile::SQLiteFile(const std::string& path) {
  std::remove(path.c_str());
  if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                      nullptr) != SQLITE_OK) {
    note_error();
    return;
  }
  // A file that is cut off by a crash is written again: it needs no journal.
  run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
}

SQLiteFile::~SQLiteFile() { sqlite3_close(database_); }

void SQLiteFile::note_error() {
  if (error_.empty()) error_ = database_ != nullptr ? sqlite3_errmsg(database_) : "out of memory";
}

void SQLiteFile::run(const std::string& sql) {
  if (!error_.empty()) return;
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) note_error();
}

std::string SQLiteFile::finish() {
  run("COMMIT");
  return error_;
}

SQLiteFile::Rows::Rows(SQLiteFile& file, std::string_view table, std::string_view columns)
    : file_(file) {
  file.run(fmt::format("CREATE TABLE {} ({})", table, columns));
  if (!file.error_.empty()) return;
  std::string places = "?";
  for (auto commas = std::ranges::count(columns, ','); commas > 0; --commas) places += ",?";
  const std::string sql = fmt::format("INSERT INTO {} VALUES ({})", table, places);
  if (sqlite3_prepare_v2(file.database_, sql.c_str(), -1, &insert_, nullptr) != SQLITE_OK)
    file.note_error();
}

SQLiteFile::Rows::~Rows() { sqlite3_finalize(insert_); }

SQLiteFile::Rows& SQLiteFile::Rows::add(i64 value) {
  sqlite3_bind_int64(insert_, ++column_, value);
  return *this;
}

SQLiteFile::Rows& SQLiteFile::Rows::add(double value) {
  sqlite3_bind_double(insert_, ++column_, value);
  return *this;
}

SQLiteFile::Rows& SQLiteFile::Rows::add(std::string_view value) {
  sqlite3_bind_text(insert_, ++column_, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);
  return *this;
}

SQLiteFile::Rows& SQLiteFile::Rows::add_null() {
  sqlite3_bind_null(insert_, ++column_);
  return *this;
}

void SQLiteFile::Rows::end() {
  column_ = 0;
  if (!file_.error_.empty()) return;
  if (sqlite3_step(insert_) != SQLITE_DONE) file_.note_error();
  sqlite3_reset(insert_);
}

}  // namespace verbena::fabric
