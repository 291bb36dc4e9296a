#pragma once

#include <set>
#include <string>

#include "elf/code_objects.h"

namespace ff::capture {

/// Adds the targets of an emptied library's code: those of the .kpack archives where it looks for them ("../.kpack/torch_@GFXARCH@.kpack").
/// Only tables of contents are read. `library`: its path as it can be opened here.
void add_split_targets(const std::string& library, const elf::Listing& listing, std::set<std::string>& targets);

}  // namespace ff::capture
