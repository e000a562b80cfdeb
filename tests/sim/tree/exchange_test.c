/* Goal: an exchange takes the frames and questions of its own step and no other's, and blames the silent and nobody
 * else.
 * Method: PE 0 exchanges with a child that is played: it asks about a step that is over, contributes to one again, says
 * something while PE 0 is stalled, and takes its time at moments where an honest child may. */
#include "sim/tree/scenes.h"

int main(void)
{
    return scenes_test(SCENES_EXCHANGE);
}
