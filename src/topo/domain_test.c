/* Goal: access in link domains is mutual; they follow from what PEs tell alone; who is left out is told why; 10,000 PEs
 * take no time. Method: described machines; changed descriptions; the pairs of random GPUs compared one by one. */
#include "topo/domain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "topo/description.h"

static char told[1 << 16];

static void keep(void *context, const char *text)
{
    (void)context;
    const size_t length = strlen(told);
    (void)snprintf(told + length, sizeof told - length, "%s\n", text);
}

static int domains_of(const char *machine, int32_t *domain_of)
{
    wefti_topo topo;
    wefti_topo_gpu_of_pe *gpus;
    int *objects;
    char file[512];
    (void)snprintf(file, sizeof file, "%s/tests/topo/machines/%s.topo", WEFT_SOURCE_DIR, machine);
    assert_int_equal(wefti_topo_read(&topo, file), WEFT_OK);
    const int pes = wefti_topo_gpus_of(&topo, &gpus, &objects);
    assert_true(pes > 0);
    told[0] = '\0';
    const int domains = wefti_topo_domains(gpus, pes, domain_of, NULL, keep, NULL);
    wefti_free(gpus);
    wefti_free(objects);
    wefti_topo_fini(&topo);
    return domains;
}

static void spans_hosts_of_one_clique(void **state)
{
    int32_t domain_of[72];
    (void)state;
    assert_int_equal(domains_of("gb200-nvl72", domain_of), 1);
    for (int i = 0; i < 72; i++) {
        assert_int_equal(domain_of[i], 0);
    }
    assert_string_equal(told, "");
}

static void ends_at_cliques(void **state)
{
    int32_t domain_of[72];
    (void)state;
    assert_int_equal(domains_of("gb200-two-cliques", domain_of), 2);
    for (int i = 0; i < 72; i++) {
        assert_int_equal(domain_of[i], i < 68 ? 0 : 68);
    }
    assert_non_null(strstr(told, "in different link domains"));
    assert_non_null(strstr(told, "in clique 2 of NVLink cluster 7a3e5f10..."));
    assert_non_null(strstr(told, "in clique 32766 of 7a3e5f10..."));
}

static void says_why_a_fabric_does_not_count(void **state)
{
    int32_t domain_of[36];
    (void)state;
    assert_int_equal(domains_of("gb200-refusals", domain_of), 11);
    for (int i = 0; i < 36; i++) {
        assert_int_equal(domain_of[i], i < 8 ? 0 : i < 32 ? i / 4 * 4 : i);
    }
    assert_non_null(
        strstr(told, "PE 8 and 3 more: no GPU of another host is reached: the NVLink fabric is in progress"));
    assert_non_null(strstr(
        told, "PE 12 and 3 more: no GPU of another host is reached: the NVLink fabric is completed with an error"));
    assert_non_null(strstr(
        told, "PE 16 and 3 more: no GPU of another host is reached: the NVLink fabric is without fabric handles"));
    assert_non_null(
        strstr(told, "PE 20 and 3 more: no GPU of another host is reached: the NVLink fabric is not usable: a trial"));
    assert_non_null(strstr(
        told, "PE 24 and 3 more: no GPU of another host is reached: the NVLink fabric is without a cluster UUID"));
    assert_non_null(
        strstr(told, "PE 28 and 3 more: no GPU of another host is reached: the NVLink fabric is not started"));
    assert_non_null(strstr(
        told, "PE 32 and 3 more: no GPU of another host is reached: the NVLink fabric is of a divided GPU (MIG)"));
    assert_non_null(strstr(told, "PE 33 and PE 32 are not in one link domain: the GPU of PE 33 cannot access"));
}

/* Divided GPUs of two hosts and one clique: NVLink leads to none of them. */
static void parts_divided_gpus(void **state)
{
    static const char text[] = "weft-topology 1\nhost h[0-1]\nroot r\ngpu 0000:01:00.0 parent=r mig=yes clique=1 "
                               "cluster=00112233445566778899aabbccddeeff\n";
    wefti_topo topo;
    wefti_topo_gpu_of_pe *gpus;
    int *objects;
    int32_t domain_of[2];
    (void)state;
    assert_int_equal(wefti_topo_parse(&topo, "t", text, sizeof text - 1), WEFT_OK);
    assert_int_equal(wefti_topo_gpus_of(&topo, &gpus, &objects), 2);
    assert_int_equal(wefti_topo_domains(gpus, 2, domain_of, NULL, NULL, NULL), 2);
    wefti_free(gpus);
    wefti_free(objects);
    wefti_topo_fini(&topo);
}

