// Checks Python's arguments before the core sees them; errors name the argument.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hardmargin/aligned.hpp"

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::device::cpu>;

template <class... Parts>
std::string text(const Parts&... parts) {
    std::ostringstream stream;
    (stream << ... << parts);
    return stream.str();
}

// Raises ValueError.
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
    throw std::invalid_argument(text(parts...));
}

// An aligned array of this dtype and number of dimensions, which must be writable if asked.
Array to_array(nb::handle source, const std::string& name, nb::dlpack::dtype dtype,
               std::size_t n_dims, bool writable);

// A read-only array of float32 or float64.
Array to_float_array(nb::handle source, const std::string& name, std::size_t n_dims);

// A contiguous vector. T is const if it is only read; then it is copied if it is not contiguous.
template <class T>
struct Vector {
    Array array;
    T* data = nullptr;
    std::size_t size = 0;

    Vector() = default;
    Vector(nb::handle source, const std::string& name)
        : array(
              to_array(source, name, nb::dtype<std::remove_const_t<T>>(), 1, !std::is_const_v<T>)),
          data(static_cast<T*>(const_cast<void*>(array.data()))), size(array.shape(0)) {
        if (size < 2 || array.stride(0) == 1) return;
        if constexpr (std::is_const_v<T>) copy();
        else refuse(name, " must be contiguous");
    }
    Vector(nb::handle source, const std::string& name, std::size_t expected)
        : Vector(source, name) {
        if (size != expected) refuse(name, " has ", size, " entries, expected ", expected);
    }

    // Whoever writes into the array from here on does not change `data`.
    void copy() {
        if (copy_) return;
        copy_ = std::make_shared<Copy>(size);
        const std::int64_t stride = size < 2 ? 1 : array.stride(0);
        for (std::size_t i = 0; i < size; ++i)
            (*copy_)[i] = data[static_cast<std::int64_t>(i) * stride];
        data = copy_->data();
    }

  private:
    using Copy = hardmargin::RawVector<std::remove_const_t<T>>;
    std::shared_ptr<Copy> copy_;
};

// A matrix with contiguous rows, which follow one another without overlap.
template <class T>
struct Grid {
    Array array;
    T* data = nullptr;
    std::size_t n_rows = 0, n_cols = 0, stride = 0;

    Grid(nb::handle source, const std::string& name)
        : array(
              to_array(source, name, nb::dtype<std::remove_const_t<T>>(), 2, !std::is_const_v<T>)),
          data(static_cast<T*>(const_cast<void*>(array.data()))), n_rows(array.shape(0)),
          n_cols(array.shape(1)), stride(n_cols) {
        if (n_rows == 0 || n_cols == 0) return;
        if (n_cols > 1 && array.stride(1) != 1) refuse(name, " must have contiguous rows");
        if (n_rows == 1) return;
        if (array.stride(0) < static_cast<std::int64_t>(n_cols))
            refuse("the rows of ", name, " must follow one another, but they are ", array.stride(0),
                   " entries apart and ", n_cols, " long");
        stride = static_cast<std::size_t>(array.stride(0));
    }
    Grid(nb::handle source, const std::string& name, std::size_t rows, std::size_t cols)
        : Grid(source, name) {
        if (n_rows != rows || n_cols != cols)
            refuse(name, " has shape (", n_rows, ", ", n_cols, "), expected (", rows, ", ", cols,
                   ")");
    }

    void check_has_no_gaps(const std::string& name) const {
        if (stride != n_cols) refuse(name, " must be contiguous");
    }
    // The hot loops read whole cache lines.
    void check_lines(const std::string& name) const {
        if ((n_rows > 1 && stride % 16 != 0) || reinterpret_cast<std::uintptr_t>(data) % 64 != 0)
            refuse("the rows of ", name,
                   " must begin on cache lines and lie a multiple of 16 entries apart");
    }
};

// Arrays that are written must not overlap any other.
void check_apart(const std::string& name, const Array& written, const std::string& other_name,
                 const Array& other);

// Raises IndexError unless all are at least `least` and below `end`.
template <class I>
void check_indices(const std::string& name, const I* indices, std::size_t n, std::size_t end,
                   I least = 0) {
    bool is_wrong = false;
    const auto limit = static_cast<std::int64_t>(end);
    for (std::size_t i = 0; i < n; ++i)
        is_wrong |= indices[i] < least || static_cast<std::int64_t>(indices[i]) >= limit;
    if (!is_wrong) return;
    for (std::size_t i = 0; i < n; ++i)
        if (indices[i] < least || static_cast<std::int64_t>(indices[i]) >= limit)
            throw std::out_of_range(
                text(name, "[", i, "] is ", indices[i], ", expected ", least, " <= index < ", end));
}

// Starts of rows as in CSR matrices: from 0 up to at most `end`, never falling.
void check_starts(const std::string& name, const Vector<const std::int64_t>& starts,
                  std::size_t end);

// A whole number of at least `least`.
std::size_t to_count(const std::string& name, std::int64_t value, std::int64_t least = 0);
int to_n_threads(std::int64_t value);

// A number that is not NaN, not below `least` and, unless allowed, not infinite.
double to_number(const std::string& name, double value,
                 double least = -std::numeric_limits<double>::infinity(),
                 bool may_be_infinite = false);

// The choice named `value`.
template <class Choice>
Choice to_choice(const std::string& name, const std::string& value,
                 const std::vector<std::pair<const char*, Choice>>& choices) {
    std::string known;
    for (const auto& [word, choice] : choices) {
        if (value == word) return choice;
        known += text(known.empty() ? "'" : ", '", word, "'");
    }
    refuse(name, " is '", value, "', expected one of ", known);
}

// Whether the argument `dtype` is "float64", not "float32".
bool is_float64(const std::string& dtype);
