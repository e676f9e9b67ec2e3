// The hot loops. This file is compiled once per CPU level with HARDMARGIN_LEVEL_NAME set, each
// time with different compiler flags. Everything in it except the one table is internal, so that
// no code built for a newer CPU can be linked into the rest.
//
// It is written in GCC's vector extensions: one source for every width.
#include "hardmargin/level.hpp"

#include "level/logistic.hpp"
#include "level/pairs.hpp"
#include "level/products.hpp"
#include "level/strips.hpp"
#include "level/sums.hpp"
#include "level/tiles.hpp"
#include "level/tilts.hpp"

namespace hardmargin {
namespace {

template <class T>
constexpr LevelTable<T> table = {.values = values<T>,
                                 .products = products<T>,
                                 .tile_norms = tile_norms<T>,
                                 .column_norms = column_norms<T>,
                                 .entry_products = entry_products<T>,
                                 .entry_norm = entry_norm<T>,
                                 .finish = finish<T>,
                                 .reach = reach<T>,
                                 .accumulate = accumulate<T>,
                                 .mix = mix<T>,
                                 .mix_some = mix_some<T>,
                                 .exchange = exchange<T>,
                                 .partner = partner<T>,
                                 .adjust = adjust<T>,
                                 .companion = companion<T>};

template <class T>
constexpr PathTable<T> paths = {.strip_product = strip_product<T, T>,
                                .strip_product_16 = strip_product<T, std::uint16_t>,
                                .strip_dots = strip_dots<T>,
                                .decay = decay<T>,
                                .square = square<T>,
                                .decay_16 = decay_16<T>,
                                .logistic = logistic<T>,
                                .temper = temper<T>,
                                .log_loss = log_loss<T>,
                                .step = step_sums<T>,
                                .advance = advance<T>};

#define HARDMARGIN_STRING_(x) #x
#define HARDMARGIN_STRING(x) HARDMARGIN_STRING_(x)

}  // namespace

#define HARDMARGIN_TABLE_(name) level_##name
#define HARDMARGIN_TABLE(name) HARDMARGIN_TABLE_(name)

extern const Level HARDMARGIN_TABLE(HARDMARGIN_LEVEL_NAME);
const Level HARDMARGIN_TABLE(HARDMARGIN_LEVEL_NAME) = {
    .name = HARDMARGIN_STRING(HARDMARGIN_LEVEL_NAME),
    .float32 = table<float>,
    .float64 = table<double>,
    .paths_float32 = paths<float>,
    .paths_float64 = paths<double>,
    .scan = {.largest = largest, .longest_step = longest_step, .tilt = tilt}};

}  // namespace hardmargin
