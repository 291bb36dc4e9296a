#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "knowledge/blob.h"
#include "knowledge/load.h"

namespace ff::knowledge {

/// What Knowledge holds. `diagnosis` reads signals and causes from `bundle`, and the literal database from `database`.
struct Knowledge::Impl {
  Bundle bundle;           ///< without tables and databases
  std::string owned_blob;  ///< what tables and databases point into, when it is not part of the program
  std::string owned_database, owned_kernel_database, owned_origin_database;
  std::string_view database, kernel_database, origin_database;  ///< serialised

  struct Table {
    std::string_view bytes;
    mutable std::once_flag once;
    mutable Value value;
  };
  std::map<std::string, Table, std::less<>> tables;
};

/// Knowledge over a compiled blob that outlives it.
Result<std::shared_ptr<const Knowledge>> open_blob(std::string_view blob);
/// The same, keeping the bytes.
Result<std::shared_ptr<const Knowledge>> open_owned_blob(std::string blob);
/// Knowledge from a loaded and checked bundle; `compile_patterns` must have run.
std::shared_ptr<const Knowledge> from_bundle(Bundle bundle);

/// The compiled form of the built-in knowledge.
std::string_view built_in_blob();

/// base (already compiled, may be empty) with what the files say, checked as far as it goes: all problems of the files are written down.
Result<Bundle> joined(std::string_view base_blob, const std::vector<File>& files, Problems& problems);
/// A checked bundle as knowledge. `blob`: gets the compiled form.
Result<std::shared_ptr<const Knowledge>> compiled(Bundle bundle, std::string* blob = nullptr);

/// base (already compiled, may be empty) plus the files of directories: everything that `kb check` and `--kb` do but the cache.
/// Problems of the files are written to `problems`; then nothing is returned. `blob`: gets the compiled form.
Result<std::shared_ptr<const Knowledge>> extend(std::string_view base_blob, const std::vector<File>& files, Problems& problems,
                                                std::string* blob = nullptr);
/// The same with the cache of compiled knowledge in between.
Result<std::shared_ptr<const Knowledge>> extend_cached(std::string_view base_blob, const std::vector<std::string>& directories);

}  // namespace ff::knowledge
