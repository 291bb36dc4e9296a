#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/dtype.h"
#include "model/pickle.h"

namespace ff::model {

/// The formats in which PyTorch saves (torch/serialization.py).
enum class TorchFormat {
  zip,          ///< since 1.6
  torchscript,  ///< a zip with a program in it (torch.jit.save)
  legacy,       ///< before 1.6: pickles in a row, then the data
  tar,          ///< before 0.2
  pickle,       ///< a plain pickle
};
[[nodiscard]] std::string_view torch_format_name(TorchFormat format);

/// The data of one storage, or of what of it is in the file.
struct TorchStorage {
  std::string key;             ///< name of the member below data/
  std::string type;            ///< "torch.FloatStorage"; empty: no pickle refers to it
  std::optional<Dtype> dtype;  ///< nothing for types that safetensors does not have
  std::string_view bytes;      ///< of the file that was read
  std::string tensor;          ///< the first tensor that uses it; empty: not known
};

struct TorchFile {
  TorchFormat format = TorchFormat::zip;
  std::vector<PickleImport> imports;  ///< of all pickles; TorchScript's own classes (__torch__…) left out
  std::vector<PickleTensor> tensors;  ///< `storage` is an index into `storages`
  std::vector<TorchStorage> storages;
  std::vector<Error> damage;  ///< what is wrong with it: the first is the reason
  bool truncated = false;     ///< the first of `damage` is that bytes are missing
  std::uint64_t members = 0;  ///< of the zip
};

/// Is it one of PyTorch's formats, by its first bytes?
[[nodiscard]] bool looks_like_torch(std::string_view bytes);
/// Reads it as data; nothing is executed or unpacked except small deflated members. Damage is part of the answer.
TorchFile read_torch_file(std::string_view bytes, std::string_view where, bool check_crc);

}  // namespace ff::model
