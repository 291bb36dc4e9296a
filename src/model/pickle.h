#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ff::model {

/// How far an import that a pickle names can be trusted.
enum class Trust {
  allowed,    ///< rebuilds tensors, numbers and containers: what torch.load(weights_only=True) takes, and numpy's arrays
  unknown,    ///< any other class or function; weights_only refuses it
  dangerous,  ///< known to run commands, import modules or read and write files
};

struct PickleImport {
  std::string name;      ///< "torch._utils._rebuild_tensor_v2"; "?" in a part that is computed while loading
  std::uint64_t at = 0;  ///< byte of the pickle
  Trust trust = Trust::unknown;
};

/// A storage that a pickle refers to: the tuple ('storage', torch.FloatStorage, key, location, elements).
struct PickleStorage {
  std::string type;  ///< "torch.FloatStorage"
  std::string key, location;
  std::int64_t elements = -1;
};

/// A tensor in a dictionary of the pickle.
struct PickleTensor {
  std::string name;         ///< its key in the innermost dictionary
  std::size_t storage = 0;  ///< index into `storages`
  std::int64_t offset = 0;  ///< elements
  std::vector<std::int64_t> shape, stride;
};

struct PickleSurvey {
  std::uint64_t size = 0;  ///< bytes up to and including STOP
  int protocol = 0;
  std::vector<PickleImport> imports;  ///< each name once, in the order of the file
  std::vector<PickleStorage> storages;
  std::vector<PickleTensor> tensors;
  std::vector<std::string> string_list;  ///< when the result is a list of texts (the storage keys of PyTorch's old format)
};

/// Follows the instructions of one pickle (protocols 0 to 5) as data: nothing is imported, called or built. Errors: cut
/// short, unknown instruction, too few values on the stack. `where` names the input in errors.
/// Instructions: CPython Lib/pickletools.py.
Result<PickleSurvey> read_pickle(std::string_view bytes, std::string_view where);

/// The trust in one import.
[[nodiscard]] Trust trust_in(std::string_view module, std::string_view name);

}  // namespace ff::model
