#pragma once

#include "base/error.h"
#include "base/value.h"
#include "elf/bytes.h"

namespace ff::elf {

/// Nesting deeper than this is refused (AMDGPU metadata has 5 levels).
inline constexpr std::size_t msgpack_depth_limit = 32;

/// Reads one msgpack document: the metadata note of a code object, a kpack table of contents. Map keys become text.
/// Nothing is allocated for what a length field claims, only for what is really there; bytes after the document are ignored.
Result<Value> read_msgpack(Bytes bytes);

}  // namespace ff::elf
