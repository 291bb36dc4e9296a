#include "check/check.h"

#include <array>

namespace ff {
namespace {
constexpr std::array<std::string_view, rung_count> names{"device", "compute", "dataset", "model", "step", "resume", "episode", "evaluation"};
constexpr std::array<std::string_view, rung_count> titles{
    "the device is visible",         "tensor maths is right",    "the dataset is readable and ordered",
    "the model loads and is finite", "one training step works",  "saving and restoring continues",
    "one closed loop works",         "a batch of episodes works"};
}  // namespace

std::string_view rung_name(Rung rung) { return names[static_cast<std::size_t>(rung)]; }
std::string_view rung_title(Rung rung) { return titles[static_cast<std::size_t>(rung)]; }

std::optional<Rung> rung_from_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name || name == std::to_string(i + 1)) return static_cast<Rung>(i);
  return std::nullopt;
}

std::string_view status_name(Status status) {
  switch (status) {
    case Status::pass:
      return "pass";
    case Status::warn:
      return "warn";
    case Status::fail:
      return "fail";
    case Status::skip:
      return "skip";
    case Status::error:
      return "error";
  }
  return "error";
}

CheckResult CheckResult::pass(std::string summary, Value measured) {
  CheckResult r;
  r.summary = std::move(summary);
  r.measured = std::move(measured);
  return r;
}

CheckResult CheckResult::skip(std::string why) {
  CheckResult r;
  r.status = Status::skip;
  r.summary = std::move(why);
  return r;
}

CheckResult CheckResult::warn(std::string cause, std::string summary, Value measured) {
  CheckResult r = pass(std::move(summary), std::move(measured));
  r.status = Status::warn;
  if (!cause.empty()) r.causes.push_back(std::move(cause));
  return r;
}

CheckResult CheckResult::fail(std::string cause, std::string summary, Value measured) {
  CheckResult r = warn(std::move(cause), std::move(summary), std::move(measured));
  r.status = Status::fail;
  return r;
}

CheckResult CheckResult::error(const Error& error) {
  CheckResult r;
  r.status = Status::error;
  r.summary = error.to_string();
  return r;
}

}  // namespace ff
