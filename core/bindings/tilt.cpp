#include <nanobind/stl/tuple.h>

#include <cmath>
#include <stdexcept>
#include <tuple>

#include "convert.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;

namespace {

std::tuple<double, double, double>
tilt(Vector<double> logs, Vector<double> values, double rate, double centre,
     nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> weights) {
    const std::size_t n = logs.shape(0);
    if (n == 0 || values.shape(0) != n || weights.shape(0) != n)
        throw std::invalid_argument("logs, values and weights must have one length, above 0");
    TiltSums sums;
    {
        const nb::gil_scoped_release released;
        sums = level().scan.tilt(logs.data(), values.data(), rate, centre, weights.data(), n);
        for (std::size_t i = 0; i < n; ++i) weights.data()[i] /= sums.mass;
    }
    const double shift = sums.first / sums.mass;
    const double variance = sums.second / sums.mass - shift * shift;
    return {sums.top + std::log(sums.mass), centre + shift, variance > 0 ? variance : 0.0};
}

}  // namespace

void bind_tilt(nb::module_& module) {
    module.def("tilt", &tilt, nb::arg("logs"), nb::arg("values"), nb::arg("rate"),
               nb::arg("centre"), nb::arg("weights"),
               "Fill weights with exp(logs - rate * values), made to add up to one; return the "
               "logarithm of what they added up to, and the mean and variance of the values.");
}
