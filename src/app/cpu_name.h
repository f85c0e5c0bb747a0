#pragma once

#include <string>

namespace tahl::app {

// What the processor calls itself, with family and model where the name says little:
// "AMD EPYC (family 25, model 1)". "unknown processor" where it does not say.
std::string cpu_name();

}  // namespace tahl::app
