// How columns are packed, and how rows are put into blocks.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "hardmargin/layout.hpp"
#include "hardmargin/matrix.hpp"
#include "hardmargin/rows.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

constexpr KernelSpec rbf{KernelKind::rbf, 0.5, 0, 3};
constexpr KernelSpec laplacian{KernelKind::laplacian, 0.5, 0, 3};
constexpr KernelSpec linear{KernelKind::linear, 0.5, 0, 3};

// Rows in C order, and views of them.
struct Table {
    std::size_t n, d;
    std::vector<double> x;

    Table(std::size_t n_rows, std::size_t n_cols, std::vector<double> entries)
        : n(n_rows), d(n_cols), x(std::move(entries)) {}

    double at(std::size_t i, std::size_t k) const { return x[i * d + k]; }
    Matrix matrix() const {
        Matrix m;
        m.n_rows = n;
        m.n_cols = d;
        m.data = x.data();
        m.row_stride = static_cast<std::ptrdiff_t>(d);
        return m;
    }
};

// Continuous, constant, and two-valued columns with steps 1 (six), 0.5 (nine) and 3 (two).
Table mixed_table(std::size_t n, Random& random) {
    constexpr std::size_t d = 21;
    Table table(n, d, std::vector<double>(n * d));
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < d; ++k) {
            const auto bit = static_cast<double>(i < 2 ? i : random.below(2));
            double& x = table.x[i * d + k];
            if (k < 2) x = 100 + random.normal();
            else if (k == 2) x = 7;
            else if (k < 10) x = k == 6 ? 100 + random.normal() : 2 + bit;
            else if (k < 19) x = 0.5 * bit;
            else x = 3 * bit;
        }
    return table;
}

double distance(const KernelSpec& kernel, const double* x, const double* z, std::size_t d) {
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k)
        sum +=
            kernel.kind == KernelKind::rbf ? (x[k] - z[k]) * (x[k] - z[k]) : std::abs(x[k] - z[k]);
    return sum;
}

// A row packed alone.
struct Packed {
    std::vector<double> dense;
    std::vector<std::uint8_t> bytes;

    Packed(const Layout& layout, const double* row)
        : dense(layout.n_dense()), bytes(layout.n_bytes()) {
        layout.pack_row(row, dense.data(), 1, bytes.data(), 1);
    }
};

double distance(const KernelSpec& kernel, const Layout& layout, const Packed& x, const Packed& z) {
    double sum = distance(kernel, x.dense.data(), z.dense.data(), x.dense.size());
    std::size_t at = 0;
    const TileShape shape = layout.shape();
    for (int g = 0; g < shape.n_groups; ++g)
        for (int i = 0; i < shape.groups[g].bytes(); ++i, ++at) {
            const std::uint8_t a = x.bytes[at], b = z.bytes[at];
            const bool is_quad = i < shape.groups[g].quads;
            const int bundled = a == b ? 0 : a == 0 || b == 0 ? 1 : 2;
            sum += shape.groups[g].weight *
                   (is_quad ? std::popcount(static_cast<unsigned>(a ^ b)) : bundled);
        }
    CHECK(at == x.bytes.size());
    return sum;
}

void check_packing_keeps_distances(const Table& table) {
    for (const KernelSpec& kernel : {rbf, laplacian})
        for (const bool use_bits : {true, false}) {
            const Layout layout(kernel, {table.matrix()}, nullptr, use_bits);
            for (std::size_t i = 0; i < table.n; ++i)
                for (std::size_t j = i % 7; j < i; j += 7) {
                    const double *x = &table.x[i * table.d], *z = &table.x[j * table.d];
                    CHECK_CLOSE(distance(kernel, layout, Packed(layout, x), Packed(layout, z)),
                                distance(kernel, x, z, table.d), 1e-12);
                }
        }
}

void test_packing_keeps_distances() {
    Random random(1);
    check_packing_keeps_distances(mixed_table(40, random));
}

// `n_categories` columns. Row i has the one given by its code; the code n_categories gives none.
Table one_hot_table(const std::vector<std::size_t>& codes, std::size_t n_categories) {
    Table table(codes.size(), n_categories, std::vector<double>(codes.size() * n_categories));
    for (std::size_t i = 0; i < codes.size(); ++i)
        if (codes[i] < n_categories) table.x[i * n_categories + codes[i]] = 1;
    return table;
}

std::vector<std::size_t> counting_codes(std::size_t n, std::size_t below) {
    std::vector<std::size_t> codes(n);
    for (std::size_t i = 0; i < n; ++i) codes[i] = i % below;
    return codes;
}

