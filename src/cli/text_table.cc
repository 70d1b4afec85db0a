#include "cli/text_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace quire {

void TextTable::AddRow(std::vector<std::string> row) {
  QUIRE_CHECK(row.size() == columns_.size());
  for (std::string& text : row)
    for (char& c : text)
      if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  rows_.push_back(std::move(row));
}

std::string TextTable::Text(bool is_aligned) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].name.size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  const auto add = [&](size_t c, const std::string& cell) {
    const std::string blanks(is_aligned ? widths[c] - cell.size() : 0, ' ');
    if (c > 0) text += is_aligned ? "  " : "\t";
    if (columns_[c].is_number) text += blanks;
    text += cell;
    if (!columns_[c].is_number && c + 1 < columns_.size()) text += blanks;
    if (c + 1 == columns_.size()) text += '\n';
  };
  for (size_t c = 0; c < columns_.size(); ++c) add(c, columns_[c].name);
  for (const auto& row : rows_)
    for (size_t c = 0; c < columns_.size(); ++c) add(c, row[c]);
  return text;
}

}  // namespace quire
