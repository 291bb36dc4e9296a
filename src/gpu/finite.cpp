#include "gpu/finite.h"

#include <algorithm>
#include <array>

#include "gpu/kernels.h"

namespace ff::gpu {
namespace {

constexpr std::array<std::uint64_t, 2> nothing{0, ~0ull};

}  // namespace

Result<FiniteScan> FiniteScan::make(Device& device) {
  FiniteScan scan(device);
  auto module = device.compile(*kernel_source("finite"));
  if (!module) return std::unexpected(module.error());
  scan.module_ = std::move(*module);
  auto buffer = device.buffer(sizeof nothing);
  if (!buffer) return std::unexpected(buffer.error());
  scan.result_ = std::move(*buffer);
  if (auto ok = device.copy_in(scan.result_.address(), nothing.data(), sizeof nothing); !ok) return std::unexpected(ok.error());
  return scan;
}

Result<void> FiniteScan::add(Type type, Address address, std::uint64_t size_bytes, Stream stream) {
  if (address % 16 != 0 || size_bytes % 16 != 0) return fail("finite scan: address and size must be multiples of 16 bytes");
  if (size_bytes == 0) return {};
  constexpr std::array names{"finite_f32", "finite_f16", "finite_bf16", "finite_f64", "finite_e5m2", "finite_e4m3", "finite_fnuz", "finite_e8m0"};
  auto function = module_->function(names[static_cast<std::size_t>(type)]);
  if (!function) return std::unexpected(function.error());
  const std::uint64_t vectors = size_bytes / 16;
  const std::uint64_t most = device_->properties().api == Api::cpu ? 8 : device_->properties().compute_units * 16ull;
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>((vectors + 1023) / 1024, 1, most));
  return device_->launch(*function, {blocks, 1, 1}, {256, 1, 1}, 0, Arguments<Address, Address, std::uint64_t>(result_.address(), address, vectors),
                         stream);
}

Result<FiniteScan::Count> FiniteScan::take(Stream stream) {
  if (auto ok = device_->wait(stream); !ok) return std::unexpected(ok.error());
  std::array<std::uint64_t, 2> found{};
  if (auto ok = device_->copy_out(found.data(), result_.address(), sizeof found); !ok) return std::unexpected(ok.error());
  if (auto ok = device_->copy_in(result_.address(), nothing.data(), sizeof nothing); !ok) return std::unexpected(ok.error());
  return Count{found[0], found[1]};
}

}  // namespace ff::gpu
