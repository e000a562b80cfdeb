/* bootstrap/tree/positions.h: the tree over which PEs exchange, by arithmetic.
 *
 * Written in base 4, a PE's parent is its number with the lowest digit that is not 0 made 0: 4^k - 1 PEs hang below a
 * number with k zeros at its end, and those are the ones that follow it. So a subtree is a run of numbers, three
 * quarters of all PEs are leaves, and depth and height are at most log4(pes). */
#ifndef WEFTI_BOOTSTRAP_TREE_POSITIONS_H
#define WEFTI_BOOTSTRAP_TREE_POSITIONS_H

#include <stdint.h>

#define WEFTI_TREE_RADIX 4
/* Three a level, sixteen levels. */
#define WEFTI_TREE_CHILDREN_MAX 48

/* How many levels lie below PE 0. */
static inline int wefti_tree_levels(int pes)
{
    int levels = 0;
    for (int64_t reach = 1; reach < pes; reach *= WEFTI_TREE_RADIX) {
        levels++;
    }
    return levels;
}

/* How many levels at most lie below `pe`. */
static inline int wefti_tree_height(int pe, int pes)
{
    if (pe == 0) {
        return wefti_tree_levels(pes);
    }
    int height = 0;
    while (pe % WEFTI_TREE_RADIX == 0) {
        pe /= WEFTI_TREE_RADIX;
        height++;
    }
    return height;
}

/* How many levels lie above `pe`. */
static inline int wefti_tree_depth(int pe)
{
    int depth = 0;
    for (; pe > 0; pe /= WEFTI_TREE_RADIX) {
        depth += pe % WEFTI_TREE_RADIX != 0;
    }
    return depth;
}

static inline int64_t wefti_tree_reach(int pe, int pes)
{
    int64_t reach = 1;
    for (int height = wefti_tree_height(pe, pes); height > 0; height--) {
        reach *= WEFTI_TREE_RADIX;
    }
    return reach;
}

/* The parent of `pe`, which is not 0. */
static inline int wefti_tree_parent(int pe, int pes)
{
    return pe - (int)(pe % (wefti_tree_reach(pe, pes) * WEFTI_TREE_RADIX));
}

/* The PEs of the subtree of `pe` are pe ... pe + span - 1. */
static inline int wefti_tree_span(int pe, int pes)
{
    int64_t reach = wefti_tree_reach(pe, pes);
    return reach < pes - pe ? (int)reach : pes - pe;
}

/* Fill `children`, the largest subtree first; returns how many there are. */
static inline int wefti_tree_children(int pe, int pes, int children[WEFTI_TREE_CHILDREN_MAX])
{
    int count = 0;
    for (int64_t step = wefti_tree_reach(pe, pes) / WEFTI_TREE_RADIX; step > 0; step /= WEFTI_TREE_RADIX) {
        for (int64_t digit = 1; digit < WEFTI_TREE_RADIX && pe + digit * step < pes; digit++) {
            children[count++] = (int)(pe + digit * step);
        }
    }
    return count;
}

#endif
