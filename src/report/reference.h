#pragma once

#include <span>
#include <string>

#include "ladder/ladder.h"

namespace ff::knowledge {
class Knowledge;
}

namespace ff::report {

/// docs/checks.md: every check of the ladder with its question, how it answers, and the causes that it can name.
std::string checks_markdown(std::span<const ladder::RungEntry> ladder);
/// docs/causes.md: every cause with its explanation, fix and proof, by layer.
std::string causes_markdown(const knowledge::Knowledge& knowledge);
/// firstfault check --list --json: {"schema":"firstfault/checks/1","checks":[{"id","rung","question","how","causes","needs"}]}.
Value checks_value(std::span<const ladder::RungEntry> ladder);

}  // namespace ff::report
