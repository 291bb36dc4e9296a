// meta/info.json of a dataset, and the path templates in it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataset/dataset.h"
#include "dataset/judge_metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ff::dataset::impostor("a.parquet", text.substr(0, 512), text.substr(size - (size < 12 ? size : 12)), size);
  if (const auto dataset = ff::dataset::parse_info(text, "info.json")) {
    (void)ff::dataset::fill_template(dataset->data_path, {{"chunk_index", 1}, {"file_index", 2}, {"episode_index", 3}});
    for (const auto& feature : dataset->features) (void)feature.width();
  }
  return 0;
}