void test_one_hot_columns_share_a_byte() {
    const Table all_have_one = one_hot_table(counting_codes(60, 20), 20);
    check_packing_keeps_distances(all_have_one);
    const Layout complete(rbf, {all_have_one.matrix()}, nullptr, true);
    CHECK(complete.n_bytes() == 1);
    CHECK(complete.shape().groups[0].complete == 1);

    const Table some_have_none = one_hot_table(counting_codes(60, 21), 20);
    check_packing_keeps_distances(some_have_none);
    const Layout partial(rbf, {some_have_none.matrix()}, nullptr, true);
    CHECK(partial.n_bytes() == 1);
    CHECK(partial.shape().groups[0].partial == 1);
}

void test_more_categories_than_a_byte_holds_take_several() {
    const Table table = one_hot_table(counting_codes(310, 301), 300);
    check_packing_keeps_distances(table);
    CHECK(Layout(rbf, {table.matrix()}, nullptr, true).n_bytes() >= 2);
}

void test_other_matrices_can_end_a_bundle() {
    const Table table = one_hot_table(counting_codes(60, 20), 20);
    Table queries = one_hot_table({3, 4}, 20);
    queries.x[17] = 1;  // the first query has two categories
    const Layout layout(rbf, {table.matrix(), queries.matrix()}, nullptr, true);
    const Packed x(layout, &table.x[0]), z(layout, &queries.x[0]);
    CHECK(distance(rbf, layout, x, z) == 3);
}

void test_two_valued_columns_of_one_step_share_a_group() {
    Random random(2);
    const Table table = mixed_table(30, random);
    const Layout layout(rbf, {table.matrix()}, nullptr, true);
    const TileShape shape = layout.shape();
    CHECK(layout.has_bits());
    CHECK(shape.n_groups == 2);
    CHECK(shape.groups[0].weight == 0.25);
    CHECK(shape.groups[1].weight == 1.0);
    CHECK(layout.n_dense() == 5);  // three continuous columns, and too few of step 3 for bits
    const Layout absolute(laplacian, {table.matrix()}, nullptr, true);
    CHECK(absolute.shape().groups[0].weight == 0.5);
}

void test_bits_can_be_refused() {
    Random random(3);
    const Table table = mixed_table(30, random);
    const Layout layout(rbf, {table.matrix()}, nullptr, false);
    CHECK(!layout.has_bits());
    CHECK(layout.n_dense() == 20);  // all but the constant one
}

void test_dense_columns_are_centred() {
    const Table table(3, 2, {1e6, 1, 1e6 + 3, 4, 1e6 + 6, 2});
    const Layout layout(rbf, {table.matrix()}, nullptr, true);
    CHECK_CLOSE(Packed(layout, &table.x[0]).dense[0], -3.0, 1e-15);
    CHECK_CLOSE(Packed(layout, &table.x[2]).dense[0], 0.0, 1e-15);
}

void test_dot_products_take_columns_as_they_are() {
    Random random(4);
    const Table table = mixed_table(10, random);
    const Layout layout(linear, {table.matrix()}, nullptr, true);
    CHECK(!layout.has_bits());
    CHECK(layout.n_dense() == table.d);
    const Packed row(layout, &table.x[table.d]);
    for (std::size_t k = 0; k < table.d; ++k) CHECK(row.dense[k] == table.at(1, k));
}

void test_other_matrices_can_end_a_column_of_two_values() {
    Random random(5);
    const Table table = mixed_table(30, random);
    Table queries(1, table.d, {table.x.begin(), table.x.begin() + 21});
    queries.x[4] = 17.0;  // one of the six of step 1
    const Layout layout(rbf, {table.matrix(), queries.matrix()}, nullptr, true);
    CHECK(layout.n_dense() == 6);
    CHECK(layout.shape().n_groups == 2);
}

void test_columns_that_only_queries_change_become_one_number() {
    Random random(9);
    const Table table = mixed_table(30, random);
    Table wider(30, 24, {}), queries(20, 24, {});
    for (std::size_t i = 0; i < 30; ++i)
        for (std::size_t k = 0; k < 24; ++k)
            wider.x.push_back(k < 21 ? table.at(i, k) : k == 21 ? 0.0 : -1.5);
    for (std::size_t i = 0; i < 20; ++i)
        for (std::size_t k = 0; k < 24; ++k)
            queries.x.push_back(k < 21 ? table.at(i, k) : random.normal());
    for (const KernelSpec& kernel : {rbf, laplacian}) {
        const Layout plain(kernel, {table.matrix()}, nullptr, true);
        const Layout layout(kernel, {wider.matrix(), queries.matrix()}, nullptr, true);
        CHECK(layout.n_dense() == plain.n_dense() + 1);
        CHECK(layout.n_bytes() == plain.n_bytes());
        for (std::size_t i = 0; i < 20; ++i)
            for (std::size_t j = 0; j < 30; ++j)
                CHECK_CLOSE(distance(kernel, layout, Packed(layout, &queries.x[i * 24]),
                                     Packed(layout, &wider.x[j * 24])),
                            distance(kernel, &queries.x[i * 24], &wider.x[j * 24], 24), 1e-12);
    }
}

