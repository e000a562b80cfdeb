/* ep/absence.cuh: a rank that does not come. */
#ifndef EP_ABSENCE_CUH
#define EP_ABSENCE_CUH

#include "ep/job.cuh"

static void test_absence(job *of, arena *all)
{
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_host_counts counts;
    weft_ep_config config = small_config(8);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 2;
    config.flags = WEFT_EP_STATISTICS; /* which a mask leaves as they are */
    int absent = of->pe->pes - 1;
    (void)ep_group_open(of->world, &config, &plan, &ep, &route);
    CHECK_OK(weft_device_deadline(of->world, UINT64_C(300000000) * (!ON_GPU && of->pe->pes > FEW_PES ? 10 : 1)));
    gpu_set(of->pe, all->base[PLAIN], 0, 1024);
    if (of->pe->pe != absent) {
        weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
        choices.tokens = 8;
        choices.ids = all->base[PLAIN];
        CHECK_OK(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)));
        CHECK_STATUS(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts), WEFT_ERR_TIMEOUT);
        char rank[16];
        snprintf(rank, sizeof rank, " %d", absent);
        check_that(strstr(weft_last_error(), rank) != NULL, __FILE__, __LINE__, "names no rank %d: %s", absent,
                   weft_last_error());
        CHECK_STATUS(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)), WEFT_ERR_TIMEOUT);
        /* The others go on: all their tokens go to expert 0, of rank 0. They come as far apart as they have waited. */
        CHECK_OK(weft_device_deadline(of->world, DEADLINE_NS * (ON_GPU ? 1 : 10)));
        CHECK_OK(weft_ep_mask(ep, absent, 0));
        CHECK_OK(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)));
        CHECK_OK(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts));
        check_that(counts.status == WEFT_OK && counts.rows == (of->pe->pe == 0 ? 8 * absent : 0), __FILE__, __LINE__,
                   "%lld rows after a mask, status %d", (long long)counts.rows, counts.status);
        ep_group_close(ep, route);
    }
    /* The absent rank's group ends with its world; but what ends one may wait for all kernels on the GPU, and keep
     * those of others from being launched. */
    CHECK_OK(weft_barrier(of->world));
}

#endif