static void leaves_out_the_odd_pair(void **state)
{
    static const char text[] = "weft-topology 1\nhost h\nroot r\ngpu 0000:01:00.0 parent=r\ngpu 0000:02:00.0 parent=r\n"
                               "gpu 0000:03:00.0 parent=r\ngpu 0000:04:00.0 parent=r mig=yes\n"
                               "unreachable 0000:03:00.0 0000:02:00.0\n";
    wefti_topo topo;
    wefti_topo_gpu_of_pe *gpus;
    int *objects;
    int32_t domain_of[4];
    (void)state;
    assert_int_equal(wefti_topo_parse(&topo, "t", text, sizeof text - 1), WEFT_OK);
    assert_int_equal(wefti_topo_gpus_of(&topo, &gpus, &objects), 4);
    told[0] = '\0';
    assert_int_equal(wefti_topo_domains(gpus, 4, domain_of, NULL, keep, NULL), 3);
    static const int32_t wanted[4] = {0, 0, 2, 3};
    assert_memory_equal(domain_of, wanted, sizeof wanted);
    assert_non_null(
        strstr(told, "PE 2 and PE 1 are not in one link domain: the GPU of PE 2 cannot access the other's memory, "
                     "only the other way round"));
    assert_non_null(strstr(told, "PE 3 and PE 0 are not in one link domain"));
    wefti_free(gpus);
    wefti_free(objects);
    wefti_topo_fini(&topo);
}

/* More GPUs than bits: none is taken for one with the same bit. */
static void knows_more_gpus_than_bits(void **state)
{
    char text[1 << 13] = "weft-topology 1\nhost h\nroot r\n";
    wefti_topo topo;
    wefti_topo_gpu_of_pe *gpus;
    int *objects;
    int32_t domain_of[72];
    (void)state;
    for (int i = 0; i < 72; i++) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, "gpu 0000:%02x:00.0 parent=r\n", i + 1);
    }
    const size_t length = strlen(text);
    (void)snprintf(text + length, sizeof text - length, "unreachable 0000:01:00.0 0000:04:00.0\n");
    assert_int_equal(wefti_topo_parse(&topo, "t", text, strlen(text)), WEFT_OK);
    assert_int_equal(wefti_topo_gpus_of(&topo, &gpus, &objects), 72);
    assert_true(wefti_topo_domains(gpus, 72, domain_of, NULL, NULL, NULL) >= 2);
    assert_int_not_equal(domain_of[0], domain_of[3]);
    assert_int_equal(domain_of[0], domain_of[1]);
    wefti_free(gpus);
    wefti_free(objects);
    wefti_topo_fini(&topo);
}

/* Two hosts of two GPUs in one clique. PE 3 imports nothing of PE 0, which imports its memory all the same. */
static int imports_but_one(void *context, int pe, int other)
{
    (void)context;
    return pe != 3 || other != 0;
}

static void parts_what_one_side_imports(void **state)
{
    wefti_topo_gpu_of_pe gpus[4] = {0};
    int32_t domain_of[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        gpus[i].has_gpu = 1;
        gpus[i].host[0] = (unsigned char)(i / 2);
        gpus[i].ordinal = (uint8_t)(i % 2);
        gpus[i].reaches = 3;
        gpus[i].fabric = (wefti_topo_fabric){{1}, 7, WEFTI_TOPO_FABRIC_COMPLETED, 0, 1, 1, 0};
    }
    assert_int_equal(wefti_topo_spans_hosts(gpus, 4), 1);
    assert_int_equal(wefti_topo_spans_hosts(gpus, 2), 0);
    told[0] = '\0';
    assert_int_equal(wefti_topo_domains(gpus, 4, domain_of, imports_but_one, keep, NULL), 2);
    static const int32_t wanted[4] = {0, 0, 0, 3};
    assert_memory_equal(domain_of, wanted, sizeof wanted);
    assert_string_equal(told, "PE 3 and PE 0 are not in one link domain: the GPU of PE 3 cannot import and map the "
                              "other's memory, only the other way round\n");
    gpus[2].fabric.clique = gpus[3].fabric.clique = 8;
    assert_int_equal(wefti_topo_spans_hosts(gpus, 4), 0);
}

