#pragma once

#include <initializer_list>
#include <string>

#include "base/error.h"

namespace ff {

/// A shared library that is opened at run time: the one way in which vendor libraries come in. It stays open until the
/// process ends: GPU runtimes do not survive being unloaded.
class DynamicLibrary {
 public:
  /// The first of `names` that can be opened ("libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so"). The error tells what
  /// the loader said about each.
  static Result<DynamicLibrary> open(std::initializer_list<std::string> names);

  /// The address of a symbol; null when the library has none of that name.
  [[nodiscard]] void* find(const char* symbol) const;
  /// A function by its type: `auto* f = library.function<int(int)>("hipInit")`; null when absent.
  template <class Signature>
  [[nodiscard]] Signature* function(const char* symbol) const {
    return reinterpret_cast<Signature*>(find(symbol));
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_;
  std::string name_;
};

}  // namespace ff
