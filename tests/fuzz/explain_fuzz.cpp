// Any bytes as evidence: cleaning, scanning with the whole knowledge, joining, judging, both reports.
#include <cstdint>
#include <string>

#include "diagnosis/explain.h"
#include "diagnosis/scanner.h"
#include "diagnosis/text_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ff::diagnosis;
  const auto& knowledge = ff::knowledge::Knowledge::built_in();
  static Scanner scanner = std::move(*Scanner::make(knowledge));
  const Explanation explanation = explain_texts(scanner, {{"input", std::string(reinterpret_cast<const char*>(data), size)}}, knowledge);
  (void)text_report(explanation, knowledge, {});
  (void)ff::to_json(to_document(explanation, knowledge, true));
  return 0;
}
