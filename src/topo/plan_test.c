/* Goal: plans give each GPU one of its nearest ports and spread GPUs as evenly as can be; they follow lists and
 * mappings by the GPUs of the machine, whatever the numbers of PEs; a large one takes no time. Method: random small
 * machines against the best of all assignments; machines renumbered; the case from the field. */
#include "topo/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/description.h"

static uint64_t seed;

static int draw(int most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)most);
}

/* ---- machines ---- */

#define DEVICES_MAX 7

typedef struct random_machine {
    int gpus;
    int nics;
    int gpu_at[DEVICES_MAX]; /* switches, 0 .. 5 */
    int nic_at[DEVICES_MAX];
} random_machine;

/* Two NUMA nodes of two host bridges; switches 0 .. 3 below them, 4 below 0, 5 below 2. Objects in the order of
 * `shift`. */
static void build(wefti_topo *topo, const random_machine *m, int shift)
{
    char name[16];
    int switches[6];
    wefti_topo_init(topo);
    const int host = wefti_topo_add(topo, WEFTI_TOPO_HOST, -1, "h");
    for (int i = 0; i < 2; i++) {
        const int numa = wefti_topo_add(topo, WEFTI_TOPO_NUMA, host, "n");
        for (int j = 0; j < 2; j++) {
            const int root = wefti_topo_add(topo, WEFTI_TOPO_ROOT, numa, "r");
            switches[2 * i + j] = wefti_topo_add(topo, WEFTI_TOPO_SWITCH, root, "s");
        }
        switches[4 + i] = wefti_topo_add(topo, WEFTI_TOPO_SWITCH, switches[2 * i], "s");
    }
    for (int i = 0; i < m->gpus; i++) {
        const int gpu = (i + shift) % m->gpus;
        const int index = wefti_topo_add(topo, WEFTI_TOPO_GPU, switches[m->gpu_at[gpu]], "");
        topo->objects[index].pci = (wefti_topo_pci)(gpu + 1) << 8;
    }
    for (int i = 0; i < m->nics; i++) {
        const int nic = (i + shift) % m->nics;
        (void)snprintf(name, sizeof name, "n%d", nic);
        const int index = wefti_topo_add(topo, WEFTI_TOPO_NIC, switches[m->nic_at[nic]], name);
        topo->objects[index].pci = (wefti_topo_pci)(nic + 101) << 8;
    }
}

static void draw_machine(random_machine *m)
{
    m->gpus = 1 + draw(6);
    m->nics = 1 + draw(5);
    for (int i = 0; i < DEVICES_MAX; i++) {
        m->gpu_at[i] = draw(6);
        m->nic_at[i] = draw(6);
    }
}

static wefti_topo_distance nearest(const wefti_topo *topo, const wefti_topo_plan *plan, int gpu)
{
    wefti_topo_distance least = WEFTI_TOPO_NONE;
    for (int i = 0; i < plan->nic_count; i++) {
        const wefti_topo_distance distance = wefti_topo_distance_of(topo, gpu, plan->nics[i]);
        least = distance < least ? distance : least;
    }
    return least;
}

/* The least sum of squared loads over all ways to give each GPU one of its nearest ports. */
static int best_of_all(const wefti_topo *topo, const wefti_topo_plan *plan, int gpu, int *loads)
{
    int best = 1 << 30;
    if (gpu == plan->gpu_count) {
        best = 0;
        for (int i = 0; i < plan->nic_count; i++) {
            best += loads[i] * loads[i];
        }
        return best;
    }
    for (int i = 0; i < plan->nic_count; i++) {
        if (wefti_topo_distance_of(topo, plan->gpus[gpu], plan->nics[i]) == nearest(topo, plan, plan->gpus[gpu])) {
            loads[i]++;
            const int all = best_of_all(topo, plan, gpu + 1, loads);
            loads[i]--;
            best = all < best ? all : best;
        }
    }
    return best;
}

