#include "runtime/cuda_api.h"

#include "runtime/library.h"

namespace kiln::runtime::cuda {

Result<void> Api::check(Status status, const char* what, const std::string& subject) const {
  if (status == kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  error_name(status, &name);
  error_text(status, &text);
  return Unexpected{Error{what, subject,
                          format("{} ({})", name == nullptr ? "unknown status" : name,
                                 text == nullptr ? format("number {}", status) : text)}};
}

Result<Api> open_api() {
  const Result<Library> library = Library::open("the CUDA driver", {"libcuda.so.1", "libcuda.so"});
  if (!library) return Unexpected{library.error()};
  Api api;
#define KILN_CUDA(member, name, parameters)                        \
  {                                                                \
    const Result<void*> address = library->symbol(name);           \
    if (!address) return Unexpected{address.error()};              \
    api.member = reinterpret_cast<decltype(api.member)>(*address); \
  }
  KILN_CUDA_FUNCTIONS(KILN_CUDA)
#undef KILN_CUDA
#define KILN_CUDA(member, name, parameters)                \
  if (const Result<void*> address = library->symbol(name)) \
    api.member = reinterpret_cast<decltype(api.member)>(*address);
  KILN_CUDA_NEWER_FUNCTIONS(KILN_CUDA)
#undef KILN_CUDA
  return api;
}

}  // namespace kiln::runtime::cuda
