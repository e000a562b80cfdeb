/* Collectives: waiting for all, moving data, combining it. */
#include <string.h>

#include "input/table.h"

ROW(1, weft_sync, WORLD)
ROW(1, weft_barrier, WORLD)
ROW(1, weft_team_sync, TEAM)
ROW(1, weft_team_barrier, TEAM)
ROW(1, weft_broadcastmem, TEAM, SYM, SOURCE, COUNT, ROOT)
ROW(1, weft_fcollectmem, TEAM, SYM, SOURCE, COUNT)
ROW(1, weft_collectmem, TEAM, SYM, SOURCE, COUNT)
ROW(1, weft_alltoallmem, TEAM, SYM, SOURCE, COUNT)
ROW(1, weft_alltoallmem_ready, TEAM, SYM, SOURCE, COUNT)
ROW(8, weft_alltoallsmem, TEAM, SYM, SOURCE, STRIDE, STRIDE, COUNT, ELEMENT)

#define MOVE(NAME, TYPE)                                                                                               \
    ROW(sizeof(TYPE), weft_##NAME##_broadcast, TEAM, SYM, SOURCE, COUNT, ROOT)                                         \
    ROW(sizeof(TYPE), weft_##NAME##_fcollect, TEAM, SYM, SOURCE, COUNT)                                                \
    ROW(sizeof(TYPE), weft_##NAME##_collect, TEAM, SYM, SOURCE, COUNT)                                                 \
    ROW(sizeof(TYPE), weft_##NAME##_alltoall, TEAM, SYM, SOURCE, COUNT)                                                \
    ROW(sizeof(TYPE), weft_##NAME##_alltoalls, TEAM, SYM, SOURCE, STRIDE, STRIDE, COUNT)
WEFT_RMA_TYPES(MOVE)

#define COMBINE(NAME, TYPE, OPERATION)                                                                                 \
    ROW(sizeof(TYPE), weft_##NAME##_##OPERATION##_reduce, TEAM, SYM, SOURCE, COUNT)                                    \
    ROW(sizeof(TYPE), weft_##NAME##_##OPERATION##_reduce_scatter, TEAM, SYM, SOURCE, COUNT)                            \
    ROW(sizeof(TYPE), weft_##NAME##_##OPERATION##_inscan, TEAM, SYM, SOURCE, COUNT)                                    \
    ROW(sizeof(TYPE), weft_##NAME##_##OPERATION##_exscan, TEAM, SYM, SOURCE, COUNT)
#define BITS(NAME, TYPE)                                                                                               \
    COMBINE(NAME, TYPE, and)                                                                                           \
    COMBINE(NAME, TYPE, or)                                                                                            \
    COMBINE(NAME, TYPE, xor)
#define ORDER(NAME, TYPE)                                                                                              \
    COMBINE(NAME, TYPE, min)                                                                                           \
    COMBINE(NAME, TYPE, max)
#define ARITHMETIC(NAME, TYPE)                                                                                         \
    COMBINE(NAME, TYPE, sum)                                                                                           \
    COMBINE(NAME, TYPE, prod)
WEFT_REDUCE_INTEGER_TYPES(BITS)
WEFT_REDUCE_INTEGER_TYPES(ORDER)
WEFT_REDUCE_INTEGER_TYPES(ARITHMETIC)
WEFT_REDUCE_REAL_TYPES(ORDER)
WEFT_REDUCE_REAL_TYPES(ARITHMETIC)
WEFT_REDUCE_COMPLEX_TYPES(ARITHMETIC)

CASE(weft_team_tuning)
{
    char text[64];
    size_t length = 11;
    CHECK_STATUS(weft_team_tuning(NULL, text, sizeof text, &length), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_tuning(s->team, NULL, sizeof text, &length), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_tuning(s->team, text, sizeof text, NULL), WEFT_ERR_ARGUMENT);
    CHECK(length == 11);
    CHECK_OK(weft_team_tuning(s->team, text, sizeof text, &length));
    CHECK(strlen(text) == sizeof text - 1 && length > sizeof text);
}
