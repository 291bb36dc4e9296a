#include <algorithm>
#include <array>

#include "model/pickle.h"

namespace ff::model {
namespace {

using namespace std::string_view_literals;

// What PyTorch's own restricted unpickler takes (torch/_weights_only_unpickler.py), and how numpy rebuilds arrays.
constexpr std::array allowed = std::to_array<std::string_view>({
    "collections.OrderedDict",
    "collections.Counter",
    "collections.defaultdict",
    "_codecs.encode",
    "builtins.set",
    "builtins.frozenset",
    "builtins.bytearray",
    "builtins.bytes",
    "builtins.complex",
    "builtins.dict",
    "builtins.list",
    "builtins.tuple",
    "builtins.int",
    "builtins.float",
    "builtins.bool",
    "builtins.str",
    "builtins.slice",
    "builtins.range",
    "__builtin__.set",
    "__builtin__.frozenset",
    "__builtin__.bytearray",
    "__builtin__.complex",
    "__builtin__.dict",
    "__builtin__.list",
    "__builtin__.int",
    "__builtin__.float",
    "__builtin__.long",
    "torch.Size",
    "torch.device",
    "torch.Tensor",
    "torch.Generator",
    "torch.serialization._get_layout",
    "torch.storage._load_from_bytes",
    "torch.storage.UntypedStorage",
    "torch.storage.TypedStorage",
    "torch.UntypedStorage",
    "torch.TypedStorage",
    "torch.nn.parameter.Parameter",
    "torch.nn.parameter.UninitializedParameter",
    "torch.nn.Parameter",
    "torch._tensor._rebuild_from_type_v2",
    "torch.jit._pickle.build_intlist",
    "torch.jit._pickle.build_tensorlist",
    "torch.jit._pickle.build_doublelist",
    "torch.jit._pickle.build_boollist",
    "torch.jit._pickle.build_tensor_from_id",
    "torch.jit._pickle.restore_type_tag",
    "numpy.ndarray",
    "numpy.dtype",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "numpy.core.numeric._frombuffer",
    "numpy._core.numeric._frombuffer",
});
constexpr std::array torch_types = std::to_array<std::string_view>({
    "float16",
    "float32",
    "float64",
    "half",
    "float",
    "double",
    "bfloat16",
    "complex32",
    "complex64",
    "complex128",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
    "quint8",
    "qint8",
    "qint32",
    "quint4x2",
    "quint2x4",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "strided",
    "per_tensor_affine",
    "per_channel_affine",
});
// Any use of these while loading can run commands, import modules, or read and write files.
constexpr std::array dangerous_modules = std::to_array<std::string_view>({
    "os",          "posix",       "nt",
    "subprocess",  "sys",         "shutil",
    "socket",      "runpy",       "importlib",
    "pty",         "ctypes",      "webbrowser",
    "pip",         "code",        "codeop",
    "commands",    "pickle",      "_pickle",
    "cloudpickle", "dill",        "marshal",
    "types",       "operator",    "_operator",
    "functools",   "http",        "urllib",
    "requests",    "ssl",         "ftplib",
    "smtplib",     "signal",      "multiprocessing",
    "threading",   "asyncio",     "tempfile",
    "pathlib",     "glob",        "io",
    "_io",         "zipimport",   "imp",
    "pdb",         "bdb",         "timeit",
    "cProfile",    "profile",     "trace",
    "venv",        "ensurepip",   "distutils",
    "setuptools",  "platform",    "inspect",
    "builtins",    "__builtin__", "nturl2path",
    "pydoc",       "doctest",     "test",
    "atexit",      "gc",
});
constexpr std::array harmless_builtins =
    std::to_array<std::string_view>({"object", "print", "len", "abs", "max", "min", "sum", "sorted", "Exception"});

constexpr std::array plain = std::to_array<std::string_view>(
    {"pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib.WindowsPath", "types.SimpleNamespace", "io.BytesIO", "_io.BytesIO", "builtins.getattr"});

template <std::size_t n>
bool has(const std::array<std::string_view, n>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

Trust trust_in(std::string_view module, std::string_view name) {
  const std::string full = std::string(module) + "." + std::string(name);
  if (has(allowed, full)) return Trust::allowed;
  if (module == "torch" && (has(torch_types, name) || (name.ends_with("Storage") && name.find('.') == std::string_view::npos))) return Trust::allowed;
  if (module == "torch._utils" && name.starts_with("_rebuild_") && name.find('.') == std::string_view::npos) return Trust::allowed;
  // numpy.dtype's own classes (numpy.dtypes.Float64DType) hold no code.
  if (module == "numpy.dtypes" && name.ends_with("DType")) return Trust::allowed;
  const auto top = module.substr(0, module.find('.'));
  // Plain data of a dangerous module. getattr alone does nothing; what it is used on is listed, too, and some Python versions
  // write enumerations with it.
  if (has(plain, full)) return Trust::unknown;
  if ((module == "builtins" || module == "__builtin__") && has(harmless_builtins, name)) return Trust::unknown;
  if (has(dangerous_modules, top)) return Trust::dangerous;
  if (module == "torch.hub" || module == "torch.serialization" || module == "torch.utils.cpp_extension" || module == "numpy.f2py" ||
      module.starts_with("numpy.testing"))
    return Trust::dangerous;
  return Trust::unknown;
}

}  // namespace ff::model
