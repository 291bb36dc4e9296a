#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "capture/probes.h"

namespace ff::capture {
namespace {

// The ROCm family, loaders, Python, frameworks and their caches, rendering, communication, containers, batch systems.
constexpr std::array kept_variables{
    "HSA_*", "ROCR_*", "HIP_*", "HIPCC_*", "ROCM_*", "ROC_*", "ROCBLAS_*", "HIPBLASLT_*", "HIPBLAS_*", "ROCSOLVER_*", "ROCFFT_*", "ROCPROFILER_*",
    "ROCPROF_*", "ROCTRACER_*", "ROCP_*", "MIOPEN_*", "TENSILE_*", "AMD_*", "AMDGPU_*", "AMDGCN_*", "GPU_*", "GCN_*", "CK_*", "AITER_*", "DEVICE_LIB_PATH",
    "CUDA_*", "NVIDIA_*", "RCCL_*", "NCCL_*", "UCX_*", "OMPI_*", "FI_*", "GLOO_*", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK",
    "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_*",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_DEBUG", "LIBRARY_PATH", "CPATH", "PATH",
    "PYTHON*", "VIRTUAL_ENV", "CONDA_*", "MAMBA_*", "PYENV_*", "UV_*", "PIP_*",
    "TORCH*", "PYTORCH_*", "TRITON_*", "XLA_*", "JAX_*", "TF_*", "FLASH_ATTENTION_*", "VLLM_*", "SGLANG_*", "OLLAMA_*", "LLAMA_*", "GGML_*", "BNB_*",
    "HF_*", "HUGGINGFACE_*", "TRANSFORMERS_*", "DIFFUSERS_*", "LEROBOT_*", "ACCELERATE_*", "DEEPSPEED_*", "TOKENIZERS_PARALLELISM",
    "OMP_*", "MKL_*", "OPENBLAS_*", "KMP_*", "GOMP_*", "NUMBA_*", "MALLOC_*", "OPAL_*",
    "MUJOCO_*", "PYOPENGL_*", "EGL_*", "__EGL_*", "__GLX_*", "MESA_*", "LIBGL_*", "GALLIUM_*", "VK_*", "DRI_PRIME", "DISPLAY", "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "SDL_*", "LIBVA_*", "OPENCV_*", "ISAAC_*", "GYM_*",
    "TMPDIR", "TEMP", "TMP", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "container", "KUBERNETES_*", "SINGULARITY_*", "APPTAINER_*",
    "TOOLBOX_PATH", "DISTROBOX_*", "SLURM_*", "PBS_*", "FLUX_*", "WSL_*", "WSLENV", "WSL_DISTRO_NAME", "CC", "CXX", "CMAKE_*", "CFLAGS", "CXXFLAGS",
    "MPLCONFIGDIR", "WANDB_*", "FIRSTFAULT_*"};

}  // namespace

bool is_kept_variable(std::string_view name) {
  const std::string text(name);
  return std::ranges::any_of(kept_variables, [&](const char* pattern) { return ::fnmatch(pattern, text.c_str(), 0) == 0; });
}

std::string_view ProbeContext::variable(std::string_view name) const {
  const auto it = options.environment.find(name);
  return it != options.environment.end() ? std::string_view(it->second) : std::string_view{};
}

}  // namespace ff::capture
