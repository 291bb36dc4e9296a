#include "model/survey.h"

#include "model/training_state.h"

namespace ff::model {

Result<std::shared_ptr<const Survey>> survey(const std::string& path, const std::string& dataset, const knowledge::Knowledge& knowledge) {
  auto out = std::make_shared<Survey>();
  if (auto opened = open_model(*out, path); !opened) return std::unexpected(opened.error());
  judge_config(*out);
  judge_content(*out);
  judge_shards(*out);
  judge_pickles(*out);
  judge_values(*out);
  judge_normalization(*out, dataset);
  judge_features(*out, dataset);
  judge_architecture(*out, knowledge);
  judge_training_state(*out);
  return out;
}

}  // namespace ff::model
