// The knowledge compiler: checks a directory of knowledge and writes it in the compiled form that is linked into the
// program. The build runs it; it prints every problem as file:line: entry: field: what, and fails when there is one.
#include <fstream>
#include <iostream>
#include <string_view>

#include "knowledge/blob.h"
#include "knowledge/load.h"
#include "knowledge/pattern.h"

int main(int argc, char** argv) {
  using namespace ff::knowledge;
  const bool list = argc == 4 && std::string_view(argv[3]) == "--literals";
  if (argc != 3 && !list) {
    std::cerr << "usage: kbc DIRECTORY OUTPUT [--literals]\n";
    return 2;
  }
  Problems problems;
  Bundle bundle;
  load(read_directory(argv[1], problems), bundle, problems);
  check(bundle, problems);
  if (problems.empty() && bundle.date.empty()) problems.push_back(ff::Error{"is missing", "meta.yaml: date", "", 3});
  if (problems.empty())
    if (auto compiled = compile_patterns(bundle); !compiled) problems.push_back(compiled.error());
  if (!problems.empty()) {
    for (const ff::Error& problem : problems) std::cerr << problem.to_string() << "\n";
    std::cerr << problems.size() << " problems in " << argv[1] << "\n";
    return 1;
  }
  if (list) {  // what a line must hold for a signal to be tried: to find patterns that are tried on too many lines
    const auto print = [&](const Signal& signal, const Pattern& pattern) {
      for (std::uint32_t id : pattern.literals)
        std::cout << (signal.in_kernel_log ? "kernel\t" : "other\t") << signal.id << "\t" << (pattern.numbers_matter ? "numbers" : "-") << "\t"
                  << bundle.literals[id] << "\n";
    };
    for (const Signal& signal : bundle.signals) {
      for (const Pattern& pattern : signal.match) print(signal, pattern);
      for (const Follow& follow : signal.follow)
        for (const Pattern& pattern : follow.match) print(signal, pattern);
    }
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
