#include "hardmargin/expansion.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "hardmargin/aligned.hpp"
#include "hardmargin/layout.hpp"
#include "hardmargin/level.hpp"
#include "hardmargin/sparse.hpp"
#include "hardmargin/tile_kernel.hpp"

namespace hardmargin {
namespace {

// Queries and support rows whose kernel values are held at once: they stay in the L1 cache.
constexpr std::size_t query_rows = strip_rows;
constexpr std::size_t support_rows = 64;

// The kernel values of a support row and some queries take as many places as these need.
template <class T>
std::size_t places(std::size_t n_queries) {
    return round_up(n_queries, lanes<T>);
}

// Support rows as the tiles' columns.
template <class T>
struct Columns {
    std::size_t n_dense, n_bytes;
    AlignedVector<T> dense;
    AlignedVector<std::uint8_t> bytes;
    std::vector<T> norms;  // if the layout has them

    Columns(const Layout& layout, const Matrix& support)
        : n_dense(layout.n_dense()), n_bytes(layout.n_bytes()),
          dense(support.n_rows * n_dense + lanes<T>), bytes(support.n_rows * n_bytes),
          norms(layout.has_norms() ? support.n_rows : 0) {
        RowPacker pack(layout, support);
        for (std::size_t s = 0; s < support.n_rows; ++s)
            pack(s, dense.data() + s * n_dense, 1, bytes.data() + s * n_bytes, 1);
        if (!norms.empty())
            level().table<T>().column_norms(dense.data(), support.n_rows, n_dense, norms.data());
    }

    PackedView<T> from(std::size_t first) const {
        return {dense.data() + first * n_dense, bytes.data() + first * n_bytes,
                norms.empty() ? nullptr : norms.data() + first};
    }
};

// Evaluates kernel values of a few queries against a few support rows: out[s * places + q].
template <class T>
class Evaluator {
  public:
    virtual ~Evaluator() = default;
    virtual void load_queries(std::size_t begin, std::size_t end) = 0;
    virtual void values(std::size_t first_support, std::size_t n_support, T* out) = 0;
};

template <class T>
class TileEvaluator final : public Evaluator<T> {
  public:
    TileEvaluator(const KernelSpec& kernel, const Layout& layout, const Columns<T>& columns,
                  const Matrix& queries)
        : layout_(layout), columns_(columns), tiles_(kernel, layout), pack_(layout, queries) {
        dense_.assign(query_rows * layout.n_dense(), T(0));
        bytes_.assign(query_rows * layout.n_bytes(), 0);
    }

    void load_queries(std::size_t begin, std::size_t end) override {
        places_ = places<T>(end - begin);
        for (std::size_t q = begin; q < end; ++q) {
            const std::size_t tile = (q - begin) / lanes<T>, lane = (q - begin) % lanes<T>;
            pack_(q, dense_.data() + tile * layout_.n_dense() * lanes<T> + lane, lanes<T>,
                  bytes_.data() + (q - begin), strip_rows);
        }
        if (layout_.has_norms())
            level().table<T>().tile_norms(dense_.data(), places_ / lanes<T>, layout_.n_dense(),
                                          norms_);
    }

    void values(std::size_t first, std::size_t n, T* out) override {
        tiles_.values({dense_.data(), bytes_.data(), norms_}, places_ / lanes<T>,
                      columns_.from(first), n, out, places_);
    }

  private:
    const Layout& layout_;
    const Columns<T>& columns_;
    TileKernel<T> tiles_;
    RowPacker pack_;
    std::size_t places_ = 0;
    AlignedVector<T> dense_;
    AlignedVector<std::uint8_t> bytes_;
    alignas(64) T norms_[query_rows] = {};
};

// Numbers of sparse rows, in the type that sums are made in; squares of larger ones would not be
// finite.
template <class T>
T number(double x) {
    constexpr double largest = sizeof(T) == 4 ? 1e18 : 1e150;
    return static_cast<T>(std::clamp(x, -largest, largest));
}

template <class T>
std::vector<T> entry_norms(const KernelSpec& kernel, const Matrix& matrix) {
    std::vector<T> norms(matrix.n_rows), row;
    for (std::size_t i = 0; i < matrix.n_rows && kernel.is_distance(); ++i) {
        row.clear();
        matrix.each(i, [&](std::size_t, double x) { row.push_back(number<T>(x)); });
        row.resize(row.size() + lanes<T>);
        norms[i] = level().table<T>().entry_norm(kernel, row.data(), row.size() - lanes<T>);
    }
    return norms;
}

// The queries of a tile are held dense, side by side, over the features they use; the stored
// entries of each support row are then matched with all of them.
template <class T>
class SparseEvaluator final : public Evaluator<T> {
  public:
    SparseEvaluator(const KernelSpec& kernel, const Matrix& queries, const Matrix& support,
                    const std::vector<T>& query_norms, const std::vector<T>& support_norms,
                    const RowLengths& query_lengths, const RowLengths& support_lengths)
        : kernel_(kernel), queries_(queries), support_(support), query_norms_(query_norms),
          support_norms_(support_norms), query_lengths_(query_lengths),
          support_lengths_(support_lengths), exact_(kernel, queries, support),
          place_(support.n_cols, 0) {}

