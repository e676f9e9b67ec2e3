#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>

#include "convert.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;

namespace {

std::tuple<double, double, double> tilt(nb::handle logs, nb::handle values, double rate,
                                        double centre, nb::handle weights) {
    const Vector<const double> from(logs, "logs");
    const std::size_t n = from.size;
    if (n == 0) refuse("logs is empty");
    const Vector<const double> tilted(values, "values", n);
    const Vector<double> to(weights, "weights", n);
    check_apart("weights", to.array, "logs", from.array);
    check_apart("weights", to.array, "values", tilted.array);
    TiltSums sums;
    {
        const nb::gil_scoped_release released;
        sums = level().scan.tilt(from.data, tilted.data, rate, centre, to.data, n);
        for (std::size_t i = 0; i < n; ++i) to.data[i] /= sums.mass;
    }
    const double shift = sums.first / sums.mass;
    const double variance = sums.second / sums.mass - shift * shift;
    return {sums.top + std::log(sums.mass), centre + shift, variance > 0 ? variance : 0.0};
}

}  // namespace

void bind_tilt(nb::module_& module) {
    module.def("tilt", &tilt, nb::arg("logs"), nb::arg("values"), nb::arg("rate"),
               nb::arg("centre"), nb::arg("weights"),
               "Fill weights with exp(logs - rate * values), scaled to a sum of one; return the "
               "logarithm of their sum before, and the mean and variance of the values.");
}
