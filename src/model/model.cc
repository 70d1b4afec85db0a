#include "model/model.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/message_text.h"
#include "model/gguf_file.h"
#include "model/vocabulary_reader.h"

namespace quire {
namespace {

void LogUnknownTensors(const std::vector<std::string_view>& names) {
  if (names.empty()) return;
  spdlog::warn("{} tensors that architecture rules do not name are ignored, the first is {}",
               names.size(), Printable(names.front()));
}

}  // namespace

StatusOr<std::unique_ptr<Model>> Model::Load(
    const GgufFile& file, ThreadTeam& team,
    const std::function<void(uint64_t, uint64_t)>& progress) {
  std::unique_ptr<Model> model(new Model());
  if (Status status = model->Read(file, team, progress); !status.ok())
    return status.WithContext(file.path());
  return model;
}

Status Model::Read(const GgufFile& file, ThreadTeam& team,
                   const std::function<void(uint64_t, uint64_t)>& progress) {
  QUIRE_ASSIGN_OR_RETURN(architecture_, ReadArchitecture(file.header()));
  QUIRE_ASSIGN_OR_RETURN(shape_, ReadShape(file.header()));
  QUIRE_ASSIGN_OR_RETURN(const auto unknown, CheckTensors(file.header(), shape_));
  LogUnknownTensors(unknown);
  QUIRE_ASSIGN_OR_RETURN(vocabulary_, ReadVocabulary(file.header(), file.header_memory()));
  QUIRE_ASSIGN_OR_RETURN(weights_, LoadWeights(file, shape_, *architecture_, team, progress));
  return OkStatus();
}

}  // namespace quire
