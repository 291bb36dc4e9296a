// A policy's directory, file by file (tests/fuzz/folder.h): opened, surveyed, compared with the dataset below "dataset/".
#include "fuzz/folder.h"
#include "knowledge/knowledge.h"
#include "model/survey.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto root = ff::fuzz::fill_folder(data, size);
  (void)ff::model::survey(root.string(), (root / "dataset").string(), ff::knowledge::Knowledge::built_in());
  return 0;
}
