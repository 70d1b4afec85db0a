#include "server/api/field_document.h"

#include <fmt/format.h>

#include "server/api/field_table.h"

namespace quire {
namespace {

// For a cell: a bar would end it.
std::string Cell(std::string text) {
  for (size_t place = 0; (place = text.find('|', place)) != std::string::npos; place += 2)
    text.insert(place, 1, '\\');
  return text;
}

std::string BodyInWords(uint8_t bodies) {
  if (bodies == kInBoth) return "both";
  return bodies == kInChat ? "chat" : "completions";
}

std::string RowsOf(FieldEffect effect, bool has_default) {
  std::string rows;
  for (const ApiField& field : ApiFields()) {
    if (field.effect != effect) continue;
    const std::string name = fmt::format("| `{}` | {} | {} ", field.name, BodyInWords(field.bodies),
                                         Cell(ValuesInWords(field)));
    rows += name;
    if (has_default) rows += fmt::format("| {} ", field.fallback.empty() ? "-" : field.fallback);
    rows += fmt::format("| {} |\n", Cell(std::string(field.help)));
  }
  return rows;
}

}  // namespace

std::string FieldDocument() {
  std::string text =
      "# Fields of requests\n\n"
      "The fields of POST /v1/chat/completions and /v1/completions. This file is made from\n"
      "`src/server/api/field_table.cc`; the test `FieldTable.TheDocumentIsTheTable` compares "
      "them.\n"
      "\n"
      "`null` counts as absent. An integer may be written `16.0`, not `\"16\"`. A value of a "
      "wrong\n"
      "type or out of its range gives 400 with the field's name in `param`. A field that is not\n"
      "here is ignored and named in the header `x-quire-ignored` (`--strict-fields` refuses it);\n"
      "one that belongs to the other path only is refused unless it says nothing.\n\n"
      "## Fields that do something\n\n"
      "| field | path | takes | default | what it does |\n|---|---|---|---|---|\n";
  text += RowsOf(FieldEffect::kHonoured, true);
  text +=
      "\n## Fields without effect on the output\n\n"
      "| field | path | takes | note |\n|---|---|---|---|\n";
  text += RowsOf(FieldEffect::kIgnored, false);
  text +=
      "\n## Fields that are refused\n\n"
      "With 400 and the code `unsupported_parameter`, unless they say nothing.\n\n"
      "| field | path | takes | why |\n|---|---|---|---|\n";
  text += RowsOf(FieldEffect::kRefused, false);
  return text;
}

}  // namespace quire
