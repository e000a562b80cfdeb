/* The flag barrier of src/team/sync.c, for PES members and EPOCHS barriers, with explicit store buffers.
 *
 *   src/team/sync.c                                   here
 *   epoch = own sync_epoch + 1                        the loop variable
 *   flag_member(flag of round r, epoch, to)           store(FLAG(to, r), epoch, FLAG_RELEASE)
 *   while (wefti_ld64(flag, WEFTI_ACQUIRE) < epoch)   memory[FLAG(me, r)] >= epoch
 *   puts before the barrier                           store(DATA(me), epoch, 0), plain puts of every kind
 *   loads after it                                    the assertions
 *
 * Checked: what each member stored before a barrier is in memory when any member leaves it, and all leave. With
 * -DRELAXED, where flags are no releases, the assertion must fail: the test runs that too.
 * Not modelled: old values read by loads that are no acquire (the simulator does that), deadlines, far members. */
#ifndef PES
#define PES 3
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#if PES == 2
#define ROUNDS 1
#else
#define ROUNDS 2
#endif
#define BUFFER 4
#define FLAG(pe, round) ((pe) * ROUNDS + (round))
#define DATA(pe) (PES * ROUNDS + (pe))
#define PLACES (PES * ROUNDS + PES)
#ifdef RELAXED
#define FLAG_RELEASE 0
#else
#define FLAG_RELEASE 1
#endif

#include "buffers.pml"

proctype member(byte me)
{
    byte epoch;
    byte round;
    byte other;
    for (epoch : 1 .. EPOCHS) {
        store(me, DATA(me), epoch, 0);
        for (round : 0 .. ROUNDS - 1) {
            store(me, FLAG((me + (1 << round)) % PES, round), epoch, FLAG_RELEASE);
            memory[FLAG(me, round)] >= epoch
        }
        atomic {
            for (other : 0 .. PES - 1) {
                assert(other == me || memory[DATA(other)] >= epoch)
            }
            other = 0;
            round = 0
        }
    }
}

init
{
    byte pe;
    atomic {
        for (pe : 0 .. PES - 1) {
            run member(pe);
            run lander(pe)
        }
    }
}
