// What the sources of kiln._core share: objects of kiln/kiln.h as Python owns them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "kiln/kiln.h"

namespace kiln::python {

struct FreePlan {
  void operator()(kiln_plan* plan) const { kiln_plan_free(plan); }
};

struct Plan {
  std::unique_ptr<kiln_plan, FreePlan> handle;
};

// Adds the class Launcher to the module.
void add_launcher(nanobind::module_& module);

// Adds the class Timer and what makes it.
void add_timer(nanobind::module_& module);

// Adds the classes Prepared and Apart.
void add_prepared(nanobind::module_& module);

// Adds what prepares products, and what prunes matrices.
void add_products(nanobind::module_& module);

// Adds what prepares attention and its gradients.
void add_attention(nanobind::module_& module);

// Adds what prepares attention over a cache.
void add_attention_decode(nanobind::module_& module);

}  // namespace kiln::python
