#include "diagnosis/not_text.h"

#include <algorithm>
#include <array>

namespace ff::diagnosis {

namespace {

struct Magic {
  std::size_t at;
  std::string_view bytes, what, remedy;
};

constexpr std::string_view as_text = "give the text itself: copy it from the terminal or the log file";
constexpr std::string_view model = "firstfault model check reads weights and checkpoints";
constexpr std::string_view media = "firstfault video check reads videos";

// First bytes as the formats define them.
constexpr std::array magics = {
    Magic{0, "PAR1", "a Parquet file", "firstfault data check reads a dataset's directory"},
    Magic{0, "PK\x03\x04", "a ZIP archive (a PyTorch checkpoint or a wheel is one)",
          "firstfault model check reads a checkpoint, firstfault code a wheel; unpack other archives"},
    Magic{0, "GGUF", "a GGUF model", model},
    Magic{0, "\x80\x02", "a Python pickle", model},
    Magic{0, "\x80\x03", "a Python pickle", model},
    Magic{0, "\x80\x04", "a Python pickle", model},
    Magic{0, "\x80\x05", "a Python pickle", model},
    Magic{0, "\x89HDF\r\n", "an HDF5 file", as_text},
    Magic{0, "\x93NUMPY", "a NumPy array", as_text},
    Magic{0, "SQLite format 3", "an SQLite database", as_text},
    Magic{0, "LPKSHHRH", "a journal of systemd in its own format", "journalctl --file FILE -o short-precise > journal.txt, then give journal.txt"},
    Magic{0, "\x89PNG", "a picture", as_text},
    Magic{0, "\xFF\xD8\xFF", "a picture", as_text},
    Magic{0, "GIF8", "a picture", as_text},
    Magic{0, "%PDF-", "a PDF document", "pdftotext FILE gives its text"},
    Magic{4, "ftyp", "a video", media},
    Magic{0, "\x1A\x45\xDF\xA3", "a video", media},
};

bool is_safetensors(std::string_view head) {
  return head.size() > 16 && head[8] == '{' && head[4] == '\0' && head[5] == '\0' && head[6] == '\0' && head[7] == '\0';
}

/// Terminal control (escape, bell, backspace, form feed) and NUL, which a crash leaves in logs, belong to text.
bool is_control(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u == 0x7F || (u < 0x20 && u != 0 && u != 0x1B && (u < 7 || u > 13));
}

}  // namespace

std::optional<NotText> not_text(std::string_view head) {
  if (head.starts_with("\x7F"
                       "ELF")) {
    const bool core = head.size() > 16 && head[16] == 4;
    return core ? NotText{"an ELF core file", "firstfault core FILE names what crashed"}
                : NotText{"an ELF program or library", "firstfault code FILE lists its GPU code, firstfault libs FILE what it loads"};
  }
  if (is_safetensors(head)) return NotText{"a safetensors file", std::string(model)};
  for (const Magic& m : magics)
    if (head.size() > m.at && head.substr(m.at).starts_with(m.bytes)) return NotText{std::string(m.what), std::string(m.remedy)};
  const auto control = static_cast<std::size_t>(std::count_if(head.begin(), head.end(), is_control));
  const auto nul = static_cast<std::size_t>(std::count(head.begin(), head.end(), '\0'));
  if (control * 20 > head.size() - nul) return NotText{"binary data", std::string(as_text)};
  return std::nullopt;
}

}  // namespace ff::diagnosis
