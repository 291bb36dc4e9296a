#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "capture/archive.h"
#include "capture/capture.h"

namespace ff::capture {

/// What the path of a part of a tree says about its place: "/home/a/kfd/nodes/2/io_links" gives "nodes/2/io_links/",
/// ".../card0/device" gives "card0/device/", "/x/sys/class/drm" gives "sys/class/drm/". "" when it says nothing.
std::string tree_prefix(std::string_view directory);

/// Adds handed-over files to a capture: copied trees (KFD topology, DRM devices, /sys, /proc, /etc) under the machine's
/// own paths, recognised texts as the command or file they are, shell transcripts piece by piece, the rest as text. The
/// probe "sources" says which file each came from.
Result<void> add_loose(const Members& files, Capture& capture);

}  // namespace ff::capture