    void load_queries(std::size_t begin, std::size_t end) override {
        for (std::size_t q = begin_; q < end_; ++q)
            queries_.each(q, [&](std::size_t k, double) { place_[k] = 0; });
        begin_ = begin;
        end_ = end;
        side_by_side_.assign(query_rows, T(0));  // place 0: features none of them uses
        for (std::size_t q = begin; q < end; ++q)
            queries_.each(q, [&](std::size_t k, double x) {
                if (x == 0) return;
                if (place_[k] == 0) {
                    place_[k] = static_cast<std::uint32_t>(side_by_side_.size() / query_rows);
                    side_by_side_.resize(side_by_side_.size() + query_rows, T(0));
                }
                side_by_side_[place_[k] * query_rows + (q - begin)] =
                    number<T>(x / query_lengths_[q]);
            });
        std::fill(std::copy(query_norms_.begin() + static_cast<std::ptrdiff_t>(begin),
                            query_norms_.begin() + static_cast<std::ptrdiff_t>(end), norms_),
                  norms_ + query_rows, T(0));
    }

    void values(std::size_t first, std::size_t n, T* out) override {
        const std::size_t stride = places<T>(end_ - begin_);
        alignas(64) T products[query_rows];
        for (std::size_t s = 0; s < n; ++s) {
            features_.clear();
            numbers_.clear();
            support_.each(first + s, [&](std::size_t k, double z) {
                if (place_[k] == 0) return;
                features_.push_back(place_[k]);
                numbers_.push_back(number<T>(z / support_lengths_[first + s]));
            });
            table_.entry_products(kernel_, side_by_side_.data(), features_.data(), numbers_.data(),
                                  features_.size(), products);
            std::copy_n(products, stride, out + s * stride);
        }
        std::uint64_t is_rough[support_rows];
        table_.finish(kernel_, norms_, support_norms_.data() + first, nullptr, n, out, stride,
                      stride, is_rough);
        for (std::size_t s = 0; s < n; ++s)
            for (std::uint64_t rough = is_rough[s]; rough; rough &= rough - 1) {
                const auto q = static_cast<std::size_t>(std::countr_zero(rough));
                if (begin_ + q >= end_) break;  // padding
                out[s * stride + q] = exact_.value<T>(begin_ + q, first + s);
            }
    }

  private:
    const KernelSpec kernel_;
    const Matrix &queries_, &support_;
    const std::vector<T>&query_norms_, &support_norms_;
    const RowLengths &query_lengths_, &support_lengths_;
    const LevelTable<T>& table_ = level().table<T>();
    ExactValues exact_;
    std::vector<std::uint32_t> place_;  // of a feature, in units of query_rows
    AlignedVector<T> side_by_side_;
    std::vector<std::uint32_t> features_;
    std::vector<T> numbers_;
    alignas(64) T norms_[query_rows] = {};
    std::size_t begin_ = 0, end_ = 0;
};

std::size_t entries_per_row(const Matrix& matrix) {
    if (!matrix.is_sparse()) return matrix.n_cols;
    return static_cast<std::size_t>(matrix.row_starts[matrix.n_rows]) /
           std::max<std::size_t>(matrix.n_rows, 1);
}

// All queries and all support rows, made ready for going over them tile by tile.
template <class T>
class Product {
  public:
    Product(const KernelSpec& kernel, const Matrix& queries, const Matrix& support, bool use_bits)
        : kernel_(kernel), queries_(queries), support_(support) {
        if (is_packable(queries) && is_packable(support)) {
            layout_ = std::make_unique<Layout>(kernel, std::vector<Matrix>{support, queries},
                                               nullptr, use_bits);
            columns_ = std::make_unique<Columns<T>>(*layout_, support);
            cost_ = layout_->n_dense() + layout_->n_bytes() / 2 + 8;
        } else {
            query_norms_ = entry_norms<T>(kernel, queries);
            support_norms_ = entry_norms<T>(kernel, support);
            query_lengths_ = std::make_unique<RowLengths>(kernel, queries);
            support_lengths_ = std::make_unique<RowLengths>(kernel, support);
            cost_ = 10 + 2 * entries_per_row(queries);
        }
    }

