#pragma once

#include <string>

namespace ff::gpu {

enum class VendorLibrary { cublas, rocblas, hipblaslt, miopen };
/// "rocblas_status_internal_error (6)"; "unknown status (99)" for a number that no release has. Names of the libraries' reference manuals.
[[nodiscard]] std::string status_text(VendorLibrary library, int status);

}  // namespace ff::gpu
