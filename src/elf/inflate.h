#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/error.h"

namespace ff::elf {

enum class DeflateFrame { zlib, raw };

/// Decompresses deflated data piece by piece, each of at most `piece_bytes`, until `write` returns false or the data ends.
/// Returns the bytes of `input` that were used. Errors: damaged data, data that ends too early.
Result<std::uint64_t> inflate_pieces(std::string_view input, DeflateFrame frame, std::size_t piece_bytes,
                                     const std::function<bool(std::string_view)>& write);

/// The same for one zstd frame; what follows the frame is not looked at.
Result<std::uint64_t> inflate_zstd_pieces(std::string_view input, const std::function<bool(std::string_view)>& write);

}  // namespace ff::elf