    std::size_t n_tiles() const { return (queries_.n_rows + query_rows - 1) / query_rows; }

    // Calls the worker's begin(first query, end), then use(first support row, number of them,
    // values) for all support rows, or those from the first query on, then end(), for each of these
    // tiles.
    template <class Worker>
    void run(std::size_t first_tile, std::size_t end_tile, Worker&& worker, Meter& meter,
             bool is_half = false) const {
        std::unique_ptr<Evaluator<T>> evaluator;
        if (layout_)
            evaluator = std::make_unique<TileEvaluator<T>>(kernel_, *layout_, *columns_, queries_);
        else
            evaluator = std::make_unique<SparseEvaluator<T>>(kernel_, queries_, support_,
                                                             query_norms_, support_norms_,
                                                             *query_lengths_, *support_lengths_);
        AlignedVector<T> values(query_rows * support_rows);
        for (std::size_t tile = first_tile; tile < end_tile; ++tile) {
            const std::size_t begin = tile * query_rows;
            const std::size_t end = std::min(begin + query_rows, queries_.n_rows);
            evaluator->load_queries(begin, end);
            worker.begin(begin, end);
            for (std::size_t s = is_half ? begin : 0; s < support_.n_rows; s += support_rows) {
                const std::size_t n = std::min(support_rows, support_.n_rows - s);
                evaluator->values(s, n, values.data());
                worker.use(s, n, values.data());
                meter.tick(places<T>(end - begin) * n * cost_);
            }
            worker.end();
        }
    }

  private:
    const KernelSpec kernel_;
    const Matrix &queries_, &support_;
    std::unique_ptr<Layout> layout_;  // if rows are packed
    std::unique_ptr<Columns<T>> columns_;
    std::vector<T> query_norms_, support_norms_;  // if they are not
    std::unique_ptr<RowLengths> query_lengths_, support_lengths_;
    std::size_t cost_ = 0;  // of a value
};

// Goes over the whole product. `make_worker` is called once per task.
template <class T, class MakeWorker>
void each_tile(const KernelSpec& kernel, const Matrix& queries, const Matrix& support,
               int n_threads, Control& control, MakeWorker&& make_worker, bool is_half = false) {
    const Product<T> product(kernel, queries, support, true);
    // A task is long enough to pay for its buffers and short enough to balance the threads.
    const std::size_t n_tiles = product.n_tiles();
    const std::size_t per_task = std::max<std::size_t>(1, std::min<std::size_t>(n_tiles / 16, 64));
    parallel_for((n_tiles + per_task - 1) / per_task, n_threads, control,
                 [&](std::size_t task, Meter& meter) {
                     product.run(task * per_task, std::min((task + 1) * per_task, n_tiles),
                                 make_worker(), meter, is_half);
                 });
}

// The coefficients of each run of support rows: dense over the machines that occur in it or, if
// many of them would be 0, one list per machine.
template <class T>
struct PackedCoefficients {
    struct Run {
        std::size_t first_machine, n_machines;  // in `machines` and, if listed, `ends`
        std::size_t first_value;                // in `values`: [support row][machine], or lists
        bool listed;
    };
    std::vector<Run> runs;
    std::vector<std::int32_t> machines;
    std::vector<T> values;
    std::vector<std::uint8_t> rows;  // of listed values, within the run
    std::vector<std::size_t> ends;   // of a machine's list

