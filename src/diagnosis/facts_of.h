#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/evidence.h"
#include "knowledge/knowledge.h"

namespace ff::capture {
class Capture;
}

namespace ff::diagnosis {

/// Facts stand in small files; a log of gigabytes is only scanned.
inline constexpr std::size_t max_fact_file_bytes = 8u << 20;

/// Facts that handed-over files show (rocminfo, pip list, id, environment ...), under the names of facts::named_facts.
std::vector<Fact> facts_of_files(const std::vector<std::string>& files, const knowledge::Knowledge& knowledge);
std::vector<Fact> facts_of_texts(const std::vector<std::pair<std::string, std::string>>& files, const knowledge::Knowledge& knowledge);
std::vector<Fact> facts_of_capture(const capture::Capture& capture, const knowledge::Knowledge& knowledge);

}  // namespace ff::diagnosis
