/* Streams, in a world without a device: NULLs, and the status that says so. Worlds with a device: tests/gpu. */
#include "input/table.h"

/* Every call begins with its world or team. */
#define REFUSED(FUNCTION, OWNER, ...)                                                                                  \
    CASE(FUNCTION)                                                                                                     \
    {                                                                                                                  \
        CHECK_STATUS(FUNCTION(NULL, __VA_ARGS__), WEFT_ERR_ARGUMENT);                                                  \
        CHECK_STATUS(FUNCTION(s->OWNER, __VA_ARGS__), WEFT_ERR_STATE);                                                 \
    }

/* The kinds of arguments, of the type of a family. */
#define DEST ((void *)s->dest)
#define SRC ((void *)s->source)
#define SIG ((uint64_t *)(void *)s->words)

REFUSED(weft_putmem_on_stream, world, DEST, SRC, 8, 0, NULL)
REFUSED(weft_getmem_on_stream, world, DEST, SRC, 8, 0, NULL)
REFUSED(weft_iputmem_on_stream, world, DEST, SRC, 1, 1, 1, 8, 0, NULL)
REFUSED(weft_igetmem_on_stream, world, DEST, SRC, 1, 1, 1, 8, 0, NULL)
REFUSED(weft_putmem_signal_on_stream, world, DEST, SRC, 8, SIG, 1, WEFT_SIGNAL_SET, 0, NULL)
REFUSED(weft_signal_on_stream, world, SIG, 1, WEFT_SIGNAL_SET, 0, NULL)
REFUSED(weft_signal_wait_until_on_stream, world, SIG, WEFT_CMP_EQ, 1, NULL)
REFUSED(weft_fence_on_stream, world, NULL)
REFUSED(weft_quiet_on_stream, world, NULL)
REFUSED(weft_sync_on_stream, world, NULL)
REFUSED(weft_barrier_on_stream, world, NULL)
REFUSED(weft_team_sync_on_stream, team, NULL)
REFUSED(weft_team_barrier_on_stream, team, NULL)
REFUSED(weft_broadcastmem_on_stream, team, DEST, SRC, 8, 0, NULL)
REFUSED(weft_fcollectmem_on_stream, team, DEST, SRC, 8, NULL)
REFUSED(weft_collectmem_on_stream, team, DEST, SRC, 8, NULL)
REFUSED(weft_alltoallmem_on_stream, team, DEST, SRC, 8, NULL)
REFUSED(weft_alltoallvmem_on_stream, team, DEST, SIG, SRC, SIG, SIG, NULL)
REFUSED(weft_reduce_on_stream, team, WEFT_DTYPE_FLOAT, WEFT_OP_SUM, DEST, SRC, 8, NULL)
REFUSED(weft_reduce_scatter_on_stream, team, WEFT_DTYPE_FLOAT, WEFT_OP_SUM, DEST, SRC, 8, NULL)
CASE(weft_team_stream_ready)
{
    CHECK_STATUS(weft_team_stream_ready(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_stream_ready(s->team), WEFT_ERR_STATE);
}

#define MOVE(NAME, TYPE)                                                                                               \
    REFUSED(weft_##NAME##_put_on_stream, world, DEST, SRC, 1, 0, NULL)                                                 \
    REFUSED(weft_##NAME##_get_on_stream, world, DEST, SRC, 1, 0, NULL)                                                 \
    REFUSED(weft_##NAME##_iput_on_stream, world, DEST, SRC, 1, 1, 1, 0, NULL)                                          \
    REFUSED(weft_##NAME##_iget_on_stream, world, DEST, SRC, 1, 1, 1, 0, NULL)                                          \
    REFUSED(weft_##NAME##_put_signal_on_stream, world, DEST, SRC, 1, SIG, 1, WEFT_SIGNAL_SET, 0, NULL)                 \
    REFUSED(weft_##NAME##_broadcast_on_stream, team, DEST, SRC, 1, 0, NULL)                                            \
    REFUSED(weft_##NAME##_fcollect_on_stream, team, DEST, SRC, 1, NULL)                                                \
    REFUSED(weft_##NAME##_collect_on_stream, team, DEST, SRC, 1, NULL)                                                 \
    REFUSED(weft_##NAME##_alltoall_on_stream, team, DEST, SRC, 1, NULL)
WEFT_RMA_TYPES(MOVE)

#define WORD(NAME, TYPE)                                                                                               \
    REFUSED(weft_##NAME##_p_on_stream, world, DEST, (TYPE)1, 0, NULL)                                                  \
    REFUSED(weft_##NAME##_g_on_stream, world, SRC, 0, DEST, NULL)
WEFT_WORD_TYPES(WORD)

#define EXTENDED(NAME, TYPE)                                                                                           \
    REFUSED(weft_##NAME##_atomic_fetch_on_stream, world, SRC, 0, DEST, NULL)                                           \
    REFUSED(weft_##NAME##_atomic_set_on_stream, world, DEST, (TYPE)1, 0, NULL)                                         \
    REFUSED(weft_##NAME##_atomic_swap_on_stream, world, DEST, (TYPE)1, 0, SRC, NULL)
WEFT_EXTENDED_AMO_TYPES(EXTENDED)

#define STANDARD(NAME, TYPE)                                                                                           \
    REFUSED(weft_##NAME##_wait_until_on_stream, world, DEST, WEFT_CMP_EQ, (TYPE)1, NULL)                               \
    REFUSED(weft_##NAME##_atomic_compare_swap_on_stream, world, DEST, (TYPE)1, (TYPE)2, 0, SRC, NULL)                  \
    REFUSED(weft_##NAME##_atomic_add_on_stream, world, DEST, (TYPE)1, 0, NULL)                                         \
    REFUSED(weft_##NAME##_atomic_fetch_add_on_stream, world, DEST, (TYPE)1, 0, SRC, NULL)                              \
    REFUSED(weft_##NAME##_atomic_inc_on_stream, world, DEST, 0, NULL)                                                  \
    REFUSED(weft_##NAME##_atomic_fetch_inc_on_stream, world, DEST, 0, SRC, NULL)
WEFT_INTEGER_TYPES(STANDARD)

#define BITWISE(NAME, OP)                                                                                              \
    REFUSED(weft_##NAME##_atomic_##OP##_on_stream, world, DEST, 1, 0, NULL)                                            \
    REFUSED(weft_##NAME##_atomic_fetch_##OP##_on_stream, world, DEST, 1, 0, SRC, NULL)
#define BITS(NAME, TYPE) BITWISE(NAME, and) BITWISE(NAME, or) BITWISE(NAME, xor)
WEFT_BITWISE_TYPES(BITS)

#define COMBINE(NAME, OPERATION)                                                                                       \
    REFUSED(weft_##NAME##_##OPERATION##_reduce_on_stream, team, DEST, SRC, 1, NULL)                                    \
    REFUSED(weft_##NAME##_##OPERATION##_reduce_scatter_on_stream, team, DEST, SRC, 1, NULL)
#define PAIR(NAME, TYPE) COMBINE(NAME, sum) COMBINE(NAME, prod)
#define REAL(NAME, TYPE) COMBINE(NAME, min) COMBINE(NAME, max) PAIR(NAME, TYPE)
#define INTEGER(NAME, TYPE) COMBINE(NAME, and) COMBINE(NAME, or) COMBINE(NAME, xor) REAL(NAME, TYPE)
WEFT_REDUCE_INTEGER_TYPES(INTEGER)
WEFT_FLOAT_TYPES(REAL)
WEFT_REDUCE_COMPLEX_TYPES(PAIR)