static int is_mutual(const wefti_topo_gpu_of_pe *l, const wefti_topo_gpu_of_pe *r)
{
    if (memcmp(l->host, r->host, sizeof l->host) != 0) {
        return wefti_topo_fabric_refusal(&l->fabric) == NULL && wefti_topo_fabric_refusal(&r->fabric) == NULL &&
               l->fabric.clique == r->fabric.clique &&
               memcmp(l->fabric.cluster, r->fabric.cluster, sizeof l->fabric.cluster) == 0;
    }
    return l->ordinal == r->ordinal || ((l->reaches >> r->ordinal & 1) != 0 && (r->reaches >> l->ordinal & 1) != 0);
}

/* Members of a domain all reach each other, whatever their GPUs are; and its name is its lowest member. */
static void holds_only_what_is_mutual(void **state)
{
    enum { PES = 24 };
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        wefti_topo_gpu_of_pe gpus[PES] = {0};
        int32_t domain_of[PES];
        for (int i = 0; i < PES; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const uint64_t bits = random >> 20;
            gpus[i].has_gpu = bits % 16 != 0;
            gpus[i].host[0] = (unsigned char)(bits >> 4) % 4;
            gpus[i].ordinal = (uint8_t)(bits >> 8) % 6;
            gpus[i].reaches = ~(uint64_t)0 ^ (bits % 3 == 0 ? (uint64_t)1 << (bits >> 12) % 6 : 0);
            gpus[i].fabric = (wefti_topo_fabric){
                {1}, (uint32_t)(bits >> 16) % 2, 3, bits % 7 == 0, 1, bits % 5 != 0, bits % 11 == 0};
        }
        assert_true(wefti_topo_domains(gpus, PES, domain_of, NULL, NULL, NULL) > 0);
        for (int i = 0; i < PES; i++) {
            assert_true(domain_of[i] >= 0 && domain_of[i] <= i && domain_of[domain_of[i]] == domain_of[i]);
            for (int j = 0; j < i; j++) {
                assert_true(domain_of[i] != domain_of[j] ||
                            (gpus[i].has_gpu && gpus[j].has_gpu && is_mutual(&gpus[i], &gpus[j])));
            }
        }
    }
}

static void is_fast(void **state)
{
    enum { PES = 10000 };
    struct timespec before;
    struct timespec after;
    (void)state;
    assert_true(sizeof(wefti_topo_gpu_of_pe) <= 256);
    wefti_topo_gpu_of_pe *gpus = calloc(PES, sizeof *gpus);
    int32_t *domain_of = calloc(PES, sizeof *domain_of);
    assert_true(gpus != NULL && domain_of != NULL);
    for (int i = 0; i < PES; i++) {
        const int host = i * 7919 % PES / 4;
        memcpy(gpus[i].host, &host, sizeof host);
        gpus[i].has_gpu = 1;
        gpus[i].ordinal = (uint8_t)(i * 7919 % PES % 4);
        gpus[i].reaches = 15;
        gpus[i].fabric = (wefti_topo_fabric){{1}, (uint32_t)(host / 18), 3, 0, 1, 1, 0};
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    assert_int_equal(wefti_topo_domains(gpus, PES, domain_of, NULL, NULL, NULL), (PES / 4 + 17) / 18);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
    print_message("link domains of %d PEs: %.2f ms, %zu bytes a PE\n", PES, ms, sizeof *gpus);
#ifndef WEFT_FAULTS /* sanitizers are slow */
    assert_true(ms < 50);
#endif
    free(gpus);
    free(domain_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_hosts_of_one_clique),
        cmocka_unit_test(ends_at_cliques),
        cmocka_unit_test(says_why_a_fabric_does_not_count),
        cmocka_unit_test(leaves_out_the_odd_pair),
        cmocka_unit_test(knows_more_gpus_than_bits),
        cmocka_unit_test(parts_what_one_side_imports),
        cmocka_unit_test(holds_only_what_is_mutual),
        cmocka_unit_test(parts_divided_gpus),
        cmocka_unit_test(is_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
