// TextTable: rows of short texts for people and for pipes: aligned columns on a terminal,
// tab-separated values elsewhere. Numbers are never cut.
//
// Threading: a plain value.
#pragma once

#include <string>
#include <vector>

namespace quire {

struct TableColumn {
  std::string name;
  bool is_number = false;  // to the right, on a terminal
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

  // Requires: one text a column.
  void AddRow(std::vector<std::string> row);
  // With a line of names first. Tabs and line ends in texts become blanks.
  std::string Text(bool is_aligned) const;

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace quire
