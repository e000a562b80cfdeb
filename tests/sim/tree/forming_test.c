/* Goal: while a tree forms everybody is told of the same offence, a place is taken once and by whose it is, parked PEs
 * keep to their deadline and say so, and PE 0 answers those who ask for it.
 * Method: PEs that are played (fake_net.h) come twice, come to the wrong place, stay away while others ask, or are PE 0
 * and park the PE under test for as long as they like. */
#include "sim/tree/scenes.h"

int main(void)
{
    return scenes_test(SCENES_FORMING);
}
