// How the functions of kiln/gemm.h and kiln/attention.h end.
#pragma once

#include <string>

#include "gemm/library.h"
#include "kiln/status.h"
#include "support/last_error.h"

namespace kiln::gemm {

inline kiln_status fail(kiln_status status, std::string text) {
  last_error() = std::move(text);
  return status;
}

inline kiln_status fail(const Failure& failure) {
  const auto status = [&] {
    switch (failure.kind) {
      case FailureKind::kInvalid: return KILN_INVALID;
      case FailureKind::kUnsupported: return KILN_UNSUPPORTED;
      case FailureKind::kNoGpu: return KILN_NO_GPU;
      case FailureKind::kNoCompiler: return KILN_NO_COMPILER;
      case FailureKind::kDevice: return KILN_DEVICE;
    }
    return KILN_DEVICE;
  };
  return fail(status(), failure.error.text());
}

}  // namespace kiln::gemm
