#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elf/elf.h"

namespace ff::elf {

/// Versions that a file needs of one library: "libc.so.6" -> "GLIBC_2.34".
struct VersionNeed {
  std::string_view library;
  struct Version {
    std::string_view name;
    bool weak = false;  ///< the loader does not insist
  };
  std::vector<Version> versions;
};

/// What the dynamic section tells the loader. All views point into the file's bytes.
struct Dynamic {
  bool present = false;
  std::vector<std::string_view> needed;
  std::string_view soname, rpath, runpath;
  bool nodeflib = false;  ///< DF_1_NODEFLIB: default directories are not searched
  bool pie = false;
  std::vector<VersionNeed> version_needs;
  std::vector<std::string_view> version_definitions;  ///< "GLIBCXX_3.4.30"; the base entry (the file's own name) is left out
};
/// Reads PT_DYNAMIC as the loader does: its tables are found by address, not by section name.
Dynamic read_dynamic(const File& file);

}  // namespace ff::elf