    PackedCoefficients(const Coefficients& c, std::size_t n_support) {
        std::vector<std::int32_t> place(c.n_machines, -1);
        std::vector<T> dense;
        for (std::size_t begin = 0; begin < n_support; begin += support_rows) {
            const std::size_t n = std::min(support_rows, n_support - begin);
            Run run{machines.size(), 0, values.size(), false};
            for (auto p = c.starts[begin]; p < c.starts[begin + n]; ++p) {
                std::int32_t& at = place[static_cast<std::size_t>(c.machines[p])];
                if (at >= 0) continue;
                at = static_cast<std::int32_t>(run.n_machines++);
                machines.push_back(c.machines[p]);
            }
            dense.assign(n * run.n_machines, T(0));
            for (std::size_t s = 0; s < n; ++s)
                for (auto p = c.starts[begin + s]; p < c.starts[begin + s + 1]; ++p)
                    dense[s * run.n_machines +
                          static_cast<std::size_t>(
                              place[static_cast<std::size_t>(c.machines[p])])] +=
                        static_cast<T>(c.values[p]);
            for (std::size_t m = run.first_machine; m < machines.size(); ++m)
                place[static_cast<std::size_t>(machines[m])] = -1;
            const auto n_zero =
                static_cast<std::size_t>(std::count(dense.begin(), dense.end(), T(0)));
            run.listed = 8 * n_zero > dense.size();
            append(dense, n, run);
            runs.push_back(run);
        }
    }

  private:
    void append(const std::vector<T>& dense, std::size_t n, const Run& run) {
        ends.resize(machines.size());
        if (!run.listed) {
            values.insert(values.end(), dense.begin(), dense.end());
            rows.resize(values.size());
            return;
        }
        for (std::size_t m = 0; m < run.n_machines; ++m) {
            for (std::size_t s = 0; s < n; ++s)
                if (const T value = dense[s * run.n_machines + m]; value != T(0)) {
                    values.push_back(value);
                    rows.push_back(static_cast<std::uint8_t>(s));
                }
            ends[run.first_machine + m] = values.size();
        }
    }
};

template <class T>
class Mixer {
  public:
    Mixer(const PackedCoefficients<T>& coefficients, std::size_t n_machines, double* out)
        : coefficients_(coefficients), n_machines_(n_machines), out_(out),
          sums_(n_machines * query_rows), run_sums_(n_machines * query_rows) {}

    void begin(std::size_t begin, std::size_t end) {
        begin_ = begin;
        end_ = end;
        places_ = places<T>(end - begin);
        std::fill(sums_.begin(), sums_.end(), 0.0);
    }

    void use(std::size_t first_support, std::size_t n_support, const T* values) {
        const auto& run = coefficients_.runs[first_support / support_rows];
        const T* coef = coefficients_.values.data() + run.first_value;
        if (run.listed) {
            const std::uint8_t* rows = coefficients_.rows.data() + run.first_value;
            std::size_t done = 0;
            for (std::size_t j = 0; j < run.n_machines; ++j) {
                const std::size_t end = coefficients_.ends[run.first_machine + j] - run.first_value;
                table_.mix_some(sums_of(run, j), values, places_, rows + done, coef + done,
                                end - done, places_);
                done = end;
            }
            return;
        }
        const int n = static_cast<int>(n_support), m = static_cast<int>(run.n_machines);
        if (run.n_machines == n_machines_ && n_machines_ == 1) {
            table_.mix(sums_.data(), query_rows, values, places_, coef, 1, n, 1, places_);
            return;
        }
        std::fill_n(run_sums_.data(), run.n_machines * query_rows, 0.0);
        table_.mix(run_sums_.data(), query_rows, values, places_, coef, run.n_machines, n, m,
                   places_);
        for (std::size_t j = 0; j < run.n_machines; ++j) {
            double* to = sums_of(run, j);
            const double* from = run_sums_.data() + j * query_rows;
            for (std::size_t q = 0; q < places_; ++q) to[q] += from[q];
        }
    }

    void end() {
        for (std::size_t q = begin_; q < end_; ++q)
            for (std::size_t m = 0; m < n_machines_; ++m)
                out_[q * n_machines_ + m] += sums_[m * query_rows + (q - begin_)];
    }

  private:
    // The sums of the j-th machine of a run.
    double* sums_of(const typename PackedCoefficients<T>::Run& run, std::size_t j) {
        const auto machine =
            static_cast<std::size_t>(coefficients_.machines[run.first_machine + j]);
        return sums_.data() + machine * query_rows;
    }

