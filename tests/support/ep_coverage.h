/* support/ep_coverage.h: how often random calls met what they are there for, counted on rank 0, so that a generator
 * that no longer draws something is noticed. */
#ifndef SUPPORT_EP_COVERAGE_H
#define SUPPORT_EP_COVERAGE_H

/* X(name, what) */
#define EP_COVERAGE_TABLE(X)                                                                                           \
    X(UPDATES, "updates")                                                                                              \
    X(FRESH, "fresh dispatches")                                                                                       \
    X(CACHED, "dispatches on cached routes")                                                                           \
    X(WEIGHED, "with new weights")                                                                                     \
    X(COMBINES, "combines")                                                                                            \
    X(OWN_WEIGHTS, "with weights of their own")                                                                        \
    X(OWN_CHOICES, "with choices of their own")                                                                        \
    X(OTHER_TYPE, "to another type than their rows'")                                                                  \
    X(VALUES, "values sent back with them")                                                                            \
    X(BIASES, "biases of theirs")                                                                                      \
    X(DISPATCH_BWD, "backwards of dispatch")                                                                           \
    X(COMBINE_BWD, "backwards of combine")                                                                             \
    X(WEIGHT_GRADIENTS, "gradients of weights")                                                                        \
    X(HALVES, "calls by halves")                                                                                       \
    X(MOVED, "routes moved or attached between calls")                                                                 \
    X(SMS, "calls whose number of multiprocessors is another")                                                         \
    X(TWO_PAIRS, "calls between the halves of another of their group")                                                 \
    X(RANK_MAJOR, "routings in rank-major")                                                                            \
    X(EXPERT_MAJOR, "in expert-major")                                                                                 \
    X(SLOTS_SOURCE, "in slots by source")                                                                              \
    X(SLOTS_EXPERT, "in slots by expert")                                                                              \
    X(TOLD, "whose counts are told")                                                                                   \
    X(TOLD_ON_STREAM, "in one slot, to who follows")                                                                   \
    X(ALL_WEIGHTS, "with weights of all choices")                                                                      \
    X(DESTINATIONS, "from masks of ranks")                                                                             \
    X(POSITIONS, "from positions on ranks")                                                                            \
    X(BY_CHOICE, "summed in the order of choices")                                                                     \
    X(PADDED, "with padding")                                                                                          \
    X(OVERFLOW, "with an overflow")                                                                                    \
    X(DROPPED, "with dropped rows")                                                                                    \
    X(DROPPED_ALONE, "of these by themselves")                                                                         \
    X(OUT_OF_RANGE, "with ids out of range")                                                                           \
    X(CLAMPED, "with T out of range")                                                                                  \
    X(NO_ROWS, "with no row at all")                                                                                   \
    X(F32, "rows of f32 moved")                                                                                        \
    X(BF16, "of bf16")                                                                                                 \
    X(F16, "of f16")                                                                                                   \
    X(FP8, "of fp8")                                                                                                   \
    X(BYTES, "of bytes")                                                                                               \
    X(BYTE_SCALES, "with scales of bytes")                                                                             \
    X(QUANTISED, "quantised")                                                                                          \
    X(MX, "quantised in groups of 32")                                                                                 \
    X(WIDE_EXPERTS, "received with ids of 64 bits")                                                                    \
    X(GLOBAL_EXPERTS, "with ids of all experts")                                                                       \
    X(GROUPED_SCALES, "with scales of each expert apart")                                                              \
    X(MASKED, "ranks masked")                                                                                          \
    X(REJOINED, "of these back in step")                                                                               \
    X(GROWN, "ranks whose group's limits grew")                                                                        \
    X(STATISTICS, "groups that keep statistics")                                                                       \
    X(DOMAINS, "groups of several domains")                                                                            \
    X(LARGE, "dispatches of more than 256 KiB a rank")

typedef enum ep_coverage {
#define EP_COVERAGE_ENUM(name, what) EP_COVER_##name,
    EP_COVERAGE_TABLE(EP_COVERAGE_ENUM)
#undef EP_COVERAGE_ENUM
        EP_COVERS
} ep_coverage;

void ep_cover(ep_coverage what, long times);

/* Print all; returns how many were never met. */
int ep_coverage_print(void);

#endif
