#include "problem.hpp"

#include <algorithm>

using namespace hardmargin;

void set_machines(MachineProblem& problem, const HeldMatrix& matrix,
                  const std::optional<Spec>& kernel, const nb::object& column,
                  const Vector<std::int32_t>& classes, int n_classes, const Machines& machines) {
    problem.matrix = matrix.matrix;
    if (!column.is_none()) {
        problem.source = Source::function;
        problem.column = [&column](std::int32_t id, double* out) {
            const nb::gil_scoped_acquire gil;
            const auto values = nb::cast<Vector<double>>(column(id));
            std::copy_n(values.data(), values.shape(0), out);
        };
    } else if (kernel) {
        problem.kernel = to_kernel(*kernel);
    } else {
        problem.source = Source::precomputed;
    }
    problem.classes = classes.data();
    problem.n_classes = static_cast<std::size_t>(n_classes);
    for (const auto& [negative, positive] : machines)
        problem.machines.push_back({negative, positive});
}
