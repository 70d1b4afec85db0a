// ModelCard: the ServedModel of a loaded engine, and what it points to.
//
// Threading: made once; read-only afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/engine.h"
#include "server/api/served_model.h"
#include "server/serve_options.h"
#include "text/chat_template.h"

namespace quire {

class ModelCard {
 public:
  // Reads the header of the model's file once more, and the chat template's file if one is named.
  // `engine` must outlive it.
  static StatusOr<std::unique_ptr<ModelCard>> Create(const ServeOptions& options,
                                                     const Engine& engine);

  const ServedModel& served() const { return served_; }
  const std::string& architecture() const { return architecture_; }
  // The type that most bytes of the weights have: "Q4_1".
  const std::string& file_type() const { return file_type_; }
  // Why chat is refused, if the model has no chat template that works.
  const std::string& chat_problem() const { return chat_problem_; }

 private:
  ModelCard() = default;
  Status TakeTemplate(const ServeOptions& options, const Engine& engine);

  ServedModel served_;
  std::optional<ChatTemplate> chat_template_;
  std::string architecture_, file_type_, chat_problem_;
};

}  // namespace quire
