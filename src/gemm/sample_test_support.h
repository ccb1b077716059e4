// Which of many kernels a test compiles: each in a sweep (gemm_sweep, attention_sweep), which is built in release alone,
// and one of 16 elsewhere, since a kernel takes twenty times as long under the sanitizers.
#pragma once

namespace kiln::gemm {

class Sample {
 public:
  // Whether the next kernel is in the sample; the first one is.
  bool has_next() {
#ifdef KILN_EVERY_KERNEL
    return true;
#else
    return count_++ % 16 == 0;
#endif
  }

 private:
  [[maybe_unused]] int count_ = 0;
};

}  // namespace kiln::gemm
