#include "rollout/json_nan.h"

#include "base/python_json.h"

namespace ff::rollout {

Result<Value> parse_json_with_nan(std::string_view text, const std::string& where) {
  return parse_json(without_nonfinite(text, Nonfinite::null), where);
}

}  // namespace ff::rollout
