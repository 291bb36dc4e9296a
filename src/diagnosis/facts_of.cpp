#include "diagnosis/facts_of.h"

#include "capture/capture.h"

namespace ff::diagnosis {

std::vector<Fact> facts_of_files(const std::vector<std::string>&, const knowledge::Knowledge&) { return {}; }
std::vector<Fact> facts_of_texts(const std::vector<std::pair<std::string, std::string>>&, const knowledge::Knowledge&) { return {}; }
std::vector<Fact> facts_of_capture(const capture::Capture&, const knowledge::Knowledge&) { return {}; }

}  // namespace ff::diagnosis
