#pragma once

#include <string>
#include <utility>
#include <vector>

#include "diagnosis/evidence.h"
#include "knowledge/knowledge.h"

namespace ff::capture {
class Capture;
}

namespace ff::diagnosis {

/// Facts that handed-over files show (rocminfo, pip list, id, environment ...), under the names of facts::named_facts.
std::vector<Fact> facts_of_files(const std::vector<std::string>& files, const knowledge::Knowledge& knowledge);
std::vector<Fact> facts_of_texts(const std::vector<std::pair<std::string, std::string>>& files, const knowledge::Knowledge& knowledge);
std::vector<Fact> facts_of_capture(const capture::Capture& capture, const knowledge::Knowledge& knowledge);

}  // namespace ff::diagnosis
