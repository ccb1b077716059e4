// Compiling with NVRTC, or finding what was compiled before.
//
//   auto compiled = compile_cached(compile_request(text, arch, "matmul.cu"), cache, {});
//   compiled->cached          true: NVRTC was not even opened
#pragma once

#include "runtime/cache.h"
#include "runtime/nvrtc.h"

namespace kiln::runtime {

enum class CacheUse : std::uint8_t {
  kFindAndStore,
  kStoreOnly,  // compiles always, as if the cache were empty
};

struct Compiled {
  Cubin cubin;          // from the cache: without a log
  bool cached = false;  // it was found, not compiled
  bool kept = false;    // the cache has it now
  std::string note;     // why the cache could not keep it; usually empty
};

// The name of a result in the cache. `toolkit` says which NVRTC.
[[nodiscard]] Digest compile_key(const CompileRequest& request, std::string_view toolkit);

// A cache that does not work costs time and is told in `note`. Errors: as compile().
[[nodiscard]] Result<Compiled> compile_cached(const CompileRequest& request, const Cache& cache,
                                              CacheUse use);

}  // namespace kiln::runtime
