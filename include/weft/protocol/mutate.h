/* protocol/mutate.h: named bugs, to see that the simulator would find them. None is there unless a build defines
 * WEFT_MUTATION_<NAME> as 1, which only the mutation tests do (tests/sim/mutations.txt lists them).
 *
 *   WEFTI_MUTATED(NAME)                1 when the bug is there, else 0: a constant
 *   WEFTI_MUTATE(NAME, wrong, right)   `wrong` when it is there, else `right` */
#ifndef WEFTI_PROTOCOL_MUTATE_H
#define WEFTI_PROTOCOL_MUTATE_H

/* A macro that is 1 pastes to "0," and so shifts a 1 into second place. */
#define WEFTI_MUTATED(name) WEFTI_MUTATED_VALUE(WEFT_MUTATION_##name)
#define WEFTI_MUTATED_VALUE(value) WEFTI_MUTATED_PASTE(value)
#define WEFTI_MUTATED_PASTE(value) WEFTI_MUTATED_PICK(WEFTI_MUTATED_SHIFT_##value 1, 0, 0)
#define WEFTI_MUTATED_SHIFT_1 0,
#define WEFTI_MUTATED_PICK(first, ...) WEFTI_MUTATED_SECOND(first, __VA_ARGS__)
#define WEFTI_MUTATED_SECOND(first, second, ...) second

#define WEFTI_MUTATE(name, wrong, right) (WEFTI_MUTATED(name) ? (wrong) : (right))

#endif
