/* Goal: PEs make a team of their own while others do something else, and leave the place where they met as it was.
 * Method: in many rounds PEs join teams of every start and stride that the world has room for, overlapping ones too,
 * each in a place of its own, by rule and, in every second round, by a list that descends; PEs that are no members do
 * not call. The teams then sync and add their members' numbers up; the places must be zero. */
#include "support/check.h"
#include "support/pe_main.h"

#define ROUNDS 4
#define MEMBERS_MAX 64

static int is_member(int pe, int start, int stride, int size)
{
    return pe >= start && (pe - start) % stride == 0 && (pe - start) / stride < size;
}

static weft_status join(weft_world *world, int start, int stride, int size, int is_list, void *place, weft_team **team)
{
    int list[MEMBERS_MAX];
    for (int i = 0; i < size; i++) {
        list[i] = start + stride * (size - 1 - i);
    }
    return is_list ? weft_team_join_list(world, list, size, place, team)
                   : weft_team_join(world, start, stride, size, place, team);
}

/* Join, use and end the team, if this PE is one of it. */
static void use(weft_world *world, int start, int stride, int size, int is_list, unsigned char *place, long *words)
{
    const int me = weft_world_pe(world);
    const int mine = (me - start) / stride;
    weft_team *team = NULL;
    if (!is_member(me, start, stride, size)) {
        CHECK_STATUS(join(world, start, stride, size, is_list, place, &team),
                     is_list ? WEFT_ERR_ARGUMENT : WEFT_ERR_RANGE);
        return;
    }
    if (!CHECK_OK(join(world, start, stride, size, is_list, place, &team))) {
        return;
    }
    CHECK(weft_team_pes(team) == size);
    CHECK(weft_team_pe(team) == (is_list ? size - 1 - mine : mine));
    CHECK(weft_team_translate(team, is_list ? 0 : size - 1, weft_team_world(world)) == start + stride * (size - 1));
    for (size_t i = 0; i < WEFT_TEAM_JOIN_BYTES; i++) {
        if (!CHECK_SAY(place[i] == 0, "byte %zu of the place is %d", i, place[i])) {
            break;
        }
    }
    words[0] = me;
    words[1] = -1;
    CHECK_OK(weft_long_sum_reduce(team, &words[1], &words[0], 1));
    long sum = 0;
    for (int i = 0; i < size; i++) {
        sum += start + stride * i;
    }
    CHECK_SAY(words[1] == sum, "the sum over %d + i * %d, i < %d, is %ld, not %ld", start, stride, size, words[1], sum);
    CHECK_OK(weft_team_destroy(team));
}

static void body(weft_world *world)
{
    const int pes = weft_world_pes(world);
    const size_t teams = (size_t)pes * (size_t)pes * 2;
    const size_t room = (WEFT_TEAM_JOIN_BYTES + 8) & ~(size_t)7; /* not all aligned to lines */
    unsigned char *places = pe_zeroed(world, teams * room);
    long *words = pe_zeroed(world, teams * 2 * sizeof(long));
    for (int round = 0; round < ROUNDS; round++) {
        size_t next = 0;
        for (int start = 0; start < pes; start++) {
            for (int stride = 1; stride <= 2; stride++) {
                for (int size = 1; start + stride * (size - 1) < pes; size++, next++) {
                    use(world, start, stride, size, round % 2, places + next * room, words + 2 * next);
                }
            }
        }
        CHECK_OK(weft_barrier(world));
    }
    CHECK_OK(weft_free(world, words));
    CHECK_OK(weft_free(world, places));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
