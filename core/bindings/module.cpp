#include "convert.hpp"
#include "hardmargin/control.hpp"

NB_MODULE(_core, module) {
    module.doc() = "Compiled core of hardmargin.";
    bind_kernels(module);
    bind_greedy(module);
    bind_exact(module);
    bind_paths(module);
    bind_tilt(module);
    bind_ball(module);
}
