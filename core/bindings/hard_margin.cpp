#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "hardmargin/hard_margin_machines.hpp"
#include "problem.hpp"

using namespace hardmargin;

namespace {

const char* word(HardMarginStop reason) {
    switch (reason) {
        case HardMarginStop::converged: return "converged";
        case HardMarginStop::rho_zero: return "rho_zero";
        case HardMarginStop::max_stages: return "max_stages";
        case HardMarginStop::max_time: return "max_time";
    }
    return "";
}

std::vector<HardMarginResult> hard_margin(nb::handle matrix, nb::handle kernel, nb::handle column,
                                          nb::handle classes, std::int64_t n_classes,
                                          const Machines& machines, nb::handle diagonal, bool bias,
                                          double tol, std::int64_t max_stages,
                                          const std::string& dtype, std::int64_t memory_bytes,
                                          std::int64_t n_threads, const nb::object& monitor) {
    HeldProblem held(matrix, kernel, column, classes, n_classes, machines);
    HardMarginProblem problem;
    held.set(problem);
    problem.options.bias = bias;
    problem.options.tol = to_number("tol", tol, 0.0);
    problem.options.max_stages = to_count("max_stages", max_stages);
    problem.options.memory_bytes = to_count("memory_bytes", memory_bytes);
    problem.options.diagonal = held.row_numbers(diagonal, "diagonal", false);
    problem.n_threads = to_n_threads(n_threads);
    const bool wide = is_float64(dtype);
    const Monitor heard(monitor);
    problem.max_seconds = heard.seconds_left();
    Control control(heard.poll());
    const nb::gil_scoped_release released;
    return wide ? hard_margin_machines<double>(problem, control)
                : hard_margin_machines<float>(problem, control);
}

}  // namespace

void bind_hard_margin(nb::module_& module) {
    auto result =
        nb::class_<HardMarginResult>(module, "HardMarginResult", "A hard-margin machine.");
    def_array(result, "support", &HardMarginResult::support);
    def_array(result, "multipliers", &HardMarginResult::multipliers);
    result.def_ro("intercept", &HardMarginResult::intercept)
        .def_ro("rho", &HardMarginResult::rho)
        .def_ro("rho_lower_bound", &HardMarginResult::rho_lower_bound)
        .def_ro("violation", &HardMarginResult::violation)
        .def_ro("n_stages", &HardMarginResult::n_stages)
        .def_ro("n_values", &HardMarginResult::n_values)
        .def_prop_ro("stop_reason", [](const HardMarginResult& r) { return word(r.reason); });
    module.def("hard_margin", &hard_margin, nb::arg("matrix"), nb::arg("kernel").none(),
               nb::arg("column").none(), nb::kw_only(), nb::arg("classes"), nb::arg("n_classes"),
               nb::arg("machines"), nb::arg("diagonal").none(), nb::arg("bias"), nb::arg("tol"),
               nb::arg("max_stages"), nb::arg("dtype"), nb::arg("memory_bytes"),
               nb::arg("n_threads"), nb::arg("monitor").none(),
               "Train hard-margin machines; one result each.");
}
