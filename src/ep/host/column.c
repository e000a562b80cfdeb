#include "ep/host/column.h"

#include <string.h>

int64_t wefti_ep_expert_end(const weft_ep_plan *plan, int ranks, int64_t first, int64_t rows)
{
    if (plan->layout == WEFT_EP_SLOTS_EXPERT) {
        return first + (int64_t)ranks * plan->slot_tokens;
    }
    return first + (rows + plan->alignment - 1) / plan->alignment * plan->alignment;
}

int64_t wefti_ep_column_rows(const wefti_ep_column *column, int64_t tokens)
{
    int64_t end = 0;
    switch (column->plan.layout) {
    case WEFT_EP_RANK_MAJOR:
        return tokens;
    case WEFT_EP_SLOTS_SOURCE:
        return (int64_t)column->ranks * column->plan.slot_tokens;
    default:
        for (int expert = 0; expert < column->experts; expert++) {
            end = wefti_ep_expert_end(&column->plan, column->ranks, end, column->of_expert[expert]);
        }
        return end;
    }
}

static void clear(const wefti_ep_column *column)
{
    memset(column->of_expert, 0, (size_t)column->experts * sizeof *column->of_expert);
}

/* Add a source's rows by expert; returns their number. */
static int64_t add_source(const wefti_ep_column *column, int source)
{
    const uint32_t *message = wefti_ep_column_message(column, source);
    int64_t rows = 0;
    for (int expert = 0; expert < column->experts; expert++) {
        column->of_expert[expert] += message[1 + expert];
        rows += message[1 + expert];
    }
    return rows;
}

wefti_ep_column_sum wefti_ep_column_add_up(const wefti_ep_column *column)
{
    wefti_ep_column_sum sum = {0, 0, 0};
    clear(column);
    for (int source = 0; source < column->ranks; source++) {
        sum.tokens += *wefti_ep_column_message(column, source);
        sum.filled += add_source(column, source);
    }
    sum.filled = wefti_ep_plan_is_by_source(&column->plan) ? sum.tokens : sum.filled;
    sum.rows = wefti_ep_column_rows(column, sum.tokens);
    return sum;
}

int wefti_ep_column_cut(const wefti_ep_column *column, int64_t limit)
{
    int64_t tokens = 0;
    int cut = 0;
    clear(column);
    for (; cut < column->ranks; cut++) {
        tokens += *wefti_ep_column_message(column, cut);
        (void)add_source(column, cut);
        if (!wefti_ep_plan_is_slots(&column->plan) && wefti_ep_column_rows(column, tokens) > limit) {
            break;
        }
    }
    if (cut == column->ranks) {
        return -1;
    }
    uint32_t *message = wefti_ep_column_message(column, cut);
    message[0] = (uint32_t)(tokens - message[0]);
    for (int expert = 0; expert < column->experts; expert++) {
        message[1 + expert] = (uint32_t)(column->of_expert[expert] - message[1 + expert]);
    }
    for (int source = cut + 1; source < column->ranks; source++) {
        memset(wefti_ep_column_message(column, source), 0, (1 + (size_t)column->experts) * sizeof(uint32_t));
    }
    return cut;
}

void wefti_ep_column_answer(const wefti_ep_column *column)
{
    (void)wefti_ep_column_add_up(column);
    int64_t place = 0;
    int64_t end = 0;
    for (int expert = 0; expert < column->experts; expert++) { /* of_expert: from rows to the next row */
        int64_t first = end;
        end = wefti_ep_expert_end(&column->plan, column->ranks, first, column->of_expert[expert]);
        column->of_expert[expert] = first;
    }
    for (int source = 0; source < column->ranks; source++) {
        uint32_t *message = wefti_ep_column_message(column, source);
        uint32_t tokens = message[0];
        message[0] = column->own_places != 0 ? (uint32_t)source * column->own_places : (uint32_t)place;
        place += tokens;
        for (int expert = 0; expert < column->experts; expert++) {
            uint32_t rows = message[1 + expert];
            message[1 + expert] = (uint32_t)column->of_expert[expert];
            column->of_expert[expert] += rows;
        }
    }
}