void test_only_the_given_rows_are_looked_at() {
    // The last row alone would make the second column vary.
    const Table table(3, 2, {1, 5, 2, 5, 4, 9});
    const std::vector<std::int32_t> rows{0, 1};
    CHECK(Layout(rbf, {table.matrix()}, &rows, true).n_dense() == 1);
    CHECK(Layout(rbf, {table.matrix()}, nullptr, true).n_dense() == 2);
}

void test_sparse_rows_are_not_centred() {
    const std::vector<double> data{2, 3, 4};
    const std::vector<std::int32_t> indices{0, 0, 1};
    const std::vector<std::int64_t> starts{0, 1, 3, 3};
    Matrix m;
    m.n_rows = 3;
    m.n_cols = 2;
    m.data = data.data();
    m.indices = indices.data();
    m.row_starts = starts.data();
    const Layout layout(rbf, {m}, nullptr, true);
    RowReader read(m);
    const Packed second(layout, read(1)), empty(layout, read(2));
    CHECK(second.dense == (std::vector<double>{3, 4}));
    CHECK(empty.dense == (std::vector<double>{0, 0}));
}

void test_rows_are_read_from_any_memory() {
    const std::vector<double> doubles{1, 2, 3, 4, 5, 6};
    const std::vector<float> floats{1, 2, 3, 4, 5, 6};
    Matrix m;
    m.n_rows = 2;
    m.n_cols = 3;
    for (const bool is_double : {true, false}) {
        m.is_double = is_double;
        m.data = is_double ? static_cast<const void*>(doubles.data()) : floats.data();
        m.row_stride = 3;
        m.col_stride = 1;
        CHECK(RowReader(m)(1)[2] == 6);
        m.row_stride = 1;  // Fortran order
        m.col_stride = 2;
        CHECK(RowReader(m)(1)[2] == 6);
        CHECK(RowReader(m)(0)[1] == 3);
    }
    m.is_double = true;  // both orders reversed
    m.data = doubles.data() + 5;
    m.row_stride = -3;
    m.col_stride = -1;
    CHECK(RowReader(m)(0)[0] == 6);
    CHECK(RowReader(m)(1)[2] == 1);
}

// Every row once, all blocks but the last full, ids ascending, and each row where its id says.
template <class T>
void check_blocks(const PackedRows<T>& packed, const Layout& layout, const Table& table,
                  std::vector<std::int32_t> rows, std::size_t block_rows) {
    std::vector<std::int32_t> seen;
    for (std::size_t b = 0; b < packed.blocks.size(); ++b) {
        const auto& block = packed.blocks[b];
        CHECK(b + 1 == packed.blocks.size() || block.n_rows == block_rows);
        CHECK(block.n_tiles * lanes<T> >= block.n_rows);
        const std::int32_t* ids = packed.ids.data() + block.first_tile * lanes<T>;
        CHECK(std::is_sorted(ids, ids + block.n_rows));
        for (std::size_t i = block.n_rows; i < block.n_tiles * lanes<T>; ++i) CHECK(ids[i] == -1);
        for (std::size_t i = 0; i < block.n_rows; ++i) {
            seen.push_back(ids[i]);
            const Packed row(layout, &table.x[static_cast<std::size_t>(ids[i]) * table.d]);
            const std::size_t tile = block.first_tile + i / lanes<T>;
            for (std::size_t k = 0; k < layout.n_dense(); ++k)
                CHECK(packed.dense[(tile * layout.n_dense() + k) * lanes<T> + i % lanes<T>] ==
                      static_cast<T>(row.dense[k]));
            const std::size_t strip = block.first_strip + i / strip_rows;
            for (std::size_t w = 0; w < layout.n_bytes(); ++w)
                CHECK(packed.bytes[(strip * layout.n_bytes() + w) * strip_rows + i % strip_rows] ==
                      row.bytes[w]);
        }
    }
    std::sort(seen.begin(), seen.end());
    CHECK(seen == rows);
}

template <class T>
void test_blocks_hold_every_row_once() {
    Random random(6);
    const Table table = mixed_table(333, random);
    const Layout layout(rbf, {table.matrix()}, nullptr, true);
    Control control;
    Meter meter(control, true);
    std::vector<std::int32_t> odd, one{17}, none;
    for (std::int32_t i = 1; i < 333; i += 2) odd.push_back(i);
    for (const auto& rows : {odd, one, none})
        for (const BlockOrder order : {BlockOrder::natural, BlockOrder::kd_tree})
            for (const std::size_t block_rows : {16, 64, 100, 256})
                for (const char* folder : {"", "/tmp"})
                    check_blocks(pack_rows<T>(layout, table.matrix(), rows, order, block_rows,
                                              nullptr, folder, meter),
                                 layout, table, rows, block_rows);
}

