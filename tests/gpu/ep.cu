/* Goal: expert parallelism on GPUs gives, to the bit, what the serial reference gives (and with it the host backend).
 *
 * Method: the random cases of tests/support, with all arrays in device memory: in the device heap, in registered
 * memory, and in memory that is neither. Each PE draws the same cases; each case is a group, a few routes, and a
 * sequence of calls. Usage: as support/launch.h says; -c: how many cases; WEFT_SEED; WEFT_FIRST_CASE: those before it
 * are drawn, not run. */
#include "ep/absence.cuh"
#include "ep/cached.cuh"
#include "ep/cases.cuh"
#include "ep/claims.cuh"
#include "ep/crossing.cuh"
#include "ep/graph.cuh"

#define CASES (ON_GPU ? 40 : 12)

/* How many seconds they took. */
static double run_cases(job *of, int cases)
{
    const test_pe *pe = of->pe;
    const char *first_text = getenv("WEFT_FIRST_CASE");
    const int first = first_text != NULL ? atoi(first_text) : 0;
    const double begun_s = now_s();
    uint64_t common = pe->seed * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < cases && check_failures() == 0; i++) {
        of->own = common ^ (uint64_t)(pe->pe + 1) * UINT64_C(0xbf58476d1ce4e5b9);
        const ep_size *size = size_of_case(i, pe->pes);
        const uint64_t seed = seed_of_case(&common, pe->pes, size);
        if (i < first) {
            of->salt += ROUTES_OF_CASE * CALLS_OF_ROUTE;
            continue;
        }
        run_case(of, seed, size);
        if (check_failures() != 0) {
            fprintf(stderr, "PE %d: case %d, seed %llu; WEFT_FIRST_CASE=%d begins with it\n", pe->pe, i,
                    (unsigned long long)seed, i);
        }
    }
    return now_s() - begun_s;
}

static void test_body(test_pe *pe)
{
    ep_told_take = take_pinned;
    ep_told_give = give_pinned;
    arena all = {};
    job of = {};
    int cases = pe->cases > 0 ? pe->cases : CASES;
    check_as_pe(pe->pe);
    of.pe = pe;
    of.world = test_world(pe, "ep", (size_t)4 << 30, ON_GPU ? (size_t)512 << 20 : (size_t)128 << 20);
    CHECK_OK(weft_device_deadline(of.world, DEADLINE_NS * (ON_GPU ? 1 : 10)));
    arena_open(&all, pe, of.world, &of.memory);
    take_memory();
    CHECK_OK(weft_barrier(of.world));
    of.sms = pe->pe == 0 ? free_sms(of.world) : 0;
    CHECK_OK(weft_barrier(of.world));
    const double seconds = run_cases(&of, cases);
#if ON_GPU
    if (check_failures() == 0) {
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 0, 0);
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 1, 0);
        test_graph(&of, &all, WEFT_EP_SLOTS_SOURCE, 1, 0);
        test_graph(&of, &all, WEFT_EP_SLOTS_SOURCE, 1, 1);
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 0, 1);
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 1, GRAPH_LEAVES);
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 0, GRAPH_LEAVES);
    }
#endif
    const bool is_few = ON_GPU || pe->pes <= FEW_PES;
    if (is_few && check_failures() == 0) {
        test_claims(&of, &all);
    }
    if (is_few && check_failures() == 0) {
        test_shared_claim(&of);
    }
    if (is_few && check_failures() == 0) {
        test_crossing(&of, &all);
    }
    for (int layout = 0; layout < 4 && is_few && check_failures() == 0; layout++) {
        if (!ep_is_slots((weft_ep_layout)layout)) {
            test_cached(&of, &all, (weft_ep_layout)layout);
        }
    }
    CHECK_OK(weft_barrier(of.world));
    arena_deregister(&all, of.world);
    if (pe->pes > 1 && check_failures() == 0) {
        test_absence(&of, &all);
    }
    CHECK_OK(weft_world_destroy(of.world));
    give_memory();
    arena_close(&all);
    if (pe->pe == 0) {
        pe->failures += check_failures() != 0;
        printf("%d cases, %u calls, in %.1f s, of which groups and routes took %.1f:\n", cases, of.salt, seconds,
               of.made_s);
        ep_coverage_print();
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
