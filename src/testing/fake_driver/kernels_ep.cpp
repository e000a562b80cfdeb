/* testing/fake_driver/kernels_ep.cpp: the names of the kernels of expert parallelism, of which each .cu is compiled for
 * the CPU by itself. */
#include "testing/fake_driver/kernels_ep.h"

#include "cuda/ep/abi.h"
#include "cuda/ep/domains.h"
#include "cuda/ep/eager.h"
#include "cuda/ep/masking.h"
#include "cuda/ep/pad.h"

#define BODY(NAME, VARIANT, CALL)                                                                                      \
    extern "C" void EP_KERNEL_NAME(NAME, VARIANT)(const wefti_cuda_ep_##CALL##_args args);                             \
    static void body_##VARIANT##NAME(const void *args)                                                                 \
    {                                                                                                                  \
        EP_KERNEL_NAME(NAME, VARIANT)(*(const wefti_cuda_ep_##CALL##_args *)args);                                     \
    }
#define KERNELS(X)                                                                                                     \
    X(15dispatch_begins, C1, domains)                                                                                  \
    X(16dispatch_numbers, C1, domains)                                                                                 \
    X(14dispatch_packs, C1, domains)                                                                                   \
    X(16dispatch_crosses, C1, domains)                                                                                 \
    X(16dispatch_indexes, C1, domains)                                                                                 \
    X(15dispatch_counts, C1, domains)                                                                                  \
    X(14dispatch_scans, C1, domains)                                                                                   \
    X(15dispatch_places, C1, domains)                                                                                  \
    X(15combine_chooses, C1, domains)                                                                                  \
    X(15combine_results, C1, domains)                                                                                  \
    X(15combine_crosses, C1, domains)                                                                                  \
    X(14combine_totals, C1, domains)                                                                                   \
    X(15combine_spreads, C1, domains)                                                                                  \
    X(12combine_dots, C1, domains)                                                                                     \
    X(15combine_gathers, C1, domains)                                                                                  \
    X(15dispatch_direct, C1, domains)                                                                                  \
    X(14combine_direct, C1, domains)                                                                                   \
    X(21dispatch_kernel_eager, C2, eager_dispatch)                                                                     \
    X(31dispatch_kernel_quantised_eager, C2, eager_dispatch)                                                           \
    X(34dispatch_kernel_quantised_mx_eager, C2, eager_dispatch)                                                        \
    X(21dispatch_kernel_eager, C3, eager_dispatch)                                                                     \
    X(28dispatch_kernel_expert_eager, C3, eager_dispatch)                                                              \
    X(20combine_kernel_eager, C2, eager_combine)                                                                       \
    X(20combine_kernel_eager, C3, eager_combine)                                                                       \
    X(20combine_kernel_eager, C5, eager_combine)                                                                       \
    X(27combine_kernel_expert_eager, C2, eager_combine)                                                                \
    X(27combine_kernel_expert_eager, C3, eager_combine)                                                                \
    X(27combine_kernel_expert_eager, C5, eager_combine)                                                                \
    X(25dispatch_kernel_positions, C1, dispatch)                                                                       \
    X(35dispatch_kernel_quantised_positions, C1, dispatch)                                                             \
    X(38dispatch_kernel_quantised_mx_positions, C1, dispatch)                                                          \
    X(28combine_kernel_bwd_positions, C1, dispatch)                                                                    \
    X(24combine_kernel_positions, C1, combine)                                                                         \
    X(24combine_kernel_positions, C4, combine)                                                                         \
    X(30dispatch_kernel_many_positions, C1, dispatch)                                                                  \
    X(40dispatch_kernel_quantised_many_positions, C1, dispatch)                                                        \
    X(43dispatch_kernel_quantised_mx_many_positions, C1, dispatch)                                                     \
    X(33combine_kernel_bwd_many_positions, C1, dispatch)                                                               \
    X(29combine_kernel_many_positions, C1, combine)                                                                    \
    X(9positions, C1, dispatch)                                                                                        \
    X(8dropping, C1, drop)                                                                                             \
    X(28dispatch_kernel_many_passing, C1, dispatch)                                                                    \
    X(35dispatch_kernel_expert_many_passing, C1, dispatch)                                                             \
    X(38dispatch_kernel_quantised_many_passing, C1, dispatch)                                                          \
    X(45dispatch_kernel_expert_quantised_many_passing, C1, dispatch)                                                   \
    X(41dispatch_kernel_quantised_mx_many_passing, C1, dispatch)                                                       \
    X(48dispatch_kernel_expert_quantised_mx_many_passing, C1, dispatch)                                                \
    X(27combine_kernel_many_passing, C1, combine)                                                                      \
    X(34combine_kernel_expert_many_passing, C1, combine)                                                               \
    X(23ht_dispatch_kernel_many, C1, dispatch)                                                                         \
    X(30ht_dispatch_kernel_expert_many, C1, dispatch)                                                                  \
    X(33ht_dispatch_kernel_quantised_many, C1, dispatch)                                                               \
    X(40ht_dispatch_kernel_expert_quantised_many, C1, dispatch)                                                        \
    X(36ht_dispatch_kernel_quantised_mx_many, C1, dispatch)                                                            \
    X(43ht_dispatch_kernel_expert_quantised_mx_many, C1, dispatch)                                                     \
    X(31ht_dispatch_kernel_quantised_mx, C1, dispatch)                                                                 \
    X(31ht_dispatch_kernel_quantised_mx, C2, dispatch)                                                                 \
    X(31ht_dispatch_kernel_quantised_mx, C3, dispatch)                                                                 \
    X(38ht_dispatch_kernel_expert_quantised_mx, C1, dispatch)                                                          \
    X(38ht_dispatch_kernel_expert_quantised_mx, C2, dispatch)                                                          \
    X(38ht_dispatch_kernel_expert_quantised_mx, C3, dispatch)                                                          \
    X(40dispatch_kernel_quantised_mx_low_latency, C1, dispatch)                                                        \
    X(48dispatch_kernel_quantised_mx_low_latency_passing, C1, dispatch)                                                \
    X(40dispatch_kernel_quantised_mx_low_latency, C2, dispatch)                                                        \
    X(40dispatch_kernel_quantised_mx_low_latency, C3, dispatch)                                                        \
    X(47dispatch_kernel_expert_quantised_mx_low_latency, C1, dispatch)                                                 \
    X(55dispatch_kernel_expert_quantised_mx_low_latency_passing, C1, dispatch)                                         \
    X(47dispatch_kernel_expert_quantised_mx_low_latency, C2, dispatch)                                                 \
    X(47dispatch_kernel_expert_quantised_mx_low_latency, C3, dispatch)                                                 \
    X(26ht_combine_kernel_bwd_many, C1, dispatch)                                                                      \
    X(33ht_combine_kernel_expert_bwd_many, C1, dispatch)                                                               \
    X(22ht_combine_kernel_many, C1, combine)                                                                           \
    X(29ht_combine_kernel_expert_many, C1, combine)                                                                    \
    X(18ht_dispatch_kernel, C1, dispatch)                                                                              \
    X(18ht_dispatch_kernel, C2, dispatch)                                                                              \
    X(18ht_dispatch_kernel, C3, dispatch)                                                                              \
    X(28ht_dispatch_kernel_quantised, C1, dispatch)                                                                    \
    X(28ht_dispatch_kernel_quantised, C3, dispatch)                                                                    \
    X(21ht_combine_kernel_bwd, C1, dispatch)                                                                           \
    X(28ht_dispatch_kernel_quantised, C2, dispatch)                                                                    \
    X(35ht_dispatch_kernel_expert_quantised, C2, dispatch)                                                             \
    X(24ht_combine_kernel_expert, C2, combine)                                                                         \
    X(30ht_combine_kernel_expert_piped, C1, combine)                                                                   \
    X(30ht_combine_kernel_expert_piped, C3, combine)                                                                   \
    X(40ht_combine_kernel_expert_gradients_piped, C1, combine)                                                         \
    X(25ht_dispatch_kernel_expert, C1, dispatch)                                                                       \
    X(25ht_dispatch_kernel_expert, C2, dispatch)                                                                       \
    X(25ht_dispatch_kernel_expert, C3, dispatch)                                                                       \
    X(35ht_dispatch_kernel_expert_quantised, C1, dispatch)                                                             \
    X(35ht_dispatch_kernel_expert_quantised, C3, dispatch)                                                             \
    X(3pad, C1, pad)                                                                                                   \
    X(10statistics, C1, stats)                                                                                         \
    X(5masks, C1, masking)                                                                                             \
    X(12destinations, C1, dispatch)                                                                                    \
    X(28ht_combine_kernel_expert_bwd, C1, dispatch)                                                                    \
    X(17ht_combine_kernel, C1, combine)                                                                                \
    X(17ht_combine_kernel, C2, combine)                                                                                \
    X(17ht_combine_kernel, C3, combine)                                                                                \
    X(24ht_combine_kernel_expert, C1, combine)                                                                         \
    X(24ht_combine_kernel_expert, C3, combine)                                                                         \
    X(5order, C1, combine)                                                                                             \
    X(12order_expert, C1, combine)                                                                                     \
    X(17ht_combine_kernel, C4, combine)                                                                                \
    X(24ht_combine_kernel_expert, C4, combine)                                                                         \
    X(34ht_combine_kernel_expert_gradients, C1, combine)                                                               \
    X(27dispatch_kernel_low_latency, C1, dispatch)                                                                     \
    X(35dispatch_kernel_low_latency_passing, C1, dispatch)                                                             \
    X(27dispatch_kernel_low_latency, C2, dispatch)                                                                     \
    X(27dispatch_kernel_low_latency, C3, dispatch)                                                                     \
    X(37dispatch_kernel_quantised_low_latency, C1, dispatch)                                                           \
    X(45dispatch_kernel_quantised_low_latency_passing, C1, dispatch)                                                   \
    X(37dispatch_kernel_quantised_low_latency, C2, dispatch)                                                           \
    X(37dispatch_kernel_quantised_low_latency, C3, dispatch)                                                           \
    X(34dispatch_kernel_expert_low_latency, C1, dispatch)                                                              \
    X(42dispatch_kernel_expert_low_latency_passing, C1, dispatch)                                                      \
    X(34dispatch_kernel_expert_low_latency, C2, dispatch)                                                              \
    X(34dispatch_kernel_expert_low_latency, C3, dispatch)                                                              \
    X(44dispatch_kernel_expert_quantised_low_latency, C1, dispatch)                                                    \
    X(52dispatch_kernel_expert_quantised_low_latency_passing, C1, dispatch)                                            \
    X(44dispatch_kernel_expert_quantised_low_latency, C2, dispatch)                                                    \
    X(44dispatch_kernel_expert_quantised_low_latency, C3, dispatch)                                                    \
    X(26combine_kernel_low_latency, C1, combine)                                                                       \
    X(34combine_kernel_low_latency_passing, C1, combine)                                                               \
    X(26combine_kernel_low_latency, C2, combine)                                                                       \
    X(26combine_kernel_low_latency, C3, combine)                                                                       \
    X(33combine_kernel_expert_low_latency, C1, combine)                                                                \
    X(41combine_kernel_expert_low_latency_passing, C1, combine)                                                        \
    X(33combine_kernel_expert_low_latency, C2, combine)                                                                \
    X(33combine_kernel_expert_low_latency, C3, combine)                                                                \
    X(26combine_kernel_low_latency, C4, combine)                                                                       \
    X(34combine_kernel_low_latency_passing, C4, combine)                                                               \
    X(26combine_kernel_low_latency, C5, combine)                                                                       \
    X(33combine_kernel_expert_low_latency, C4, combine)                                                                \
    X(41combine_kernel_expert_low_latency_passing, C4, combine)                                                        \
    X(33combine_kernel_expert_low_latency, C5, combine)
KERNELS(BODY)
#undef BODY

extern "C" const fake_ep_kernel fake_ep_kernels[] = {
#define KERNEL(NAME, VARIANT, CALL)                                                                                    \
    {"_ZN4weft" #NAME #VARIANT "Ev", body_##VARIANT##NAME, sizeof(wefti_cuda_ep_##CALL##_args)},
    KERNELS(KERNEL)
#undef KERNEL
        {0, 0, 0},
};