static void is_the_best(void **state)
{
    const wefti_topo_wish wish = {0};
    (void)state;
    for (seed = 1; seed < 2000; seed++) {
        const uint64_t number = seed;
        random_machine m;
        wefti_topo topo;
        wefti_topo_plan plan;
        int loads[DEVICES_MAX] = {0};
        int none[DEVICES_MAX] = {0};
        draw_machine(&m);
        build(&topo, &m, 0);
        assert_int_equal(wefti_topo_plan_make(&plan, &topo, 0, &wish), WEFT_OK);
        int sum = 0;
        int firsts = 0;
        for (int i = 0; i < plan.use_count; i++) {
            assert_int_equal(plan.uses[i].distance, nearest(&topo, &plan, plan.uses[i].gpu));
            firsts += plan.uses[i].is_first;
            assert_true(plan.uses[i].is_first || plan.nic_count > plan.gpu_count);
            for (int j = 0; j < plan.nic_count; j++) {
                loads[j] += plan.nics[j] == plan.uses[i].nic && plan.uses[i].is_first;
            }
        }
        for (int i = 0; i < plan.nic_count; i++) {
            sum += loads[i] * loads[i];
            for (int j = 0; j < i; j++) { /* those of one switch are equal */
                assert_true(topo.objects[plan.nics[i]].parent != topo.objects[plan.nics[j]].parent ||
                            abs(loads[i] - loads[j]) <= 1);
            }
        }
        assert_int_equal(firsts, m.gpus);
        assert_int_equal(sum, best_of_all(&topo, &plan, 0, none));
        wefti_topo_plan_fini(&plan);
        wefti_topo_fini(&topo);
        seed = number;
    }
}

/* What each GPU uses, by PCI addresses. */
static void text_of(const wefti_topo *topo, const wefti_topo_plan *plan, char *text, size_t room)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < plan->use_count && length < room; i++) {
        length += (size_t)snprintf(text + length, room - length, "%llx %s:%d\n",
                                   (unsigned long long)topo->objects[plan->uses[i].gpu].pci,
                                   topo->objects[plan->uses[i].nic].name, topo->objects[plan->uses[i].nic].port);
    }
}

static void does_not_depend_on_numbers(void **state)
{
    const wefti_topo_wish wish = {0};
    (void)state;
    for (uint64_t number = 1; number < 300; number++) {
        random_machine m;
        char first[1024];
        char text[1024];
        seed = number;
        draw_machine(&m);
        for (int shift = 0; shift < 6; shift++) {
            wefti_topo topo;
            wefti_topo_plan plan;
            build(&topo, &m, shift);
            assert_int_equal(wefti_topo_plan_make(&plan, &topo, 0, &wish), WEFT_OK);
            text_of(&topo, &plan, shift == 0 ? first : text, sizeof text);
            assert_string_equal(first, shift == 0 ? first : text);
            wefti_topo_plan_fini(&plan);
            wefti_topo_fini(&topo);
        }
    }
}

/* ---- wishes ---- */

static void read_machine(wefti_topo *topo, const char *name)
{
    char file[512];
    (void)snprintf(file, sizeof file, "%s/tests/topo/machines/%s.topo", WEFT_SOURCE_DIR, name);
    assert_int_equal(wefti_topo_read(topo, file), WEFT_OK);
}

static void assert_plan(const char *machine, const wefti_topo_wish *wish, const char *wanted)
{
    wefti_topo topo;
    wefti_topo_plan plan;
    char text[1024] = "";
    size_t length = 0;
    read_machine(&topo, machine);
    assert_int_equal(wefti_topo_plan_make(&plan, &topo, 0, wish), WEFT_OK);
    for (int i = 0; i < plan.use_count; i++) {
        const wefti_topo_object *nic = &topo.objects[plan.uses[i].nic];
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%s:%d", i == 0 ? "" : " ", nic->name, nic->port);
    }
    assert_string_equal(text, wanted);
    wefti_topo_plan_fini(&plan);
    wefti_topo_fini(&topo);
}

/* A module whose world has one PE a node and GPU: all PEs have node index 0, and the mapping still means GPUs. */
static void maps_gpus_of_the_machine(void **state)
{
    wefti_topo_wish wish = {.mapping = "mlx5_0:1:2,mlx5_0:2:2,mlx5_1:1:2,mlx5_1:2:2"};
    (void)state;
    assert_plan("pcie-8gpu", &wish, "mlx5_0:1 mlx5_0:1 mlx5_0:2 mlx5_0:2 mlx5_1:1 mlx5_1:1 mlx5_1:2 mlx5_1:2");
    wish.mapping = "mlx5_1:2:3,mlx5_0:1:99";
    assert_plan("pcie-8gpu", &wish, "mlx5_1:2 mlx5_1:2 mlx5_1:2 mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_0:1");
}

