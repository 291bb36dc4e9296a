#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace ff::gpu {

enum class Element { i8, i32, f16, bf16, f32, f64 };
enum class Reduction { sum, max };

/// The vendor's collectives, NCCL or RCCL (whose interface is NCCL's): one process, one rank a device. Every call takes one
/// address and one stream a rank, in the order of the devices; it returns when all ranks were put on their streams.
/// Errors name the call and the library's own text.
class Collectives {
 public:
  /// One communicator over all devices. "unsupported: ..." on the CPU.
  static Result<std::unique_ptr<Collectives>> open(std::span<Device* const> devices, const OpenOptions& options = {});
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  using Addresses = std::span<const Address>;
  using Streams = std::span<const Stream>;
  /// `count` elements of every rank, combined, to every rank.
  Result<void> all_reduce(Addresses in, Addresses out, std::size_t count, Element element, Reduction op, Streams streams);
  /// The `count` elements of `root` to every rank.
  Result<void> broadcast(Addresses in, Addresses out, std::size_t count, Element element, int root, Streams streams);
  /// `count` elements of every rank, one after the other, to every rank.
  Result<void> all_gather(Addresses in, Addresses out, std::size_t count, Element element, Streams streams);
  /// ranks * `count` elements of every rank, combined; rank r gets the r-th `count`.
  Result<void> reduce_scatter(Addresses in, Addresses out, std::size_t count, Element element, Reduction op, Streams streams);
  /// ranks * `count` elements of every rank: the s-th `count` of rank r become the r-th of rank s. By sends and receives.
  Result<void> all_to_all(Addresses in, Addresses out, std::size_t count, Element element, Streams streams);

  [[nodiscard]] const std::string& library() const { return library_; }  ///< "NCCL 2.27.5 (libnccl.so.2)"
  [[nodiscard]] std::size_t ranks() const { return communicators_.size(); }

 private:
  struct Table;
  Collectives();
  template <class Each>
  Result<void> together(const char* const& call, Each each);
  std::unique_ptr<Table> table_;
  std::vector<void*> communicators_;
  std::string library_;
};

/// Bytes of one element.
[[nodiscard]] std::size_t element_size(Element element);

}  // namespace ff::gpu
