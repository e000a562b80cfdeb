/* faces/shmem/executable.c: see executable.h. The program headers are read, not the process' map, which shows
 * neighbouring pages of others as one with these. */
#include "faces/shmem/executable.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/mix.h"

#define NOTE_NAME "GNU"

typedef ElfW(Phdr) program_header;
typedef ElfW(Nhdr) note_header;

static uintptr_t down(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static uintptr_t up(uintptr_t address)
{
    return down(address + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* ---- pieces ---- */

static void add(wefti_executable *executable, wefti_executable_piece piece)
{
    size_t at = executable->count;
    if (piece.begin >= piece.end) {
        return;
    }
    if (at == WEFTI_EXECUTABLE_PIECES_MAX) {
        executable->has_more = 1;
        return;
    }
    while (at > 0 && executable->pieces[at - 1].begin > piece.begin) {
        executable->pieces[at] = executable->pieces[at - 1];
        at--;
    }
    if (piece.file_end < piece.begin) {
        piece.file_end = piece.begin;
    } else if (piece.file_end > piece.end) {
        piece.file_end = piece.end;
    }
    executable->pieces[at] = piece;
    executable->count++;
}

/* What a segment leaves of itself before and after the pages that the loader seals, which end with the last whole
 * one. */
static void add_segment(wefti_executable *executable, const struct dl_phdr_info *program, const program_header *segment)
{
    const uintptr_t begin = program->dlpi_addr + segment->p_vaddr;
    wefti_executable_piece piece = {
        .begin = down(begin),
        .file_end = up(begin + segment->p_filesz),
        .end = up(begin + segment->p_memsz),
        .protection = PROT_READ | PROT_WRITE | ((segment->p_flags & PF_X) != 0 ? PROT_EXEC : 0),
    };
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
        const program_header *sealed = &program->dlpi_phdr[i];
        const uintptr_t first = program->dlpi_addr + sealed->p_vaddr;
        const uintptr_t sealed_begin = down(first);
        const uintptr_t sealed_end = down(first + sealed->p_memsz);
        if (sealed->p_type == PT_GNU_RELRO && sealed_begin < sealed_end && sealed_end > piece.begin &&
            sealed_begin < piece.end) {
            wefti_executable_piece before = piece;
            before.end = sealed_begin;
            add(executable, before);
            piece.begin = sealed_end;
        }
    }
    add(executable, piece);
}

/* ---- which program ---- */

/* A build id may have any length: what is beyond the room is folded in. */
static void take_build_id(wefti_executable *executable, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        executable->id[i % sizeof executable->id] ^= bytes[i];
    }
}

/* The build id among the notes of a segment. Returns 0 when there is none. */
static int read_notes(wefti_executable *executable, uintptr_t at, const program_header *notes)
{
    const size_t alignment = notes->p_align == 8 ? 8 : 4;
    const uintptr_t end = at + notes->p_memsz;
    while (at + sizeof(note_header) <= end) {
        const note_header *note = (const void *)at;
        const char *name = (const char *)(note + 1);
        const size_t before = (sizeof *note + note->n_namesz + alignment - 1) / alignment * alignment;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof NOTE_NAME &&
            memcmp(name, NOTE_NAME, sizeof NOTE_NAME) == 0) {
            take_build_id(executable, (const unsigned char *)note + before, note->n_descsz);
            return 1;
        }
        at += before + (note->n_descsz + alignment - 1) / alignment * alignment;
    }
    return 0;
}

/* FNV-1a of the program headers, where a link has left no build id: of the sizes and places of all, at least. */
static void take_headers(wefti_executable *executable, const struct dl_phdr_info *program)
{
    uint64_t hash = WEFTI_FNV;
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
        const unsigned char *bytes = (const unsigned char *)&program->dlpi_phdr[i];
        for (size_t j = 0; j < sizeof program->dlpi_phdr[i]; j++) {
            hash = wefti_fnv(hash, bytes[j]);
        }
    }
    memcpy(executable->id, &hash, sizeof hash);
}

static int read_program(struct dl_phdr_info *program, size_t bytes, void *out)
{
    wefti_executable *executable = out;
    int has_id = 0;
    (void)bytes;
    executable->is_static = 1;
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
        const program_header *segment = &program->dlpi_phdr[i];
        if (segment->p_type == PT_INTERP) {
            executable->is_static = 0;
        } else if (segment->p_type == PT_NOTE && !has_id) {
            has_id = read_notes(executable, program->dlpi_addr + segment->p_vaddr, segment);
        } else if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0) {
            add_segment(executable, program, segment);
        }
    }
    if (!has_id) {
        take_headers(executable, program);
    }
    return 1; /* the main program comes first, and is all */
}

void wefti_executable_read(wefti_executable *executable)
{
    memset(executable, 0, sizeof *executable);
    (void)dl_iterate_phdr(read_program, executable);
}