static void follows_lists(void **state)
{
    wefti_topo_wish wish = {.list = "^mlx5_0:2"};
    (void)state;
    assert_plan("pcie-8gpu", &wish, "mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_1:1 mlx5_1:2");
    wish.list = "mlx5_1:2,mlx5_0:1";
    assert_plan("pcie-8gpu", &wish, "mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_1:2 mlx5_1:2 mlx5_1:2 mlx5_1:2");
    wish.is_round_robin = 1;
    assert_plan("pcie-8gpu", &wish, "mlx5_1:2 mlx5_0:1 mlx5_1:2 mlx5_0:1 mlx5_1:2 mlx5_0:1 mlx5_1:2 mlx5_0:1");
    wish.list = "mlx5_1:2,mlx5_0";
    assert_plan("pcie-8gpu", &wish, "mlx5_1:2 mlx5_0:1 mlx5_0:2 mlx5_1:2 mlx5_0:1 mlx5_0:2 mlx5_1:2 mlx5_0:1");
    wish.list = NULL;
    assert_plan("pcie-8gpu", &wish, "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_1:2 mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_1:2");
}

static void refuses_wishes(void **state)
{
    static const struct {
        wefti_topo_wish wish;
        weft_status status;
        const char *told;
    } cases[] = {
        {{.list = "mlx5_7"}, WEFT_ERR_RANGE, "character 1: host \"box\" has no port mlx5_7;"},
        {{.list = "mlx5_0,mlx5_1:3"}, WEFT_ERR_RANGE, "WEFT_NIC_LIST: character 8: host \"box\" has no port mlx5_1:3;"},
        {{.list = "^mlx5_9"}, WEFT_ERR_RANGE, "has no port mlx5_9;"},
        {{.list = "^mlx5_1,mlx5_0"}, WEFT_ERR_RANGE, "WEFT_NIC_LIST: character 1: it leaves no port of host \"box\""},
        {{.list = "mlx5_1", .mapping = "mlx5_0:1:8"}, WEFT_ERR_ARGUMENT, "WEFT_NIC_LIST and WEFT_NIC_MAPPING are both"},
        {{.mapping = "mlx5_0:1:3,mlx5_0:2:4"},
         WEFT_ERR_RANGE,
         "WEFT_NIC_MAPPING: character 22: its counts add up to 7, but host \"box\" has 8 GPUs"},
        {{.mapping = "mlx5_0:3:8", .mapping_name = "--map"}, WEFT_ERR_RANGE, "--map: character 1: host \"box\" has no"},
        {{.mapping = "mlx5_0:1"}, WEFT_ERR_ARGUMENT, "WEFT_NIC_MAPPING: \"mlx5_0:1\", character 9: expected :"},
    };
    wefti_topo topo;
    (void)state;
    read_machine(&topo, "pcie-8gpu");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wefti_topo_plan plan;
        assert_int_equal(wefti_topo_plan_make(&plan, &topo, 0, &cases[i].wish), cases[i].status);
        if (strstr(weft_last_error(), cases[i].told) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", weft_last_error(), cases[i].told);
        }
        assert_null(plan.uses);
    }
    wefti_topo_fini(&topo);
}

