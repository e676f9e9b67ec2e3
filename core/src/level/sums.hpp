// Uses of kernel values: gradients, expansions, the best step. Part of level.cpp.
#pragma once

#include "vectors.hpp"

namespace hardmargin {
namespace {

template <class T>
inline Vec<double> widen(const T* p) {
    return __builtin_convertvector(load<Narrow<T>>(p), Vec<double>);
}

template <class V>
inline double largest_lane(V v) {
    double best = v[0];
    for (std::size_t i = 1; i < sizeof(V) / sizeof(double); ++i) best = v[i] > best ? v[i] : best;
    return best;
}

template <class T, int Columns>
double accumulate_columns(double* gradient, const T* values, std::size_t stride,
                          const double* steps, std::size_t n) {
    constexpr std::size_t width = vector_bytes / sizeof(double);
    constexpr int chains = 8 / width > 1 ? static_cast<int>(8 / width) : 1;
    Vec<double> least[chains];
    for (auto& v : least) v = spread(__builtin_inf());
    for (std::size_t i = 0; i < n; i += width * chains)
        for (int j = 0; j < chains; ++j) {
            const std::size_t at = i + static_cast<std::size_t>(j) * width;
            Vec<double> g = load<Vec<double>>(gradient + at);
            for (int c = 0; c < Columns; ++c)
                g += steps[c] * widen(values + static_cast<std::size_t>(c) * stride + at);
            store<Vec<double>>(gradient + at, g);
            least[j] = smaller(g, least[j]);
        }
    for (int j = 1; j < chains; ++j) least[0] = smaller(least[0], least[j]);
    return -largest_lane(-least[0]);
}

template <class T>
double accumulate(double* gradient, const T* values, std::size_t stride, const double* steps,
                  int n_columns, std::size_t n) {
    switch (n_columns) {
        case 1: return accumulate_columns<T, 1>(gradient, values, stride, steps, n);
        case 2: return accumulate_columns<T, 2>(gradient, values, stride, steps, n);
        case 3: return accumulate_columns<T, 3>(gradient, values, stride, steps, n);
        default: return accumulate_columns<T, 4>(gradient, values, stride, steps, n);
    }
}

// Sums over the columns are kept in registers, in T, and added to the doubles at the end.
template <class T, int Machines, int Tiles>
[[gnu::always_inline]] inline std::size_t
mix_tiles(double* out, std::size_t out_stride, const T* values, std::size_t stride, const T* coef,
          std::size_t coef_stride, int n_columns, std::size_t i, std::size_t n) {
    constexpr int V = Tiles * vectors_per_tile;
    constexpr std::size_t width = vector_bytes / sizeof(T);
    constexpr std::size_t narrow = vector_bytes / sizeof(double);
    alignas(64) T total[Tiles * lanes<T>];
    for (; i + Tiles * lanes<T> <= n; i += Tiles * lanes<T>) {
        Vec<T> sum[Machines][V] = {};
        for (std::size_t s = 0; s < static_cast<std::size_t>(n_columns); ++s)
            for (int v = 0; v < V; ++v) {
                const auto k =
                    load<Vec<T>>(values + s * stride + i + static_cast<std::size_t>(v) * width);
                for (int m = 0; m < Machines; ++m) sum[m][v] += k * coef[s * coef_stride + m];
            }
        for (int m = 0; m < Machines; ++m) {
            for (int v = 0; v < V; ++v)
                store<Vec<T>>(total + static_cast<std::size_t>(v) * width, sum[m][v]);
            double* o = out + static_cast<std::size_t>(m) * out_stride + i;
            for (std::size_t j = 0; j < Tiles * lanes<T>; j += narrow)
                store<Vec<double>>(o + j, load<Vec<double>>(o + j) + widen(total + j));
        }
    }
    return i;
}

template <class T, int Machines>
[[gnu::noinline]] void mix_machines(double* out, std::size_t out_stride, const T* values,
                                    std::size_t stride, const T* coef, std::size_t coef_stride,
                                    int n_columns, std::size_t n) {
    constexpr int most = accumulators / (Machines * vectors_per_tile);
    constexpr int tiles = most > 1 ? most : 1;
    const std::size_t done = mix_tiles<T, Machines, tiles>(out, out_stride, values, stride, coef,
                                                           coef_stride, n_columns, 0, n);
    if constexpr (tiles > 1)
        mix_tiles<T, Machines, 1>(out, out_stride, values, stride, coef, coef_stride, n_columns,
                                  done, n);
}

template <class T>
void mix(double* out, std::size_t out_stride, const T* values, std::size_t stride, const T* coef,
         std::size_t coef_stride, int n_columns, int n_machines, std::size_t n) {
    constexpr decltype(&mix_machines<T, 1>) of_size[] = {
        nullptr, mix_machines<T, 1>, mix_machines<T, 2>, mix_machines<T, 3>, mix_machines<T, 4>};
    constexpr int most = 4;
    while (n_machines > 0) {
        // Five are split into 3 and 2, as a single machine wastes most loads.
        const int m = n_machines == most + 1 ? 3 : n_machines < most ? n_machines : most;
        of_size[m](out, out_stride, values, stride, coef, coef_stride, n_columns, n);
        out += static_cast<std::size_t>(m) * out_stride;
        coef += m;
        n_machines -= m;
    }
}

// Eight sums, enough to keep the multiply-adds busy, run over all listed columns at once.
template <class T>
void mix_some(double* out, const T* values, std::size_t stride, const std::uint8_t* columns,
              const T* coef, std::size_t n_columns, std::size_t n) {
    constexpr int V = 8;
    constexpr std::size_t width = vector_bytes / sizeof(T), rows = V * width;
    constexpr std::size_t narrow = vector_bytes / sizeof(double);
    alignas(64) T total[rows];
    std::size_t i = 0;
    for (; i + rows <= n; i += rows) {
        Vec<T> sum[V];
        for (auto& v : sum) v = Vec<T>{};
        for (std::size_t s = 0; s < n_columns; ++s) {
            const T* k = values + columns[s] * stride + i;
            for (std::size_t v = 0; v < V; ++v) sum[v] += load<Vec<T>>(k + v * width) * coef[s];
        }
        for (std::size_t v = 0; v < V; ++v) store<Vec<T>>(total + v * width, sum[v]);
        for (std::size_t j = 0; j < rows; j += narrow)
            store<Vec<double>>(out + i + j, load<Vec<double>>(out + i + j) + widen(total + j));
    }
    for (; i < n; i += width) {
        Vec<T> sum = {};
        for (std::size_t s = 0; s < n_columns; ++s)
            sum += load<Vec<T>>(values + columns[s] * stride + i) * coef[s];
        store<Vec<T>>(total, sum);
        for (std::size_t j = 0; j < width; j += narrow)
            store<Vec<double>>(out + i + j, load<Vec<double>>(out + i + j) + widen(total + j));
    }
}

double largest(const double* v, std::size_t n) {
    Vec<double> best = spread(-__builtin_inf());
    for (std::size_t i = 0; i < n; i += vector_bytes / sizeof(double))
        best = larger(load<Vec<double>>(v + i), best);
    return largest_lane(best);
}

double longest_step(const double* gradient, const double* up, const double* down, std::size_t n) {
    Vec<double> best = spread(-__builtin_inf());
    for (std::size_t i = 0; i < n; i += vector_bytes / sizeof(double)) {
        const auto g = load<Vec<double>>(gradient + i);
        const Vec<double> rise = smaller(-g, load<Vec<double>>(up + i));
        const Vec<double> fall = smaller(g, load<Vec<double>>(down + i));
        best = larger(larger(rise, fall), best);
    }
    return largest_lane(best);
}

}  // namespace
}  // namespace hardmargin
