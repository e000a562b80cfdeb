/* Goal: a connection is kept only with who may be at its other end, for as long as that is worth while, and ends in a
 * way that loses nothing.
 * Method: other ends are played (fake_net.h): one that is silent, one that is so beside PE 0, one that the network does
 * not trust, one that refuses, takes a connection and refuses again, one that sends back what it hears, one that was
 * not heard. */
#include "sim/tree/scenes.h"

int main(void)
{
    return scenes_test(SCENES_CONNECTION);
}
