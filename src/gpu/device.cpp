#include "gpu/device.h"

namespace ff::gpu {

std::string_view api_name(Api api) { return api == Api::cpu ? "cpu" : api == Api::cuda ? "cuda" : "hip"; }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (device_ != nullptr && address_ != 0) (void)device_->release(address_);
    device_ = std::exchange(other.device_, nullptr);
    address_ = std::exchange(other.address_, 0);
    size_bytes_ = other.size_bytes_;
  }
  return *this;
}

Buffer::~Buffer() {
  if (device_ != nullptr && address_ != 0) (void)device_->release(address_);
}

Result<Buffer> Device::buffer(std::size_t size_bytes) {
  auto address = allocate(size_bytes);
  if (!address) return std::unexpected(address.error());
  return Buffer(this, *address, size_bytes);
}

Result<void> Device::copy_from_peer(Address, Device&, Address, std::size_t) { return fail("unsupported: there is one device"); }
Result<bool> Device::reach(Device&) { return false; }

Result<std::string> compile_only_cuda(const KernelSource& source, const std::string& target, const OpenOptions& options);
Result<std::string> compile_only_hip(const KernelSource& source, const std::string& target, unsigned wavefront, const OpenOptions& options);

Result<std::string> compile_only(Api api, const KernelSource& source, const std::string& target, unsigned wavefront, const OpenOptions& options) {
  switch (api) {
    case Api::cuda:
      return compile_only_cuda(source, target, options);
    case Api::hip:
      return compile_only_hip(source, target, wavefront, options);
    case Api::cpu:
      break;
  }
  return fail("the CPU's kernels are compiled into the program");
}

Opened open(Api api, const OpenOptions& options) {
  switch (api) {
    case Api::cpu:
      return open_cpu(options);
    case Api::cuda:
      return open_cuda(options);
    case Api::hip:
      return open_hip(options);
  }
  return std::unexpected(OpenFailure{OpenStage::library, Error{"no such API", "", "", 3}});
}

}  // namespace ff::gpu