    const PackedCoefficients<T>& coefficients_;
    const std::size_t n_machines_;
    double* out_;
    const LevelTable<T>& table_ = level().table<T>();
    AlignedVector<double> sums_, run_sums_;
    std::size_t begin_ = 0, end_ = 0, places_ = 0;
};

// One of the kernels that decay with the same distances: its values are those of the one before it,
// squared this many times, or new.
struct Decay {
    std::size_t kernel;
    int n_squares;
};

// By gamma, as squares cost less than exponentials. Each of them doubles the relative error, for
// which float32 has no digits to spare.
template <class T>
std::vector<Decay> in_turn(const std::vector<double>& gammas) {
    constexpr int most_squares = sizeof(T) == 8 ? 4 : 0;
    std::vector<Decay> decays;
    for (std::size_t k = 0; k < gammas.size(); ++k) decays.push_back({k, 0});
    std::stable_sort(decays.begin(), decays.end(), [&](const Decay& a, const Decay& b) {
        return gammas[a.kernel] < gammas[b.kernel];
    });
    int n_squares = 0;  // since the last exponential
    for (std::size_t i = 1; i < decays.size(); ++i) {
        int exponent = 0;
        const double ratio = gammas[decays[i].kernel] / gammas[decays[i - 1].kernel];
        const bool is_power = std::frexp(ratio, &exponent) == 0.5;
        if (is_power && n_squares + exponent - 1 <= most_squares)
            n_squares += decays[i].n_squares = exponent - 1;
        else n_squares = 0;
    }
    return decays;
}

// Turns distances into the values of several kernels, and mixes each with its own coefficients.
template <class T>
class DecayMixer {
  public:
    DecayMixer(const std::vector<double>& gammas, const std::vector<PackedCoefficients<T>>& packed,
               std::size_t n_machines, double* out)
        : gammas_(gammas), decays_(in_turn<T>(gammas)), values_(query_rows * support_rows) {
        for (const auto& coefficients : packed) mixers_.emplace_back(coefficients, n_machines, out);
    }

    void begin(std::size_t begin, std::size_t end) {
        places_ = places<T>(end - begin);
        for (auto& mixer : mixers_) mixer.begin(begin, end);
    }
    void use(std::size_t first_support, std::size_t n_support, const T* distances) {
        const std::size_t n = places_ * n_support;
        for (const Decay& decay : decays_) {
            if (decay.n_squares) table_.square(values_.data(), decay.n_squares, n);
            else table_.decay(distances, gammas_[decay.kernel], values_.data(), n);
            mixers_[decay.kernel].use(first_support, n_support, values_.data());
        }
    }
    void end() {
        for (auto& mixer : mixers_) mixer.end();
    }

  private:
    const std::vector<double>& gammas_;
    const std::vector<Decay> decays_;
    const PathTable<T>& table_ = level().paths<T>();
    AlignedVector<T> values_;
    std::size_t places_ = 0;
    std::vector<Mixer<T>> mixers_;
};

KernelSpec distance_of(KernelKind metric) {
    KernelSpec distance{metric};
    distance.metric_only = true;
    return distance;
}

template <class T>
std::vector<PackedCoefficients<T>> pack_all(const std::vector<Coefficients>& coefficients,
                                            std::size_t n_support) {
    std::vector<PackedCoefficients<T>> packed;
    for (const Coefficients& of_kernel : coefficients) packed.emplace_back(of_kernel, n_support);
    return packed;
}

template <class T>
class Writer {
  public:
    // With `is_half`, values are written to both sides of the diagonal.
    Writer(T* out, std::size_t stride, bool is_half)
        : out_(out), stride_(stride), is_half_(is_half) {}

    void begin(std::size_t begin, std::size_t end) {
        begin_ = begin;
        end_ = end;
    }
    void use(std::size_t first_support, std::size_t n_support, const T* values) {
        const std::size_t stride = places<T>(end_ - begin_);
        for (std::size_t q = begin_; q < end_; ++q)
            for (std::size_t s = 0; s < n_support; ++s)
                out_[q * stride_ + first_support + s] = values[s * stride + (q - begin_)];
        if (!is_half_ || first_support == begin_) return;
        for (std::size_t s = 0; s < n_support; ++s)
            std::copy_n(values + s * stride, end_ - begin_,
                        out_ + (first_support + s) * stride_ + begin_);
    }
    void end() {}

