// Every algorithm for grid_sample, affine_grid and their gradients against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::grid_sample_test {
namespace {

using Names = std::vector<std::string>;

const Names forward = {"grid_sample_simple", "grid_sample_pixels"};
const Names by_data = {"grid_sample_backward_data_simple", "grid_sample_backward_data_exact"};
const Names by_grid = {"grid_sample_backward_grid_simple", "grid_sample_backward_grid_pixels"};

class GridSampleTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(GridSampleTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

constexpr auto linear = "grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2";
constexpr auto channels_last = "grid_sample x=f16:2x40x5x7:nhwc grid=f32:2x4x6x2 padding=reflection";
constexpr auto data = "grid_sample_backward_data dy=f32:2x3x4x6 grid=f32:2x4x6x2 dx=f32:2x3x5x7";
constexpr auto data_channels_last =
    "grid_sample_backward_data dy=f16:2x40x4x6:nhwc grid=f32:2x4x6x2 dx=f16:2x40x5x7:nhwc padding=reflection";
constexpr auto by_the_grid = "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2";
constexpr auto by_the_grid_channels_last =
    "grid_sample_backward_grid dy=f16:2x40x4x6:nhwc x=f16:2x40x5x7:nhwc grid=f32:2x4x6x2 padding=reflection";

INSTANTIATE_TEST_SUITE_P(
    Forward, GridSampleTest,
    testing::Values(
        AlgorithmCase{"Linear", linear, forward}, AlgorithmCase{"ChannelsLast", channels_last, forward},
        AlgorithmCase{"Nearest", "grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 mode=nearest", forward},
        AlgorithmCase{"Cubic", "grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 mode=cubic", forward},
        AlgorithmCase{"Border", "grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 padding=border ends=centres", forward},
        AlgorithmCase{"ReflectionCentres", "grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 padding=reflection ends=centres",
                      forward},
        AlgorithmCase{"CubicReflection", "grid_sample x=f16:2x3x5x7 grid=f16:2x4x6x2 mode=cubic padding=reflection",
                      forward},
        AlgorithmCase{"CubicBorder",
                      "grid_sample x=bf16:2x3x5x7 grid=f32:2x4x6x2 mode=cubic padding=border ends=centres", forward},
        AlgorithmCase{"NearestBorder", "grid_sample x=f32:2x3x5x7 grid=bf16:2x4x6x2 mode=nearest padding=border",
                      forward},
        AlgorithmCase{"Volume", "grid_sample x=f32:2x3x3x5x7 grid=f32:2x2x4x3x3 alpha=any beta=any", forward},
        AlgorithmCase{"VolumeNearest", "grid_sample x=f16:2x3x3x5x7 grid=f32:2x2x4x3x3 mode=nearest padding=reflection",
                      forward},
        AlgorithmCase{"Regions",
                      "grid_sample x=f32:2x3x5x7:200,50,9,1 grid=f32:2x4x6x2:90,20,3,1 y=f32:2x3x4x6:150,40,8,1",
                      forward},
        AlgorithmCase{"RegionsInF16",
                      "grid_sample x=f16:2x3x5x7:200,50,9,1 grid=f16:2x4x6x2:90,20,3,1 y=f16:2x3x4x6:150,40,8,1",
                      forward},
        AlgorithmCase{"RegionsInBF16",
                      "grid_sample x=bf16:2x3x5x7:200,50,9,1 grid=bf16:2x4x6x2:90,20,3,1 y=bf16:2x3x4x6:150,40,8,1",
                      forward},
        AlgorithmCase{"CoordinatesApart", "grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2:48,6,1,24", forward},
        AlgorithmCase{"CoordinatesOfVolumesApart", "grid_sample x=f32:2x3x3x5x7 grid=f32:2x2x4x3x3:72,12,3,1,24",
                      forward},
        AlgorithmCase{"BetweenTwo", "grid_sample x=f32:2x3x6x10 grid=f32:2x4x6x2 mode=nearest", forward},
        AlgorithmCase{"OneElement", "grid_sample x=f32:1x1x1x1 grid=f32:1x1x3x2 ends=centres padding=reflection",
                      forward},
        AlgorithmCase{"NoPositions", "grid_sample x=f32:1x1x3x3 grid=f32:1x0x3x2", forward},
        AlgorithmCase{"NoChannels", "grid_sample x=f32:1x0x3x3 grid=f32:1x2x3x2", forward},
        AlgorithmCase{"EmptyBatch", "grid_sample x=f32:0x2x3x3 grid=f32:0x2x3x2", forward},
        AlgorithmCase{"DynamicBatch", "grid_sample x=f32:8x3x5x4 grid=f32:8x3x2x2 n=?", forward}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByData, GridSampleTest,
    testing::Values(
        AlgorithmCase{"Linear", data, by_data}, AlgorithmCase{"ChannelsLast", data_channels_last, by_data},
        AlgorithmCase{"Nearest",
                      "grid_sample_backward_data dy=f32:2x3x4x6 grid=f32:2x4x6x2 dx=f32:2x3x5x7 mode=nearest", by_data},
        AlgorithmCase{"Cubic", "grid_sample_backward_data dy=f32:2x3x4x6 grid=f32:2x4x6x2 dx=f32:2x3x5x7 mode=cubic",
                      by_data},
        AlgorithmCase{"CubicReflection",
                      "grid_sample_backward_data dy=bf16:2x3x4x6 grid=f32:2x4x6x2 dx=f32:2x3x5x7 mode=cubic "
                      "padding=reflection alpha=any beta=any",
                      by_data},
        AlgorithmCase{"ManyPositions",
                      "grid_sample_backward_data dy=f32:1x2x40x50 grid=f32:1x40x50x2 dx=f32:1x2x2x3 padding=border",
                      by_data},
        AlgorithmCase{"Volume", "grid_sample_backward_data dy=f32:2x3x2x4x3 grid=f32:2x2x4x3x3 dx=f32:2x3x3x5x7",
                      by_data},
        AlgorithmCase{"Regions",
                      "grid_sample_backward_data dy=f32:2x3x4x6:150,40,8,1 grid=f32:2x4x6x2:90,20,3,1 "
                      "dx=f32:2x3x5x7:200,50,9,1",
                      by_data},
        AlgorithmCase{"RegionsInF16",
                      "grid_sample_backward_data dy=f16:2x3x4x6:150,40,8,1 grid=f16:2x4x6x2:90,20,3,1 "
                      "dx=f16:2x3x5x7:200,50,9,1",
                      by_data},
        AlgorithmCase{"RegionsInBF16",
                      "grid_sample_backward_data dy=bf16:2x3x4x6:150,40,8,1 grid=bf16:2x4x6x2:90,20,3,1 "
                      "dx=bf16:2x3x5x7:200,50,9,1",
                      by_data},
        AlgorithmCase{"CoordinatesApart",
                      "grid_sample_backward_data dy=f32:2x3x4x6 grid=f32:2x4x6x2:48,6,1,24 dx=f32:2x3x5x7", by_data},
        AlgorithmCase{"NoPositions", "grid_sample_backward_data dy=f32:1x1x0x3 grid=f32:1x0x3x2 dx=f32:1x1x3x3",
                      by_data},
        AlgorithmCase{"EmptyBatch", "grid_sample_backward_data dy=f32:0x2x2x3 grid=f32:0x2x3x2 dx=f32:0x2x3x3",
                      by_data},
        AlgorithmCase{"DynamicBatch", "grid_sample_backward_data dy=f32:8x3x3x2 grid=f32:8x3x2x2 dx=f32:8x3x5x4 n=?",
                      by_data}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByGrid, GridSampleTest,
    testing::Values(
        AlgorithmCase{"Linear", by_the_grid, by_grid},
        AlgorithmCase{"ChannelsLast", by_the_grid_channels_last, by_grid},
        AlgorithmCase{"Nearest", "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2 mode=nearest",
                      by_grid},
        AlgorithmCase{"Cubic", "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2 mode=cubic",
                      by_grid},
        AlgorithmCase{"Border",
                      "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2 padding=border "
                      "ends=centres",
                      by_grid},
        AlgorithmCase{"Reflection",
                      "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2 padding=reflection "
                      "ends=centres alpha=any beta=any",
                      by_grid},
        AlgorithmCase{"Volume", "grid_sample_backward_grid dy=f32:2x3x2x4x3 x=f32:2x3x3x5x7 grid=f32:2x2x4x3x3",
                      by_grid},
        AlgorithmCase{"Regions",
                      "grid_sample_backward_grid dy=f32:2x3x4x6:150,40,8,1 x=f32:2x3x5x7:200,50,9,1 "
                      "grid=f32:2x4x6x2:90,20,3,1 dgrid=f32:2x4x6x2:110,26,4,1",
                      by_grid},
        AlgorithmCase{"RegionsInF16",
                      "grid_sample_backward_grid dy=f16:2x3x4x6:150,40,8,1 x=f16:2x3x5x7:200,50,9,1 "
                      "grid=f16:2x4x6x2:90,20,3,1 dgrid=f16:2x4x6x2:110,26,4,1",
                      by_grid},
        AlgorithmCase{"RegionsInBF16",
                      "grid_sample_backward_grid dy=bf16:2x3x4x6:150,40,8,1 x=bf16:2x3x5x7:200,50,9,1 "
                      "grid=bf16:2x4x6x2:90,20,3,1 dgrid=bf16:2x4x6x2:110,26,4,1",
                      by_grid},
        AlgorithmCase{"CoordinatesApart",
                      "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2:48,6,1,24", by_grid},
        AlgorithmCase{"GradientsApart",
                      "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2 "
                      "dgrid=f32:2x4x6x2:50,6,1,24",
                      by_grid},
        // So many that special values are ends, and are where products overflow.
        AlgorithmCase{"ManyAtTheBorder",
                      "grid_sample_backward_grid dy=f32:1x2x20x30 x=f32:1x2x5x7 grid=f32:1x20x30x2 padding=border",
                      by_grid},
        AlgorithmCase{"ManyAtTheCentresOfTheBorder",
                      "grid_sample_backward_grid dy=f32:1x2x20x30 x=f32:1x2x5x7 grid=f32:1x20x30x2 padding=border "
                      "ends=centres",
                      by_grid},
        AlgorithmCase{"ManyReflected",
                      "grid_sample_backward_grid dy=f32:1x2x20x30 x=f32:1x2x5x7 grid=f32:1x20x30x2 padding=reflection",
                      by_grid},
        AlgorithmCase{"PackedBF16", "grid_sample_backward_grid dy=bf16:1x3x2x3 x=bf16:1x3x3x3 grid=bf16:1x2x3x2",
                      by_grid},
        AlgorithmCase{"NoChannels", "grid_sample_backward_grid dy=f32:1x0x2x3 x=f32:1x0x3x3 grid=f32:1x2x3x2", by_grid},
        AlgorithmCase{"EmptyBatch", "grid_sample_backward_grid dy=f32:0x2x2x3 x=f32:0x2x3x3 grid=f32:0x2x3x2", by_grid},
        AlgorithmCase{"DynamicBatch", "grid_sample_backward_grid dy=f32:8x3x3x2 x=f32:8x3x5x4 grid=f32:8x3x2x2 n=?",
                      by_grid}),
    case_name);

const Names affine = {"affine_grid_simple", "affine_grid_pixels"};
const Names by_matrices = {"affine_grid_backward_simple", "affine_grid_backward_split"};
constexpr auto map = "affine_grid theta=f32:2x2x3 grid=f32:2x4x6x2";
constexpr auto map_of_volume = "affine_grid theta=f16:2x3x4 grid=f16:2x2x4x3x3 ends=centres";
constexpr auto map_gradient = "affine_grid_backward dgrid=f32:2x40x60x2";
constexpr auto map_of_volume_gradient = "affine_grid_backward dgrid=f16:2x10x13x11x3 ends=centres";

INSTANTIATE_TEST_SUITE_P(
    AffineGrid, GridSampleTest,
    testing::Values(
        AlgorithmCase{"Images", map, affine}, AlgorithmCase{"Volumes", map_of_volume, affine},
        AlgorithmCase{"Centres", "affine_grid theta=f32:2x2x3 grid=f32:2x4x6x2 ends=centres alpha=any beta=any",
                      affine},
        AlgorithmCase{"VolumesEdges", "affine_grid theta=bf16:2x3x4 grid=f32:2x3x5x7x3", affine},
        AlgorithmCase{"OneElement", "affine_grid theta=f32:2x2x3 grid=f32:2x1x1x2 ends=centres", affine},
        AlgorithmCase{"Regions", "affine_grid theta=f32:2x2x3:9,4,1 grid=f32:2x4x6x2:90,20,3,1", affine},
        AlgorithmCase{"RegionsInF16", "affine_grid theta=f16:2x2x3:9,4,1 grid=f16:2x4x6x2:90,20,3,1", affine},
        AlgorithmCase{"RegionsInBF16", "affine_grid theta=bf16:2x2x3:9,4,1 grid=bf16:2x4x6x2:90,20,3,1", affine},
        AlgorithmCase{"ColumnsApart", "affine_grid theta=f32:2x2x3:6,1,2 grid=f32:2x4x6x2:48,6,1,24", affine},
        AlgorithmCase{"GapsBetweenImages", "affine_grid theta=f32:3x2x3 grid=f32:3x4x6x2:50,12,2,1", affine},
        AlgorithmCase{"NoPositions", "affine_grid theta=f32:2x2x3 grid=f32:2x0x6x2", affine},
        AlgorithmCase{"EmptyBatch", "affine_grid theta=f32:0x2x3 grid=f32:0x4x6x2", affine},
        AlgorithmCase{"DynamicBatch", "affine_grid theta=f32:8x2x3 grid=f32:8x3x2x2 n=?", affine}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByMatrices, GridSampleTest,
    testing::Values(
        AlgorithmCase{"Images", map_gradient, by_matrices},
        AlgorithmCase{"Volumes", map_of_volume_gradient, by_matrices},
        AlgorithmCase{"Centres", "affine_grid_backward dgrid=f32:2x4x6x2 ends=centres alpha=any beta=any", by_matrices},
        AlgorithmCase{"VolumesEdges", "affine_grid_backward dgrid=f32:2x3x5x7x3 dtheta=bf16:2x3x4", by_matrices},
        AlgorithmCase{"OneElement", "affine_grid_backward dgrid=f32:2x1x1x2 ends=centres", by_matrices},
        AlgorithmCase{"Regions", "affine_grid_backward dgrid=f32:2x4x6x2:90,20,3,1 dtheta=f32:2x2x3:9,4,1",
                      by_matrices},
        AlgorithmCase{"RegionsInF16", "affine_grid_backward dgrid=f16:2x4x6x2:90,20,3,1 dtheta=f16:2x2x3:9,4,1",
                      by_matrices},
        AlgorithmCase{"RegionsInBF16", "affine_grid_backward dgrid=bf16:2x4x6x2:90,20,3,1 dtheta=bf16:2x2x3:9,4,1",
                      by_matrices},
        AlgorithmCase{"CoordinatesApart", "affine_grid_backward dgrid=f32:2x4x6x2:48,6,1,24 dtheta=f32:2x2x3:6,1,2",
                      by_matrices},
        AlgorithmCase{"PackedBF16", "affine_grid_backward dgrid=bf16:2x4x6x2", by_matrices},
        AlgorithmCase{"NoPositions", "affine_grid_backward dgrid=f32:2x0x6x2", by_matrices},
        AlgorithmCase{"EmptyBatch", "affine_grid_backward dgrid=f32:0x4x6x2", by_matrices},
        AlgorithmCase{"DynamicBatch", "affine_grid_backward dgrid=f32:8x3x2x2 n=?", by_matrices}),
    case_name);

INSTANTIATE_TEST_SUITE_P(GridSampleConfigs, PairwiseMatch, testing::ValuesIn(covers(forward, {linear, channels_last})),
                         cover_name);
INSTANTIATE_TEST_SUITE_P(GridSampleDataConfigs, PairwiseMatch,
                         testing::ValuesIn(covers(by_data, {data, data_channels_last})), cover_name);
INSTANTIATE_TEST_SUITE_P(GridSampleGridConfigs, PairwiseMatch,
                         testing::ValuesIn(covers(by_grid, {by_the_grid, by_the_grid_channels_last})), cover_name);
INSTANTIATE_TEST_SUITE_P(AffineGridConfigs, PairwiseMatch, testing::ValuesIn(covers(affine, {map, map_of_volume})),
                         cover_name);
INSTANTIATE_TEST_SUITE_P(AffineGridGradientConfigs, PairwiseMatch,
                         testing::ValuesIn(covers(by_matrices, {map_gradient, map_of_volume_gradient})), cover_name);
INSTANTIATE_TEST_SUITE_P(
    GridSampleWithWideOffsets, WideIndexMatch,
    testing::Values(wide(forward, "grid_sample x=f32:4x3x5x4 grid=f32:4x3x2x2 n=?"),
                    wide(by_data, "grid_sample_backward_data dy=f32:4x3x3x2 grid=f32:4x3x2x2 dx=f32:4x3x5x4 n=?"),
                    wide(by_grid, "grid_sample_backward_grid dy=f32:4x3x3x2 x=f32:4x3x5x4 grid=f32:4x3x2x2 n=?"),
                    wide(affine, "affine_grid theta=f32:4x2x3 grid=f32:4x3x2x2 n=?"),
                    wide(by_matrices, "affine_grid_backward dgrid=f32:4x30x20x2 n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::grid_sample_test
