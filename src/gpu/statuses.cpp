#include "gpu/statuses.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace ff::gpu {
namespace {

struct Status {
  int number;
  std::string_view name;
};

constexpr Status cublas[]{{1, "CUBLAS_STATUS_NOT_INITIALIZED"}, {3, "CUBLAS_STATUS_ALLOC_FAILED"},   {7, "CUBLAS_STATUS_INVALID_VALUE"},
                          {8, "CUBLAS_STATUS_ARCH_MISMATCH"},   {11, "CUBLAS_STATUS_MAPPING_ERROR"}, {13, "CUBLAS_STATUS_EXECUTION_FAILED"},
                          {14, "CUBLAS_STATUS_INTERNAL_ERROR"}, {15, "CUBLAS_STATUS_NOT_SUPPORTED"}, {16, "CUBLAS_STATUS_LICENSE_ERROR"}};
constexpr Status rocblas[]{
    {1, "rocblas_status_invalid_handle"},       {2, "rocblas_status_not_implemented"},      {3, "rocblas_status_invalid_pointer"},
    {4, "rocblas_status_invalid_size"},         {5, "rocblas_status_memory_error"},         {6, "rocblas_status_internal_error"},
    {7, "rocblas_status_perf_degraded"},        {8, "rocblas_status_size_query_mismatch"},  {9, "rocblas_status_size_increased"},
    {10, "rocblas_status_size_unchanged"},      {11, "rocblas_status_invalid_value"},       {12, "rocblas_status_continue"},
    {13, "rocblas_status_check_numerics_fail"}, {14, "rocblas_status_excluded_from_build"}, {15, "rocblas_status_arch_mismatch"}};
constexpr Status hipblaslt[]{{1, "HIPBLAS_STATUS_NOT_INITIALIZED"}, {2, "HIPBLAS_STATUS_ALLOC_FAILED"},     {3, "HIPBLAS_STATUS_INVALID_VALUE"},
                             {4, "HIPBLAS_STATUS_MAPPING_ERROR"},   {5, "HIPBLAS_STATUS_EXECUTION_FAILED"}, {6, "HIPBLAS_STATUS_INTERNAL_ERROR"},
                             {7, "HIPBLAS_STATUS_NOT_SUPPORTED"},   {8, "HIPBLAS_STATUS_ARCH_MISMATCH"},    {9, "HIPBLAS_STATUS_HANDLE_IS_NULLPTR"},
                             {10, "HIPBLAS_STATUS_INVALID_ENUM"},   {11, "HIPBLAS_STATUS_UNKNOWN"}};
// Releases before ROCm 5.3 end at 8, those before 6.1 at 9.
constexpr Status miopen[]{{1, "miopenStatusNotInitialized"},  {2, "miopenStatusInvalidValue"},  {3, "miopenStatusBadParm"},
                          {4, "miopenStatusAllocFailed"},     {5, "miopenStatusInternalError"}, {6, "miopenStatusNotImplemented"},
                          {7, "miopenStatusUnknownError"},    {8, "miopenStatusUnsupportedOp"}, {9, "miopenStatusGpuOperationsSkipped"},
                          {10, "miopenStatusVersionMismatch"}};

std::span<const Status> statuses(VendorLibrary library) {
  switch (library) {
    case VendorLibrary::cublas:
      return cublas;
    case VendorLibrary::rocblas:
      return rocblas;
    case VendorLibrary::hipblaslt:
      return hipblaslt;
    case VendorLibrary::miopen:
      return miopen;
  }
  return {};
}

}  // namespace

std::string status_text(VendorLibrary library, int status) {
  const auto all = statuses(library);
  const auto found = std::ranges::find(all, status, &Status::number);
  return fmt::format("{} ({})", found != all.end() ? found->name : "unknown status", status);
}

}  // namespace ff::gpu