void test_kd_blocks_hold_neighbours() {
    // Two clouds far apart whose rows alternate: a block of the kd-tree has rows of one only.
    Random random(7);
    Table table(128, 3, random.normals(128 * 3));
    for (std::size_t i = 0; i < 128; i += 2) table.x[i * 3 + 1] += 50;
    const Layout layout(rbf, {table.matrix()}, nullptr, true);
    Control control;
    Meter meter(control, true);
    std::vector<std::int32_t> rows(128);
    for (std::size_t i = 0; i < 128; ++i) rows[i] = static_cast<std::int32_t>(i);
    const auto packed = pack_rows<double>(layout, table.matrix(), rows, BlockOrder::kd_tree, 16,
                                          nullptr, "", meter);
    for (const auto& block : packed.blocks) {
        const std::int32_t* ids = packed.ids.data() + block.first_tile * lanes<double>;
        for (std::size_t i = 1; i < block.n_rows; ++i) CHECK(ids[i] % 2 == ids[0] % 2);
    }
}

void test_equal_rows_are_packed_once() {
    // Six two-valued columns, of which only two differ between rows: four kinds of rows.
    Table table(40, 6, std::vector<double>(240, 0.0));
    for (std::size_t i = 0; i < 40; ++i)
        for (std::size_t k = 0; k < 6; ++k)
            table.x[i * 6 + k] = static_cast<double>((k < 3 ? i / 2 : i) % 2);
    const Layout layout(rbf, {table.matrix()}, nullptr, true);
    Control control;
    Meter meter(control, true);
    std::vector<std::int32_t> rows(40), next_copy(40, -1);
    for (std::size_t i = 0; i < 40; ++i) rows[i] = static_cast<std::int32_t>(i);
    for (const BlockOrder order : {BlockOrder::natural, BlockOrder::kd_tree}) {
        const auto packed =
            pack_rows<double>(layout, table.matrix(), rows, order, 16, next_copy.data(), "", meter);
        CHECK(packed.blocks.size() == 1 && packed.blocks[0].n_rows == 4);
        for (std::size_t i = 0; i < 4; ++i) CHECK(packed.ids[i] == static_cast<std::int32_t>(i));
        for (std::size_t i = 0; i < 40; ++i)
            CHECK(next_copy[i] == (i < 36 ? static_cast<std::int32_t>(i) + 4 : -1));
    }
}

// Numbers, bits and centres are those of the same rows in doubles, from any place in memory.
void test_rows_of_floats_are_packed_like_their_doubles() {
    Random random(5);
    Table table = mixed_table(60, random);
    const std::vector<float> floats(table.x.begin(), table.x.end());
    std::copy(floats.begin(), floats.end(), table.x.begin());
    Matrix in_floats = table.matrix();
    in_floats.is_double = false;
    in_floats.data = floats.data();
    const Layout expected(rbf, {table.matrix(), table.matrix()}, nullptr, true);
    const Layout layout(rbf, {in_floats, in_floats}, nullptr, true);
    CHECK(layout.has_bits());
    CHECK(layout.n_dense() == expected.n_dense());
    CHECK(layout.n_bytes() == expected.n_bytes());
    RowPacker pack(layout, in_floats);
    for (const std::size_t stride : {1, 3})
        for (std::size_t i = 0; i < table.n; ++i) {
            const Packed row(expected, table.x.data() + i * table.d);
            std::vector<double> dense(layout.n_dense() * stride);
            std::vector<std::uint8_t> bytes(layout.n_bytes());
            pack(i, dense.data(), stride, bytes.data(), 1);
            for (std::size_t k = 0; k < layout.n_dense(); ++k)
                CHECK(dense[k * stride] == row.dense[k]);
            CHECK(bytes == row.bytes);
        }
}

}  // namespace

int main() {
    test_rows_of_floats_are_packed_like_their_doubles();
    test_equal_rows_are_packed_once();
    test_packing_keeps_distances();
    test_one_hot_columns_share_a_byte();
    test_more_categories_than_a_byte_holds_take_several();
    test_other_matrices_can_end_a_bundle();
    test_two_valued_columns_of_one_step_share_a_group();
    test_bits_can_be_refused();
    test_dense_columns_are_centred();
    test_dot_products_take_columns_as_they_are();
    test_other_matrices_can_end_a_column_of_two_values();
    test_columns_that_only_queries_change_become_one_number();
    test_only_the_given_rows_are_looked_at();
    test_sparse_rows_are_not_centred();
    test_rows_are_read_from_any_memory();
    test_blocks_hold_every_row_once<float>();
    test_blocks_hold_every_row_once<double>();
    test_kd_blocks_hold_neighbours();
}
