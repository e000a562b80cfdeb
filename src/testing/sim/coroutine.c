/* testing/sim/coroutine.c: the switch: callee-saved registers on the stack, the stack pointer in the record. */
#include "testing/sim/coroutine.h"

#include <stdint.h>
#include <string.h>

#include "testing/sim/sanitizer.h"

void wefti_switch_stack(void **save, void *to);
void wefti_stack_entry(void);
void wefti_coroutine_first(wefti_coroutine *coroutine) __attribute__((used, noreturn));

#if defined(__x86_64__)

/* rdi: where to save the stack pointer; rsi: the other's. */
__asm__(".text\n"
        ".globl wefti_switch_stack\n"
        ".hidden wefti_switch_stack\n"
        ".type wefti_switch_stack, @function\n"
        "wefti_switch_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size wefti_switch_stack, . - wefti_switch_stack\n"
        /* The first return lands here, the coroutine in rbx; the zero above it ends backtraces. */
        ".globl wefti_stack_entry\n"
        ".hidden wefti_stack_entry\n"
        ".type wefti_stack_entry, @function\n"
        "wefti_stack_entry:\n"
        "    movq %rbx, %rdi\n"
        "    jmp wefti_coroutine_first\n"
        ".size wefti_stack_entry, . - wefti_stack_entry\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");

static void *first_frame(unsigned char *top, wefti_coroutine *coroutine)
{
    uint64_t *sp = (uint64_t *)(void *)((uintptr_t)top & ~(uintptr_t)15);
    *--sp = 0;
    *--sp = (uint64_t)(uintptr_t)wefti_stack_entry;
    *--sp = 0; /* rbp */
    *--sp = (uint64_t)(uintptr_t)coroutine; /* rbx */
    sp -= 4; /* r12 to r15 */
    memset(sp, 0, 4 * sizeof *sp);
    return sp;
}

#elif defined(__aarch64__)

/* x0: where to save the stack pointer; x1: the other's. */
__asm__(".text\n"
        ".globl wefti_switch_stack\n"
        ".hidden wefti_switch_stack\n"
        ".type wefti_switch_stack, %function\n"
        "wefti_switch_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size wefti_switch_stack, . - wefti_switch_stack\n"
        ".globl wefti_stack_entry\n"
        ".hidden wefti_stack_entry\n"
        ".type wefti_stack_entry, %function\n"
        "wefti_stack_entry:\n"
        "    mov x0, x19\n"
        "    mov x29, xzr\n"
        "    mov x30, xzr\n"
        "    b wefti_coroutine_first\n"
        ".size wefti_stack_entry, . - wefti_stack_entry\n"
        ".section .note.GNU-stack,\"\",%progbits\n"
        ".text\n");

static void *first_frame(unsigned char *top, wefti_coroutine *coroutine)
{
    uint64_t *sp = (uint64_t *)(void *)((uintptr_t)top & ~(uintptr_t)15);
    sp -= 20;
    memset(sp, 0, 20 * sizeof *sp);
    sp[0] = (uint64_t)(uintptr_t)coroutine; /* x19 */
    sp[11] = (uint64_t)(uintptr_t)wefti_stack_entry; /* x30 */
    return sp;
}

#else
#error "the simulator knows how to switch stacks on x86-64 and aarch64 only"
#endif

void wefti_coroutine_init_thread(wefti_coroutine *coroutine)
{
    memset(coroutine, 0, sizeof *coroutine);
    coroutine->tsan_fiber = wefti_sanitizer_fiber_current();
}

void wefti_coroutine_init(wefti_coroutine *coroutine, void *stack, size_t stack_bytes, void (*body)(void *argument),
                          void *argument)
{
    memset(coroutine, 0, sizeof *coroutine);
    coroutine->stack = stack;
    coroutine->stack_bytes = stack_bytes;
    coroutine->body = body;
    coroutine->argument = argument;
    coroutine->sp = first_frame(coroutine->stack + stack_bytes, coroutine);
    coroutine->tsan_fiber = wefti_sanitizer_fiber_create();
}

void wefti_coroutine_fini(wefti_coroutine *coroutine)
{
    if (coroutine->stack != NULL) {
        wefti_sanitizer_fiber_destroy(coroutine->tsan_fiber);
    }
    memset(coroutine, 0, sizeof *coroutine);
}

/* The thread's own stack is learned from the first coroutine that is entered from it. */
static _Thread_local wefti_coroutine *left;

static void arrive(wefti_coroutine *self)
{
    const void *bottom;
    size_t bytes;
    wefti_sanitizer_switch_end(self->fake_stack, &bottom, &bytes);
    if (left != NULL && left->stack == NULL) {
        left->stack_bytes = bytes;
        left->argument = (void *)(uintptr_t)bottom;
    }
}

static void depart(wefti_coroutine *from, wefti_coroutine *to, void **fake_stack)
{
    const void *bottom = to->stack != NULL ? to->stack : to->argument;
    left = from;
    wefti_sanitizer_switch_begin(fake_stack, bottom, to->stack_bytes, to->tsan_fiber);
}

void wefti_coroutine_first(wefti_coroutine *coroutine)
{
    arrive(coroutine);
    coroutine->body(coroutine->argument);
    __builtin_unreachable();
}

void wefti_coroutine_switch(wefti_coroutine *from, wefti_coroutine *to)
{
    depart(from, to, &from->fake_stack);
    wefti_switch_stack(&from->sp, to->sp);
    arrive(from);
}

void wefti_coroutine_switch_last(wefti_coroutine *from, wefti_coroutine *to)
{
    depart(from, to, NULL);
    wefti_switch_stack(&from->sp, to->sp);
}
