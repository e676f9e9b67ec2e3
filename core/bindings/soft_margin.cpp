#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "hardmargin/soft_margin.hpp"
#include "problem.hpp"

using namespace hardmargin;

namespace {

const char* word(SoftMarginStop reason) {
    switch (reason) {
        case SoftMarginStop::converged: return "converged";
        case SoftMarginStop::max_stages: return "max_stages";
        case SoftMarginStop::max_time: return "max_time";
    }
    return "";
}

std::vector<SoftMarginResult> soft_margin(nb::handle matrix, nb::handle kernel, nb::handle column,
                                          nb::handle classes, std::int64_t n_classes,
                                          const Machines& machines, nb::handle weights,
                                          nb::handle diagonal, double C, double tol,
                                          std::int64_t max_stages, const std::string& dtype,
                                          std::int64_t memory_bytes, std::int64_t n_threads,
                                          const nb::object& monitor) {
    HeldProblem held(matrix, kernel, column, classes, n_classes, machines);
    SoftMarginProblem problem;
    held.set(problem);
    problem.C = to_number("C", C, 0.0);
    problem.tol = to_number("tol", tol, 0.0);
    problem.max_stages = to_count("max_stages", max_stages);
    problem.memory_bytes = to_count("memory_bytes", memory_bytes);
    problem.weights = held.row_numbers(weights, "weights", true);
    problem.diagonal = held.row_numbers(diagonal, "diagonal", false);
    problem.n_threads = to_n_threads(n_threads);
    const bool wide = is_float64(dtype);
    const Monitor heard(monitor);
    problem.max_seconds = heard.seconds_left();
    Control control(heard.poll());
    const nb::gil_scoped_release released;
    return wide ? soft_margin_machines<double>(problem, control)
                : soft_margin_machines<float>(problem, control);
}

}  // namespace

void bind_soft_margin(nb::module_& module) {
    auto result =
        nb::class_<SoftMarginResult>(module, "SoftMarginResult", "A soft-margin machine.");
    def_array(result, "support", &SoftMarginResult::support);
    def_array(result, "multipliers", &SoftMarginResult::multipliers);
    result.def_ro("intercept", &SoftMarginResult::intercept)
        .def_ro("violation", &SoftMarginResult::violation)
        .def_ro("n_stages", &SoftMarginResult::n_stages)
        .def_ro("n_values", &SoftMarginResult::n_values)
        .def_prop_ro("stop_reason", [](const SoftMarginResult& r) { return word(r.reason); });
    module.def("soft_margin", &soft_margin, nb::arg("matrix"), nb::arg("kernel").none(),
               nb::arg("column").none(), nb::kw_only(), nb::arg("classes"), nb::arg("n_classes"),
               nb::arg("machines"), nb::arg("weights").none(), nb::arg("diagonal").none(),
               nb::arg("C"), nb::arg("tol"), nb::arg("max_stages"), nb::arg("dtype"),
               nb::arg("memory_bytes"), nb::arg("n_threads"), nb::arg("monitor").none(),
               "Train soft-margin machines with bias; one result each.");
}
