// The knowledge compiler: checks a directory of knowledge and writes it in the compiled form that is linked into the
// program. The build runs it; it prints every problem as file:line: entry: field: what, and fails when there is one.
#include <fstream>
#include <iostream>

#include "knowledge/blob.h"
#include "knowledge/load.h"
#include "knowledge/pattern.h"

int main(int argc, char** argv) {
  using namespace ff::knowledge;
  if (argc != 3) {
    std::cerr << "usage: kbc DIRECTORY OUTPUT\n";
    return 2;
  }
  Problems problems;
  Bundle bundle;
  load(read_directory(argv[1], problems), bundle, problems);
  if (problems.empty()) check(bundle, problems);
  if (problems.empty() && bundle.date.empty()) problems.push_back(ff::Error{"is missing", "meta.yaml: date", "", 3});
  if (problems.empty())
    if (auto compiled = compile_patterns(bundle); !compiled) problems.push_back(compiled.error());
  if (!problems.empty()) {
    for (const ff::Error& problem : problems) std::cerr << problem.to_string() << "\n";
    std::cerr << problems.size() << " problems in " << argv[1] << "\n";
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary | std::ios::trunc);
  out << write_blob(bundle);
  out.close();
  if (!out) {
    std::cerr << argv[2] << ": cannot be written\n";
    return 3;
  }
  return 0;
}
