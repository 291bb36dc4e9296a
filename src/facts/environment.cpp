#include "facts/subjects.h"

namespace ff::facts {

void read_environment(Machine& machine, const Evidence& evidence) {
  const Value& env = evidence.capture().probe("env");
  if (!env.is_object()) return;
  for (const auto& [name, value] : env.members()) {
    if (!value.is_text()) continue;
    machine.env[name] = {std::string(value.as_text()), evidence.origin("probe/env", 0, name + "=" + std::string(value.as_text()))};
  }
  // A handed-over list may be an excerpt.
  if (evidence.capture().kind() != "loose") machine.env_known = {true, evidence.origin("probe/env", 0, {})};
}

}  // namespace ff::facts
