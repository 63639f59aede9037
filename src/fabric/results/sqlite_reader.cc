#include "fabric/results/sqlite_reader.h"

#include <sqlite3.h>

namespace verbena::fabric {
namespace {

using JSON = SQLiteReader::JSON;

JSON value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
      return std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, column)));
  }
  return nullptr;
}

}  // namespace

SQLiteReader::SQLiteReader(const std::string& path) {
  if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
    error_ = database_ != nullptr ? sqlite3_errmsg(database_) : "out of memory";
}

SQLiteReader::~SQLiteReader() { sqlite3_close(database_); }

void SQLiteReader::for_each_row(std::string_view query, const std::vector<std::string>& arguments,
                                const std::function<void(sqlite3_stmt* row)>& visit) {
  if (!error_.empty()) return;
  sqlite3_stmt* statement = nullptr;
  int result = sqlite3_prepare_v2(database_, query.data(), static_cast<int>(query.size()),
                                  &statement, nullptr);
  for (std::size_t i = 0; result == SQLITE_OK && i < arguments.size(); ++i)
    result = sqlite3_bind_text(statement, static_cast<int>(i + 1), arguments[i].data(),
                               static_cast<int>(arguments[i].size()), SQLITE_TRANSIENT);
  while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
    visit(statement);
    result = SQLITE_OK;
  }
  if (result != SQLITE_DONE) error_ = sqlite3_errmsg(database_);
  sqlite3_finalize(statement);
}

JSON SQLiteReader::rows(std::string_view query, const std::vector<std::string>& arguments) {
  JSON rows = JSON::array();
  for_each_row(query, arguments, [&rows](sqlite3_stmt* statement) {
    JSON row = JSON::array();
    for (int column = 0; column < sqlite3_column_count(statement); ++column)
      row.push_back(value_at(statement, column));
    rows.push_back(std::move(row));
  });
  return rows;
}

void SQLiteReader::visit(std::string_view query, const std::vector<std::string>& arguments,
                         const std::function<void(std::span<const i64> row)>& visit) {
  std::vector<i64> row;
  for_each_row(query, arguments, [&](sqlite3_stmt* statement) {
    row.clear();
    for (int column = 0; column < sqlite3_column_count(statement); ++column)
      row.push_back(sqlite3_column_int64(statement, column));
    visit(row);
  });
}

}  // namespace verbena::fabric
