#include "base/file_kind.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace ff {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  FileKind kind;
};

constexpr std::array magics{Magic{"\x1a\x45\xdf\xa3"sv, {"a Matroska or WebM video", true}},
                            Magic{"FLV\1"sv, {"a Flash video", true}},
                            Magic{"\0\0\1\xba"sv, {"an MPEG program stream", true}},
                            Magic{"\x30\x26\xb2\x75\x8e\x66\xcf\x11"sv, {"a Windows Media video", true}},
                            Magic{"OggS"sv, {"an Ogg file", true}},
                            Magic{"GIF8"sv, {"a GIF picture", true}},
                            Magic{"\x89PNG\r\n\x1a\n"sv, {"a PNG picture"}},
                            Magic{"\xff\xd8\xff"sv, {"a JPEG picture"}},
                            Magic{"BM"sv, {"a BMP picture"}},
                            Magic{"II*\0"sv, {"a TIFF picture"}},
                            Magic{"MM\0*"sv, {"a TIFF picture"}},
                            Magic{"ID3"sv, {"an MP3 sound"}},
                            Magic{"fLaC"sv, {"a FLAC sound"}},
                            Magic{"PAR1"sv, {"a Parquet file"}},
                            Magic{"ARROW1"sv, {"an Arrow file"}},
                            Magic{"\x89HDF\r\n"sv, {"an HDF5 file"}},
                            Magic{"\x93NUMPY"sv, {"a NumPy array"}},
                            Magic{"PK\3\4"sv, {"a zip archive"}},
                            Magic{"\x1f\x8b"sv, {"a gzip file"}},
                            Magic{"\x28\xb5\x2f\xfd"sv, {"a zstd file"}},
                            Magic{"\xfd"
                                  "7zXZ"sv,
                                  {"an xz file"}},
                            Magic{"BZh"sv, {"a bzip2 file"}},
                            Magic{"%PDF"sv, {"a PDF"}},
                            Magic{"SQLite format 3"sv, {"an SQLite database"}},
                            Magic{"\x7f"
                                  "ELF"sv,
                                  {"an ELF program or library"}}};

}  // namespace

FileKind file_kind(std::string_view head) {
  for (const auto& magic : magics)
    if (head.starts_with(magic.bytes)) return magic.kind;
  if (head.starts_with("RIFF") && head.size() >= 12) {
    const auto form = head.substr(8, 4);
    if (form == "AVI ") return {"an AVI video", true};
    if (form == "WEBP") return {"a WebP picture"};
    return {form == "WAVE" ? "a WAV sound" : "a RIFF file"};
  }
  constexpr std::size_t packet = 188;  // of an MPEG transport stream
  if (head.size() > packet && head[0] == 'G' && head[packet] == 'G') return {"an MPEG transport stream", true};
  // safetensors: the length of a JSON header, then the header.
  if (head.size() > 9 && head.substr(5, 3) == "\0\0\0"sv && head[8] == '{') return {"a safetensors file"};
  if (!head.empty() && std::ranges::all_of(head, [](char c) { return c == '\0'; })) return {"a file of zero bytes (never written, or a sparse copy)"};
  if (head.size() < 4) return {};
  // The last character may be cut in the middle.
  const bool text = std::ranges::none_of(head, [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u == 0x7f || (u < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1b');
  });
  if (!text) return {};
  std::size_t cut = 0;
  while (cut < 4 && cut < head.size() && (static_cast<unsigned char>(head[head.size() - 1 - cut]) & 0xc0) == 0x80) ++cut;
  if (cut > 0 && cut < head.size()) ++cut;
  const auto whole = head.substr(0, head.size() - cut);
  if (to_utf8(whole) != whole) return {};
  const auto begin = trim(head);
  return {begin.starts_with('{') || begin.starts_with('[') ? "a JSON text" : "a text"};
}

}  // namespace ff
