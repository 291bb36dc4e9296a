#include "base/dynlib.h"

#include <dlfcn.h>

#include <vector>

#include "base/text.h"

namespace ff {

Result<DynamicLibrary> DynamicLibrary::open(std::initializer_list<std::string> names) {
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) return DynamicLibrary(handle, name);
    const char* reason = ::dlerror();
    reasons.emplace_back(reason != nullptr ? reason : name + ": unknown reason");
  }
  return fail("cannot open the shared library: " + join(reasons, "; "), names.size() != 0 ? *names.begin() : std::string());
}

void* DynamicLibrary::find(const char* symbol) const { return ::dlsym(handle_, symbol); }

}  // namespace ff
