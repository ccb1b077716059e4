// The fixture of tests over the driver of paper: kernels are compiled by the real NVRTC, without which
// a test is skipped, and what is launched is shown to a function of the test's.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "gemm/fake_cuda.h"
#include "runtime/nvrtc.h"

namespace kiln {

class FakeDriverTest : public testing::Test {
 protected:
  explicit FakeDriverTest(void (*on_launch)(const FakeLaunch&)) : on_launch_(on_launch) {}

  void SetUp() final {
    if (const auto found = runtime::find_nvrtc(); !found) GTEST_SKIP() << found.error().text();
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    void* symbol = dlsym(library, "fake_cuda");
    ASSERT_NE(symbol, nullptr) << "the driver is a real one";
    fake_ = reinterpret_cast<FakeCuda* (*)()>(symbol)();
    fake_->on_launch = on_launch_;
    fake_->capturing = false;
    fake_->launch_status = 0;
    fake_->capture_status = 0;
    prepare();
  }
  // What else there is to do before a test.
  virtual void prepare() {}

  FakeCuda* fake_ = nullptr;

 private:
  void (*on_launch_)(const FakeLaunch&);
};

}  // namespace kiln
