/* A solver on a grid with the calls that the NAS benchmarks for SHMEM make: the grid is a global array; rows are put
 * into the neighbours, columns by strided puts; a flag after a fence says that they are there, and is awaited; norms by
 * an active-set sum of doubles and a maximum; parameters by a broadcast. The result is that of one PE alone. */
/* PES: 1 2 3 4 8 */
#include "faces/shmem/check.h"

#define ROWS 24 /* of all PEs */
#define COLUMNS 32
#define STEPS 20

static double grid[2][ROWS + 2][COLUMNS]; /* this PE's rows, one of each neighbour around them */
static double edge[ROWS + 2]; /* the last column of the PE before */
static volatile int arrived[2]; /* steps whose row has come from above, from below */
static double norm;
static double norms;
static double work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long sync_sum[SHMEM_REDUCE_SYNC_SIZE];
static long sync_max[SHMEM_REDUCE_SYNC_SIZE];
static long sync_cast[SHMEM_BCAST_SYNC_SIZE];
static long parameters[2];
static long cast[2];

static int first_row(int pe, int pes)
{
    return (int)((long)ROWS * pe / pes);
}

static double value_at(int row, int column)
{
    return (double)((row * 31 + column * 17) % 101);
}

static double relax(double above, double below, double here)
{
    return 0.25 * above + 0.25 * below + 0.5 * here;
}

/* All of it on this PE. */
static double solve_alone(double whole[ROWS + 2][COLUMNS])
{
    static double next[ROWS + 2][COLUMNS];
    double sum = 0;
    for (int step = 0; step < STEPS; step++) {
        for (int r = 1; r <= ROWS; r++) {
            for (int c = 0; c < COLUMNS; c++) {
                next[r][c] = relax(whole[r - 1][c], whole[r + 1][c], whole[r][c]);
            }
        }
        memcpy(whole[1], next[1], sizeof(double) * ROWS * COLUMNS);
    }
    for (int r = 1; r <= ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            sum += whole[r][c];
        }
    }
    return sum;
}

static void exchange(int now, int rows, int step)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    if (me > 0) {
        const int theirs = first_row(me, pes) - first_row(me - 1, pes);
        shmem_double_put(grid[now][theirs + 1], grid[now][1], COLUMNS, me - 1);
        shmem_fence();
        shmem_int_p((int *)&arrived[1], step, me - 1);
    }
    if (me < pes - 1) {
        shmem_double_put(grid[now][0], grid[now][rows], COLUMNS, me + 1);
        shmem_fence();
        shmem_int_p((int *)&arrived[0], step, me + 1);
        shmem_int_wait_until((int *)&arrived[1], SHMEM_CMP_GE, step);
    }
    if (me > 0) {
        shmem_int_wait_until((int *)&arrived[0], SHMEM_CMP_GE, step);
    }
}

static void solve(int rows)
{
    for (int step = 1; step <= STEPS; step++) {
        const int now = (step - 1) % 2;
        exchange(now, rows, step);
        for (int r = 1; r <= rows; r++) {
            for (int c = 0; c < COLUMNS; c++) {
                grid[1 - now][r][c] = relax(grid[now][r - 1][c], grid[now][r + 1][c], grid[now][r][c]);
            }
        }
        shmem_barrier_all(); /* the grid that was read is written next */
    }
}

static void init_sync(long *sync, int longs)
{
    for (int i = 0; i < longs; i++) {
        sync[i] = SHMEM_SYNC_VALUE;
    }
}

/* The last column of the grid goes to the next PE by a strided put, and comes as one row. */
static void check_column(int rows)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    shmem_double_iput(edge, &grid[0][1][COLUMNS - 1], 1, COLUMNS, (size_t)rows, (me + 1) % pes);
    shmem_barrier_all();
    const int before = (me + pes - 1) % pes;
    const int theirs = first_row(before + 1, pes) - first_row(before, pes);
    for (int r = 0; r < theirs; r++) {
        double there;
        shmem_double_get(&there, &grid[0][1 + r][COLUMNS - 1], 1, before);
        CHECK(edge[r] == there);
    }
}

int main(void)
{
    static double whole[ROWS + 2][COLUMNS];
    start_pes(0);
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    const int first = first_row(me, pes);
    const int rows = first_row(me + 1, pes) - first;
    init_sync(sync_sum, SHMEM_REDUCE_SYNC_SIZE);
    init_sync(sync_max, SHMEM_REDUCE_SYNC_SIZE);
    init_sync(sync_cast, SHMEM_BCAST_SYNC_SIZE);
    if (me == 0) {
        parameters[0] = ROWS;
        parameters[1] = STEPS;
    }
    shmem_barrier_all();
    shmem_broadcast64(cast, parameters, 2, 0, 0, 0, pes, sync_cast);
    CHECK(me == 0 || (cast[0] == ROWS && cast[1] == STEPS));
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            whole[r + 1][c] = value_at(r, c);
            if (r >= first && r < first + rows) {
                grid[0][r - first + 1][c] = value_at(r, c);
            }
        }
    }
    shmem_barrier_all();
    solve(rows);
    const double sum = solve_alone(whole);
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            CHECK(grid[STEPS % 2][r + 1][c] == whole[first + r + 1][c]);
            norm += grid[STEPS % 2][r + 1][c];
        }
    }
    shmem_double_sum_to_all(&norms, &norm, 1, 0, 0, pes, work, sync_sum);
    CHECK(norms > sum * (1 - 1e-12) && norms < sum * (1 + 1e-12));
    norm = me;
    shmem_double_max_to_all(&norms, &norm, 1, 0, 0, pes, work, sync_max);
    CHECK(norms == pes - 1);
    check_column(rows);
    return check_end();
}