  private:
    T* out_;
    const std::size_t stride_;
    const bool is_half_;
    std::size_t begin_ = 0, end_ = 0;
};

bool are_same(const Matrix& a, const Matrix& b) {
    return a.data == b.data && a.n_rows == b.n_rows && a.n_cols == b.n_cols &&
           a.is_double == b.is_double && a.row_stride == b.row_stride &&
           a.col_stride == b.col_stride && a.indices == b.indices && a.row_starts == b.row_starts;
}

}  // namespace

bool is_packable(const Matrix& matrix) {
    if (!matrix.is_sparse()) return true;
    constexpr std::size_t widest = 4096;
    if (matrix.n_cols > widest) return false;
    // A tile lane costs a fraction of a gathered entry.
    return matrix.n_cols <= 512 || entries_per_row(matrix) * 16 >= matrix.n_cols;
}

template <class T>
void expand(const KernelSpec& kernel, const Matrix& queries, const Matrix& support,
            const Coefficients& coefficients, double* out, int n_threads, Control& control) {
    const PackedCoefficients<T> packed(coefficients, support.n_rows);
    std::fill_n(out, queries.n_rows * coefficients.n_machines, 0.0);
    each_tile<T>(kernel, queries, support, n_threads, control,
                 [&] { return Mixer<T>(packed, coefficients.n_machines, out); });
}

template <class T>
void expand_decays(KernelKind metric, const std::vector<double>& gammas, const Matrix& queries,
                   const Matrix& support, const std::vector<Coefficients>& coefficients,
                   double* out, int n_threads, Control& control) {
    const auto packed = pack_all<T>(coefficients, support.n_rows);
    const std::size_t n_machines = coefficients.front().n_machines;
    each_tile<T>(distance_of(metric), queries, support, n_threads, control,
                 [&] { return DecayMixer<T>(gammas, packed, n_machines, out); });
}

template <class T>
void add_decays(KernelKind metric, const std::vector<double>& gammas, const Matrix& queries,
                const Matrix& support, const std::vector<Coefficients>& coefficients, double* out,
                Meter& meter) {
    const auto packed = pack_all<T>(coefficients, support.n_rows);
    // Whether columns have two values can depend on the other queries, so bits are not used.
    const Product<T> product(distance_of(metric), queries, support, false);
    product.run(0, product.n_tiles(),
                DecayMixer<T>(gammas, packed, coefficients.front().n_machines, out), meter);
}

template <class T>
void kernel_block(const KernelSpec& kernel, const Matrix& queries, const Matrix& support, T* out,
                  std::size_t stride, int n_threads, Control& control) {
    const bool is_half = are_same(queries, support);
    static_assert(query_rows == support_rows);  // so that blocks mirror each other
    each_tile<T>(
        kernel, queries, support, n_threads, control,
        [&] { return Writer<T>(out, stride, is_half); }, is_half);
}

template <class T>
void distance_block(KernelKind metric, const T* points, std::size_t n, std::size_t width,
                    std::size_t first, std::size_t end, T* out, Meter& meter) {
    Matrix support;
    support.n_rows = n;
    support.n_cols = width;
    support.is_double = sizeof(T) == sizeof(double);
    support.data = points;
    support.row_stride = static_cast<std::ptrdiff_t>(width);
    Matrix queries = support;
    queries.n_rows = end - first;
    queries.data = points + first * width;
    const bool is_half = are_same(queries, support);
    const Product<T> product(distance_of(metric), queries, support, true);
    product.run(0, product.n_tiles(), Writer<T>(out, n, is_half), meter, is_half);
}

template void expand<float>(const KernelSpec&, const Matrix&, const Matrix&, const Coefficients&,
                            double*, int, Control&);
template void expand<double>(const KernelSpec&, const Matrix&, const Matrix&, const Coefficients&,
                             double*, int, Control&);
template void expand_decays<float>(KernelKind, const std::vector<double>&, const Matrix&,
                                   const Matrix&, const std::vector<Coefficients>&, double*, int,
                                   Control&);
template void expand_decays<double>(KernelKind, const std::vector<double>&, const Matrix&,
                                    const Matrix&, const std::vector<Coefficients>&, double*, int,
                                    Control&);
template void add_decays<float>(KernelKind, const std::vector<double>&, const Matrix&,
                                const Matrix&, const std::vector<Coefficients>&, double*, Meter&);
template void distance_block<float>(KernelKind, const float*, std::size_t, std::size_t, std::size_t,
                                    std::size_t, float*, Meter&);
template void distance_block<double>(KernelKind, const double*, std::size_t, std::size_t,
                                     std::size_t, std::size_t, double*, Meter&);
template void kernel_block<float>(const KernelSpec&, const Matrix&, const Matrix&, float*,
                                  std::size_t, int, Control&);
template void kernel_block<double>(const KernelSpec&, const Matrix&, const Matrix&, double*,
                                   std::size_t, int, Control&);

}  // namespace hardmargin
