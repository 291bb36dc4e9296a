#include "elf/inflate.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>

namespace ff::elf {

Result<std::uint64_t> inflate_pieces(std::string_view input, DeflateFrame frame, std::size_t piece_bytes,
                                     const std::function<bool(std::string_view)>& write) {
  z_stream stream{};
  if (inflateInit2(&stream, frame == DeflateFrame::raw ? -MAX_WBITS : MAX_WBITS) != Z_OK) return fail("zlib could not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, &inflateEnd);
  std::string piece(piece_bytes, '\0');
  std::size_t given = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      // zlib counts in 32 bits.
      const std::size_t part = std::min<std::size_t>(input.size() - given, std::size_t{1} << 20);
      if (part == 0) return fail("the compressed data ends too early");
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data() + given));
      stream.avail_in = static_cast<uInt>(part);
      given += part;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      return fail(fmt::format("the zlib data is damaged: {}", stream.msg != nullptr ? stream.msg : "unknown error"));
    if (!write(std::string_view(piece).substr(0, piece.size() - stream.avail_out))) break;
  }
  return static_cast<std::uint64_t>(given - stream.avail_in);
}

Result<std::uint64_t> inflate_zstd_pieces(std::string_view input, const std::function<bool(std::string_view)>& write) {
  constexpr std::size_t piece_bytes = std::size_t{1} << 16;
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context) return fail("zstd could not start");
  ZSTD_inBuffer in{input.data(), input.size(), 0};
  std::string piece(piece_bytes, '\0');
  while (true) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const std::size_t before = in.pos;
    const std::size_t status = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(status) != 0) return fail(fmt::format("the zstd data is damaged: {}", ZSTD_getErrorName(status)));
    if (!write(std::string_view(piece).substr(0, out.pos))) break;
    if (status == 0) break;  // the frame is complete; what follows belongs to somebody else
    if (out.pos == 0 && in.pos == before) return fail("the compressed data ends too early");
  }
  return static_cast<std::uint64_t>(in.pos);
}

}  // namespace ff::elf