/* PEs of a world without GPUs: by their number in the world on this host, the nearest ports in turn. */
static void places_pes_without_gpus(void **state)
{
    wefti_topo topo;
    wefti_topo_plan plan;
    const wefti_topo_wish wish = {0};
    (void)state;
    read_machine(&topo, "cpu-2socket");
    assert_int_equal(wefti_topo_plan_make(&plan, &topo, 0, &wish), WEFT_OK);
    int numas[2];
    int count = 0;
    for (int i = 0; i < topo.count; i++) {
        if (topo.objects[i].kind == WEFTI_TOPO_NUMA) {
            numas[count++] = i;
        }
    }
    assert_int_equal(count, 2);
    assert_int_equal(wefti_topo_plan_without_gpu(&plan, &topo, numas[0], 0), plan.nics[0]);
    assert_int_equal(wefti_topo_plan_without_gpu(&plan, &topo, numas[0], 1), plan.nics[1]);
    assert_int_equal(wefti_topo_plan_without_gpu(&plan, &topo, numas[0], 2), plan.nics[0]);
    assert_int_equal(wefti_topo_plan_without_gpu(&plan, &topo, numas[1], 5), plan.nics[2]);
    assert_int_equal(wefti_topo_plan_without_gpu(&plan, &topo, -1, 2), plan.nics[2]);
    wefti_topo_plan_fini(&plan);
    wefti_topo_fini(&topo);
}

/* A mapping may name a port without link; PEs without a GPU get none that nobody named. */
static void leaves_out_ports_without_link(void **state)
{
    static const char text[] = "weft-topology 1\nhost h\nnuma n\nnic bad parent=n pci=0000:01:00.0 state=down\n"
                               "nic slow parent=n pci=0000:02:00.0 speed=10\n"
                               "nic good parent=n pci=0000:03:00.0 speed=400\n"
                               "nic named parent=n pci=0000:04:00.0 state=down\n";
    const wefti_topo_wish wish = {.mapping = "named:1:1,good:1:1"};
    wefti_topo topo;
    wefti_topo_plan plan;
    (void)state;
    assert_int_equal(wefti_topo_parse(&topo, "t", text, sizeof text - 1), WEFT_OK);
    assert_int_equal(wefti_topo_plan_make(&plan, &topo, 0, &wish), WEFT_OK);
    assert_int_equal(plan.nic_count, 2);
    assert_string_equal(topo.objects[wefti_topo_plan_without_gpu(&plan, &topo, -1, 0)].name, "good");
    assert_string_equal(topo.objects[wefti_topo_plan_without_gpu(&plan, &topo, -1, 1)].name, "named");
    wefti_topo_plan_fini(&plan);
    wefti_topo_fini(&topo);
}

/* 72 GPUs and 72 ports, all equally near, or in a chain in which every choice depends on the one before. */
static void is_fast(void **state)
{
    const wefti_topo_wish wish = {0};
    (void)state;
    for (int is_chain = 0; is_chain < 2; is_chain++) {
        wefti_topo topo;
        wefti_topo_plan plan;
        struct timespec before;
        struct timespec after;
        wefti_topo_init(&topo);
        const int host = wefti_topo_add(&topo, WEFTI_TOPO_HOST, -1, "h");
        const int numa = wefti_topo_add(&topo, WEFTI_TOPO_NUMA, host, "n");
        int root = wefti_topo_add(&topo, WEFTI_TOPO_ROOT, numa, "r");
        for (int i = 0; i < 144; i++) {
            root = is_chain && i % 4 == 0 ? wefti_topo_add(&topo, WEFTI_TOPO_ROOT, numa, "r") : root;
            const int index = wefti_topo_add(&topo, i % 2 == 0 ? WEFTI_TOPO_GPU : WEFTI_TOPO_NIC, root, "n");
            topo.objects[index].pci = (wefti_topo_pci)i << 8;
        }
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        assert_int_equal(wefti_topo_plan_make(&plan, &topo, host, &wish), WEFT_OK);
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        assert_int_equal(plan.use_count, 72);
        const double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
        print_message("a plan of 72 GPUs and 72 ports: %.2f ms\n", ms);
#ifndef WEFT_FAULTS /* sanitizers are slow */
        assert_true(ms < 10);
#endif
        wefti_topo_plan_fini(&plan);
        wefti_topo_fini(&topo);
    }
}

int main(void)
{
    (void)setenv("WEFT_LOG", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_best),
        cmocka_unit_test(does_not_depend_on_numbers),
        cmocka_unit_test(maps_gpus_of_the_machine),
        cmocka_unit_test(follows_lists),
        cmocka_unit_test(refuses_wishes),
        cmocka_unit_test(places_pes_without_gpus),
        cmocka_unit_test(leaves_out_ports_without_link),
        cmocka_unit_test(is_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
