#include "rollout/video.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/check_table.h"
#include "cli/command.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "cli/positive.h"
#include "rollout/checks.h"

namespace ff::cli {

void add_video(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  auto* check = app.add_subcommand("check", "Is this video whole, does it play everywhere, is it black or frozen?");
  auto options = std::make_shared<CheckTableOptions>();
  check->add_option("file", options->subject, "The video (MP4)")->required();
  check->add_flag("--json", options->json, "Print one JSON document (firstfault/video-check/1)");
  check->add_flag("--all", options->all, "Show passing and skipped checks too");
  check->callback([options, &exit_code] {
    if (const auto given = given_path(options->subject); !given) {
      exit_code = report_error(given.error());
      return;
    }
    std::error_code error;
    if (!std::filesystem::is_regular_file(options->subject, error)) {
      exit_code = report_error(Error{"is no file", options->subject.empty() ? "file" : options->subject, "name a video", 2});
      return;
    }
    options->schema = "firstfault/video-check/1";
    options->inputs.results = options->subject;
    options->checks = &rollout::video_checks;
    exit_code = check_table(*options);
  });

  auto* encode = app.add_subcommand("encode", "Make a video that every browser plays: H.264, yuv420p, index first");
  auto o = std::make_shared<rollout::EncodeOptions>();
  encode->add_option("input", o->input, "A video, or a directory of pictures named in order")->required();
  encode->add_option("-o,--output", o->output, "The file to write")->required();
  encode->add_option("--fps", o->fps, "Frames a second (default: the input's; 10 for pictures)")->check(positive());
  encode->add_flag("--force", o->overwrite, "Replace an existing file");
  encode->callback([o, &exit_code] {
    const auto encoded = rollout::encode_video(*o);
    if (!encoded) {
      exit_code = report_error(encoded.error());
      return;
    }
    std::cout << o->output << "\n";
    exit_code = 0;
  });
}

}  // namespace ff::cli
