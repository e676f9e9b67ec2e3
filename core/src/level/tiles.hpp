// Kernel values of tiles against columns, and their bounds over boxes. Part of level.cpp.
#pragma once

#include "bytes.hpp"
#include "counts.hpp"
#include "distances.hpp"

namespace hardmargin {
namespace {

enum class Metric { squared, absolute, product };

template <Metric M, class T>
inline Vec<T> extend(Vec<T> sum, Vec<T> x, T z) {
    if constexpr (M == Metric::product) {
        return sum + x * z;
    } else {
        const Vec<T> difference = x - z;
        if constexpr (M == Metric::squared) return sum + difference * difference;
        return sum + absolute(difference);
    }
}

constexpr int most_columns_at_once =
    accumulators / vectors_per_tile < max_columns ? accumulators / vectors_per_tile : max_columns;

template <class T>
struct TileJob {
    const KernelSpec& kernel;
    const TileShape& shape;
    const T* dense;
    const std::uint8_t* bytes;
    std::size_t n_tiles;
    const T* columns;
    const std::uint8_t* column_bytes;
    T* out;
    std::size_t stride;
};

// `Tiles` tiles against `Columns` columns, all sums in registers, as many times as fit into
// [first, end). `sums` holds the bytes' share of the metric, [column][row], from the first row of
// tile `first` on. Returns the first tile not done.
template <class T, Metric M, int Tiles, int Columns, bool Bits>
[[gnu::always_inline]] inline std::size_t run_tiles(const TileJob<T>& job, std::size_t first,
                                                    std::size_t end, const T* sums,
                                                    std::size_t sum_stride) {
    constexpr int V = vectors_per_tile;
    constexpr std::size_t width = vector_bytes / sizeof(T);
    const auto d = static_cast<std::size_t>(job.shape.dense);
    const ValueOfDistance<T> value_of(job.kernel);
    for (; first + Tiles <= end; first += Tiles, sums += Bits ? Tiles * lanes<T> : 0) {
        Vec<T> sum[Tiles][Columns][V];
        for (auto& of_tile : sum)
            for (auto& of_column : of_tile)
                for (auto& v : of_column) v = Vec<T>{};
        const T* x = job.dense + first * d * lanes<T>;
        for (std::size_t k = 0; k < d; ++k)
            for (int t = 0; t < Tiles; ++t)
                for (int v = 0; v < V; ++v) {
                    const auto row =
                        load<Vec<T>>(x + (static_cast<std::size_t>(t) * d + k) * lanes<T> +
                                     static_cast<std::size_t>(v) * width);
                    for (int c = 0; c < Columns; ++c)
                        sum[t][c][v] = extend<M>(sum[t][c][v], row,
                                                 job.columns[static_cast<std::size_t>(c) * d + k]);
                }
        for (int t = 0; t < Tiles; ++t)
            for (int c = 0; c < Columns; ++c)
                for (int v = 0; v < V; ++v) {
                    Vec<T> value = sum[t][c][v];
                    const std::size_t lane = static_cast<std::size_t>(t) * lanes<T> +
                                             static_cast<std::size_t>(v) * width;
                    if constexpr (Bits)
                        value +=
                            load<Vec<T>>(sums + static_cast<std::size_t>(c) * sum_stride + lane);
                    if constexpr (M != Metric::product) value = value_of(value);
                    store<Vec<T>>(job.out + static_cast<std::size_t>(c) * job.stride +
                                      first * lanes<T> + lane,
                                  value);
                }
    }
    return first;
}

template <class T, Metric M, bool Bits, int Columns>
inline void run_range(const TileJob<T>& job, std::size_t first, std::size_t end, const T* sums,
                      std::size_t sum_stride) {
    constexpr int tiles = accumulators / (Columns * vectors_per_tile);
    const auto done = run_tiles<T, M, tiles, Columns, Bits>(job, first, end, sums, sum_stride);
    if constexpr (tiles > 1)
        run_tiles<T, M, 1, Columns, Bits>(
            job, done, end, Bits ? sums + (done - first) * lanes<T> : sums, sum_stride);
}

// Sums bytes for several strips at once, as long as their counts stay in registers.
template <class T, Metric M, int Columns, int Strips>
inline std::size_t run_strips(const TileJob<T>& job, std::size_t first) {
    constexpr std::size_t tiles = Strips * strip_rows / lanes<T>;
    alignas(64) T sums[Columns * Strips * strip_rows];
    for (; first + tiles <= job.n_tiles || (Strips == 1 && first < job.n_tiles); first += tiles) {
        const std::size_t strip = first * lanes<T> / strip_rows;
        sum_bytes<T, Strips, Columns>(
            job.shape, job.bytes + strip * static_cast<std::size_t>(job.shape.bytes) * strip_rows,
            job.column_bytes, sums);
        const std::size_t end = first + tiles < job.n_tiles ? first + tiles : job.n_tiles;
        run_range<T, M, true, Columns>(job, first, end, sums, Strips * strip_rows);
    }
    return first;
}

#if defined(__AVX2__)

// The same for rows of bytes alone with few counts: kernel values are looked up.
template <class T, int Ranges, int Columns, int Strips>
inline std::size_t look_up_strips(const TileJob<T>& job, const CountTable<T>& table,
                                  std::size_t first) {
    constexpr std::size_t n_rows = Strips * strip_rows;
    const std::size_t end = job.n_tiles * lanes<T>;
    alignas(64) T last[n_rows];
    for (; first + n_rows <= end || (Strips == 1 && first < end); first += n_rows) {
        StripCounts<Strips, Columns> count;
        count_bytes<Strips, Columns>(job.shape,
                                     job.bytes + first * static_cast<std::size_t>(job.shape.bytes),
                                     job.column_bytes, count);
        const bool whole = first + n_rows <= end;
        for (int c = 0; c < Columns; ++c) {
            T* out = job.out + static_cast<std::size_t>(c) * job.stride + first;
            T* to = whole ? out : last;
            for (int s = 0; s < Strips; ++s)
                for (int v = 0; v < bit_vectors; ++v)
                    values_of_counts<T, Ranges>(table, count[c][s][v],
                                                to + (s * bit_vectors + v) * bit_vector_bytes);
            if (!whole) __builtin_memcpy(out, last, (end - first) * sizeof(T));
        }
    }
    return first;
}

template <class T, int Ranges, int Columns>
[[gnu::noinline]] void look_up_columns(const TileJob<T>& job, const CountTable<T>& table) {
    std::size_t first = 0;
    if constexpr (Columns == 1) first = look_up_strips<T, Ranges, Columns, 4>(job, table, first);
    if constexpr (Columns <= 2) first = look_up_strips<T, Ranges, Columns, 2>(job, table, first);
    look_up_strips<T, Ranges, Columns, 1>(job, table, first);
}

#endif

template <class T, Metric M, bool Bits, int Columns>
[[gnu::noinline]] void run_columns(const TileJob<T>& job) {
    if constexpr (Bits) {
        std::size_t first = 0;
        if constexpr (Columns == 1) first = run_strips<T, M, Columns, 4>(job, first);
        if constexpr (Columns <= 2) first = run_strips<T, M, Columns, 2>(job, first);
        run_strips<T, M, Columns, 1>(job, first);
    } else {
        run_range<T, M, false, Columns>(job, 0, job.n_tiles, nullptr, 0);
    }
}

// Turns dot products into kernel values one by one: these kernels are never the hot ones.
template <class T>
void finish_products(const KernelSpec& kernel, std::size_t n, int n_columns, T* out,
                     std::size_t stride) {
    if (kernel.kind == KernelKind::linear || kernel.kind == KernelKind::cosine) return;
    const int whole = static_cast<int>(kernel.degree);
    const bool by_squaring = static_cast<double>(whole) == kernel.degree && whole >= 0;
    for (int c = 0; c < n_columns; ++c) {
        T* v = out + static_cast<std::size_t>(c) * stride;
        for (std::size_t i = 0; i < n; ++i) {
            const double t = kernel.gamma * static_cast<double>(v[i]) + kernel.coef0;
            double value = 1;
            if (kernel.kind == KernelKind::sigmoid) {
                value = __builtin_tanh(t);
            } else if (by_squaring) {
                double power = t;
                for (int e = whole; e > 0; e >>= 1, power *= power)
                    if (e & 1) value *= power;
            } else {
                value = __builtin_pow(t, kernel.degree);
            }
            v[i] = static_cast<T>(value);
        }
    }
}

template <int N>
struct Constant {
    static constexpr int value = N;
};

// Calls run(job, Constant<columns>) for as many columns at a time as fit the registers.
template <class T, class Run>
inline void in_columns(TileJob<T> job, int n_columns, Run&& run) {
    while (n_columns > 0) {
        const int n = n_columns < most_columns_at_once ? n_columns : most_columns_at_once;
        if (n == 1) run(job, Constant<1>());
        if (n == 2) run(job, Constant<2>());
        if constexpr (most_columns_at_once >= 4) {
            if (n == 3) run(job, Constant<3>());
            if (n == 4) run(job, Constant<4>());
        }
        job.columns += n * job.shape.dense;
        job.column_bytes += n * job.shape.bytes;
        job.out += static_cast<std::size_t>(n) * job.stride;
        n_columns -= n;
    }
}

template <class T, Metric M, bool Bits>
void run_metric(const TileJob<T>& job, int n_columns) {
    in_columns(job, n_columns, [](const TileJob<T>& part, auto columns) {
        run_columns<T, M, Bits, columns.value>(part);
    });
}

#if defined(__AVX2__)
template <class T>
void run_counts(const TileJob<T>& job, int n_columns) {
    static thread_local CountTable<T> table;  // kept from call to call
    table.fill(ValueOfDistance<T>(job.kernel), static_cast<T>(job.shape.groups[0].weight));
    const bool two_ranges = largest_count(job.shape.groups[0]) < 2 * counts_per_range;
    in_columns(job, n_columns, [&](const TileJob<T>& part, auto columns) {
        if (two_ranges) look_up_columns<T, 2, columns.value>(part, table);
        else look_up_columns<T, most_ranges, columns.value>(part, table);
    });
}
#endif

template <class T>
void values(const KernelSpec& kernel, const TileShape& shape, const T* dense,
            const std::uint8_t* bytes, std::size_t n_tiles, const T* columns,
            const std::uint8_t* column_bytes, int n_columns, T* out, std::size_t stride) {
    const TileJob<T> job{kernel, shape, dense, bytes, n_tiles, columns, column_bytes, out, stride};
#if defined(__AVX2__)
    if (kernel.is_distance() && !kernel.metric_only && has_few_counts(shape))
        return run_counts(job, n_columns);
#endif
    if (kernel.is_squared()) {
        if (shape.bytes) run_metric<T, Metric::squared, true>(job, n_columns);
        else run_metric<T, Metric::squared, false>(job, n_columns);
    } else if (kernel.kind == KernelKind::laplacian) {
        if (shape.bytes) run_metric<T, Metric::absolute, true>(job, n_columns);
        else run_metric<T, Metric::absolute, false>(job, n_columns);
    } else {
        run_metric<T, Metric::product, false>(job, n_columns);
        finish_products(kernel, n_tiles * lanes<T>, n_columns, out, stride);
    }
}

template <class T>
void reach(const KernelSpec& kernel, const TileShape& shape, const Boxes<T>& boxes, const T* point,
           const std::uint8_t* point_bytes, T* out) {
    constexpr std::size_t width = vector_bytes / sizeof(T);
    const ValueOfDistance<T> value_of(kernel);
    const bool squared = kernel.is_squared();
    if (shape.bytes) sum_bytes_outside(shape, boxes, point_bytes, out);
    for (std::size_t b = 0; b < boxes.n; b += width) {
        Vec<T> sum = shape.bytes ? load<Vec<T>>(out + b) : Vec<T>{};
        for (int k = 0; k < shape.dense; ++k) {
            const std::size_t at = static_cast<std::size_t>(k) * boxes.n + b;
            const Vec<T> below = load<Vec<T>>(boxes.low + at) - point[k];
            const Vec<T> above = point[k] - load<Vec<T>>(boxes.high + at);
            const Vec<T> outside = larger(larger(below, above), Vec<T>{});
            sum += squared ? outside * outside : outside;
        }
        store<Vec<T>>(out + b, value_of(sum));
    }
}

}  // namespace
}  // namespace hardmargin
