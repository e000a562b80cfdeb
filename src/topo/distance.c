#include "topo/distance.h"

/* The nearest object that both are below, or -1. */
static int common_of(const wefti_topo *topo, int left, int right)
{
    const wefti_topo_object *objects = topo->objects;
    while (left != right && left >= 0 && right >= 0) {
        int *deeper = objects[left].depth >= objects[right].depth ? &left : &right;
        *deeper = objects[*deeper].parent;
    }
    return left == right ? left : -1;
}

/* Switches between an object and one that it is below. */
static int switches_below(const wefti_topo *topo, int common, int object)
{
    int switches = 0;
    for (int at = object; at != common; at = topo->objects[at].parent) {
        switches += topo->objects[at].kind == WEFTI_TOPO_SWITCH;
    }
    return switches;
}

wefti_topo_distance wefti_topo_distance_of(const wefti_topo *topo, int left, int right)
{
    const int common = common_of(topo, left, right);
    if (common < 0) {
        return WEFTI_TOPO_NONE;
    }
    switch ((wefti_topo_kind)topo->objects[common].kind) {
    case WEFTI_TOPO_GPU:
    case WEFTI_TOPO_NIC:
        return WEFTI_TOPO_SELF;
    case WEFTI_TOPO_SWITCH:
        return switches_below(topo, common, left) + switches_below(topo, common, right) == 0 ? WEFTI_TOPO_PIX
                                                                                             : WEFTI_TOPO_PXB;
    case WEFTI_TOPO_ROOT:
        return WEFTI_TOPO_PHB;
    case WEFTI_TOPO_NUMA:
        return WEFTI_TOPO_NODE;
    case WEFTI_TOPO_PACKAGE:
    case WEFTI_TOPO_HOST:
    case WEFTI_TOPO_KINDS:
        break;
    }
    return WEFTI_TOPO_SYS;
}

const char *wefti_topo_distance_name(wefti_topo_distance distance)
{
    static const char *const names[] = {"SELF", "PIX", "PXB", "PHB", "NODE", "SYS", "-"};
    return names[distance];
}
