#include "arguments.hpp"

#include <algorithm>
#include <cmath>

namespace {

std::string name_of(nb::dlpack::dtype dtype) {
    static constexpr const char* codes[] = {"int",    "uint",    "float", "handle",
                                            "bfloat", "complex", "bool"};
    const auto code = static_cast<std::size_t>(dtype.code);
    if (code >= std::size(codes)) return "unknown";
    return text(codes[code], static_cast<int>(dtype.bits));
}

// First byte, and the one after the last.
std::pair<std::uintptr_t, std::uintptr_t> extent(const Array& array) {
    std::int64_t least = 0, most = 0;
    for (std::size_t k = 0; k < array.ndim(); ++k) {
        const std::int64_t reach =
            (static_cast<std::int64_t>(array.shape(k)) - 1) * array.stride(k);
        (reach < 0 ? least : most) += reach;
    }
    const auto size = static_cast<std::int64_t>(array.itemsize());
    const auto begin = reinterpret_cast<std::uintptr_t>(array.data());
    return {begin + static_cast<std::uintptr_t>(least * size),
            begin + static_cast<std::uintptr_t>((most + 1) * size)};
}

Array as_array(nb::handle source, const std::string& name) {
    Array array;
    if (!nb::try_cast<Array>(source, array, false))
        throw nb::type_error(
            text(name, " must be an array, got ", nb::type_name(source.type()).c_str()).c_str());
    return array;
}

void check_layout(const Array& array, const std::string& name, std::size_t n_dims) {
    if (array.ndim() != n_dims)
        refuse(name, " has ", array.ndim(), " dimensions, expected ", n_dims);
    if (reinterpret_cast<std::uintptr_t>(array.data()) % array.itemsize() != 0)
        refuse(name, " must be aligned");
}

}  // namespace

Array to_array(nb::handle source, const std::string& name, nb::dlpack::dtype dtype,
               std::size_t n_dims, bool writable) {
    const Array array = as_array(source, name);
    if (array.dtype() != dtype)
        throw nb::type_error(
            text(name, " has dtype ", name_of(array.dtype()), ", expected ", name_of(dtype))
                .c_str());
    check_layout(array, name, n_dims);
    if (nb::ndarray<nb::device::cpu> changed;
        writable && !nb::try_cast<nb::ndarray<nb::device::cpu>>(source, changed, false))
        refuse(name, " is read-only");
    return array;
}

Array to_float_array(nb::handle source, const std::string& name, std::size_t n_dims) {
    const Array array = as_array(source, name);
    if (array.dtype() != nb::dtype<float>() && array.dtype() != nb::dtype<double>())
        throw nb::type_error(
            text(name, " has dtype ", name_of(array.dtype()), ", expected float32 or float64")
                .c_str());
    check_layout(array, name, n_dims);
    return array;
}

void check_apart(const std::string& name, const Array& written, const std::string& other_name,
                 const Array& other) {
    if (written.size() == 0 || other.size() == 0) return;
    const auto [begin, end] = extent(written);
    const auto [other_begin, other_end] = extent(other);
    if (begin < other_end && other_begin < end) refuse(name, " shares memory with ", other_name);
}

void check_starts(const std::string& name, const Vector<const std::int64_t>& starts,
                  std::size_t end) {
    if (starts.size == 0) refuse(name, " is empty, expected one entry per row and one more");
    if (starts.data[0] != 0) refuse(name, "[0] is ", starts.data[0], ", expected 0");
    bool falls = false;
    for (std::size_t i = 1; i < starts.size; ++i) falls |= starts.data[i] < starts.data[i - 1];
    if (falls)
        for (std::size_t i = 1; i < starts.size; ++i)
            if (starts.data[i] < starts.data[i - 1])
                refuse(name, "[", i, "] is ", starts.data[i], ", less than ", starts.data[i - 1],
                       " before it");
    const std::int64_t last = starts.data[starts.size - 1];
    if (last > static_cast<std::int64_t>(end))
        refuse(name, "[", starts.size - 1, "] is ", last, ", but there are ", end, " entries");
}

std::size_t to_count(const std::string& name, std::int64_t value, std::int64_t least) {
    if (value < least) refuse(name, " is ", value, ", expected at least ", least);
    return static_cast<std::size_t>(value);
}

int to_n_threads(std::int64_t value) {
    constexpr std::int64_t most = 1 << 16;
    if (value < 1 || value > most) refuse("n_threads is ", value, ", expected 1 to ", most);
    return static_cast<int>(value);
}

double to_number(const std::string& name, double value, double least, bool may_be_infinite) {
    if (std::isnan(value) || (std::isinf(value) && !may_be_infinite))
        refuse(name, " is ", value, ", expected a ", may_be_infinite ? "" : "finite ", "number");
    if (value < least) refuse(name, " is ", value, ", expected at least ", least);
    return value;
}

bool is_float64(const std::string& dtype) {
    return to_choice<bool>("dtype", dtype, {{"float32", false}, {"float64", true}});
}
