#include "facts/components.h"

#include <array>
#include <cctype>
#include <optional>

#include "base/text.h"

namespace ff::facts {
namespace {

struct Known {
  std::string_view part;  ///< of the path: a directory that holds the component's files, or the start of a file name
  bool directory;
  std::string_view id, name;
  int order;
  bool fallback;
  std::string_view without;
};

// In the order in which a path is tried; `order` is when a program needs the component.
constexpr std::array table = std::to_array<Known>({
    {"rocblas/library", true, "rocblas", "rocBLAS (Tensile)", 2, false,
     "matrix multiplication ends the process: rocBLAS cannot read its library for this GPU"},
    {"hipblaslt/library", true, "hipblaslt", "hipBLASLt (Tensile)", 3, true, "matrix multiplication falls back to rocBLAS"},
    {"hipsparselt/library", true, "hipsparselt", "hipSPARSELt (Tensile)", 20, false, "structured-sparse matrix multiplication fails"},
    {"miopen/db", true, "miopen-db", "MIOpen databases", 5, true, "convolutions are searched and compiled at first use: slow starts"},
    {"aotriton.images", true, "aotriton", "AOTriton attention images", 6, true, "scaled_dot_product_attention falls back to slower kernels"},
    {"aotriton/kernels", true, "aotriton", "AOTriton attention images", 6, true, "scaled_dot_product_attention falls back to slower kernels"},
    {".triton/cache", true, "triton-cache", "Triton cache", 30, true, "the kernels are compiled again"},
    {"torchinductor", true, "inductor-cache", "torch.compile cache", 30, true, "the kernels are compiled again"},
    {"libtorch_hip", false, "torch", "PyTorch's own kernels", 1, false, "every tensor operation on the GPU fails: no kernel image"},
    {"libtorch_cuda", false, "torch", "PyTorch's own kernels", 1, false, "every tensor operation on the GPU fails: no kernel image"},
    {"librocblas", false, "librocblas", "rocBLAS (its own kernels)", 2, false, "vector operations and conversions of rocBLAS fail"},
    {"libhipblaslt", false, "libhipblaslt", "hipBLASLt (its own kernels)", 3, true, "matrix multiplication falls back to rocBLAS"},
    {"libMIOpen", false, "libmiopen", "MIOpen", 4, false, "convolutions, pooling and batch normalisation fail"},
    {"libaotriton", false, "libaotriton", "AOTriton", 6, true, "scaled_dot_product_attention falls back to slower kernels"},
    {"librccl", false, "librccl", "RCCL", 10, false, "multi-GPU communication fails"},
    {"librocsolver", false, "librocsolver", "rocSOLVER", 11, false, "linear solvers fail"},
    {"librocsparse", false, "librocsparse", "rocSPARSE", 12, false, "sparse operations fail"},
    {"librocfft", false, "librocfft", "rocFFT", 13, false, "Fourier transforms fail"},
    {"librocrand", false, "librocrand", "rocRAND", 14, false, "its random generators fail"},
});

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }  // npos + 1 == 0

/// Where the directory "rocblas/library" of a path ends, nothing when it is not there. A version may stand inside it, as Debian has it:
/// "rocblas/4.4.1/library".
std::optional<std::size_t> directory_end(std::string_view path, std::string_view part) {
  if (const auto at = path.rfind(std::string(part) + "/"); at != std::string_view::npos) return at + part.size();
  const auto slash = part.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string first(part.substr(0, slash + 1)), second = std::string(part.substr(slash)) + "/";
  for (auto at = path.rfind(second); at != std::string_view::npos && at != 0; at = path.rfind(second, at - 1)) {
    const auto before = path.rfind('/', at - 1);
    if (before == std::string_view::npos) return std::nullopt;
    const auto version = path.substr(before + 1, at - before - 1);
    const bool numbers = !version.empty() && version.find_first_not_of("0123456789.") == std::string_view::npos;
    if (numbers && path.substr(0, before + 1).ends_with(first)) return at + second.size() - 1;
  }
  return std::nullopt;
}

/// Where a library has a file for each target, the name that they share: "libMIOpenCKconv_*.so" of "libMIOpenCKconv_gfx942.so".
std::optional<std::string> shared_name(std::string_view name) {
  const auto at = name.find("_gfx");
  if (at == std::string_view::npos) return std::nullopt;
  auto end = at + 4;
  while (end < name.size() && std::isxdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  if (end == at + 4) return std::nullopt;
  // "gfx90a_xnackp", "gfx90a-xnack+", "gfx1250_strict", "gfx11-generic": what belongs to the target.
  const auto dot = name.find('.', end);
  const auto rest = name.substr(end, dot == std::string_view::npos ? std::string_view::npos : dot - end);
  if (!rest.empty() && !contains(rest, "xnack") && !contains(rest, "sramecc") && !contains(rest, "strict") && !contains(rest, "generic"))
    return std::nullopt;
  return std::string(name.substr(0, at + 1)) + "*" + std::string(dot == std::string_view::npos ? std::string_view{} : name.substr(dot));
}

}  // namespace

Component component_of(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const auto& row : table) {
    if (row.directory) {
      const auto found = directory_end(path, row.part);
      const bool there = row.part == "torchinductor" ? contains(path, "/torchinductor_") : found.has_value();
      if (!there) continue;
      const auto end = found.value_or(path.rfind('/'));
      return {std::string(row.id), std::string(row.name), std::string(path.substr(0, end)), row.order, row.fallback, std::string(row.without)};
    }
    if (name.starts_with(row.part))
      // "libtorch_hip_extra.so" is another library.
      if (name.size() == row.part.size() || !(std::isalnum(static_cast<unsigned char>(name[row.part.size()])) != 0 || name[row.part.size()] == '_'))
        return {std::string(row.id), std::string(row.name), std::string(path), row.order, row.fallback, std::string(row.without)};
  }
  if (const auto shared = shared_name(name)) {
    std::string root = std::string(path.substr(0, path.size() - name.size())) + *shared;
    if (name.starts_with("libMIOpenCK"))
      return {"miopen-ck", "Composable Kernel of MIOpen", std::move(root), 5, true, "convolutions use MIOpen's other solvers, which may be slower"};
    return {*shared, *shared, std::move(root), 100, false, "its GPU functions fail when they are called"};
  }
  return {std::string(name), std::string(name), std::string(path), 100, false, "its GPU functions fail when they are called"};
}

}  // namespace ff::facts
