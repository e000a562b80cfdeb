"""Programs with a mistake in them: one file of the library is compiled again, and linked before the rest of the build."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import edits

MULTIPLE = "-Wl,-z,muldefs"
ARCHIVES = {"libweft_shmem.so": ["libweft_shmem.a"], "libweft.so": ["libweft.a", "-ldl", "-lm"]}


class Programs:
    def __init__(self, root, build):
        self.root = root.resolve()
        self.build = build.resolve()
        self.folder = self.build / "mutations"
        self.folder.mkdir(exist_ok=True)
        self.compiles = {}  # (library, source): command
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            library = re.match(r"CMakeFiles/(\w+)\.dir/", words[words.index("-o") + 1])
            if library:
                self.compiles[library[1], entry["file"]] = words
        self.campaign = self.link_whole_campaign()

    def make(self, command, mutation=None):
        done = subprocess.run(command, cwd=self.build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        if done.returncode != 0:
            raise edits.Refused(f"{mutation.name if mutation else command[0]}: {done.stdout}")

    def run(self, command, timeout, silence=None):
        """Exit status, None when it does not end or says nothing for so many seconds; output; seconds."""
        begin = heard = time.monotonic()
        size = 0
        ends = True
        with tempfile.TemporaryFile() as output:
            words = [str(word) for word in command]
            with subprocess.Popen(words, cwd=self.build, stdout=output, stderr=subprocess.STDOUT) as program:
                while program.poll() is None:
                    time.sleep(min(0.1, (time.monotonic() - begin) / 10 + 0.002))
                    if os.fstat(output.fileno()).st_size != size:
                        size = os.fstat(output.fileno()).st_size
                        heard = time.monotonic()
                    now = time.monotonic()
                    if now - begin > timeout or (silence is not None and now - heard > silence):
                        program.kill()
                        ends = False
                        break
            output.seek(0)
            text = output.read().decode(errors="replace")
        return program.returncode if ends else None, text, time.monotonic() - begin

    def command(self, text, program):
        return [str(program) if word == "{}" else word for word in shlex.split(text)]

    def link_command(self, target):
        """How the build links a program, as words."""
        text = subprocess.run(["ninja", "-t", "commands", "-s", target], cwd=self.build, capture_output=True, text=True,
                              check=True).stdout
        return [word for word in shlex.split(text) if word not in (":", "&&")]

    def link_whole_campaign(self):
        """The campaign as it is. What all its mutants share is put into one object and an archive, without what debuggers
        read, so that linking a mutant takes little."""
        words = self.link_command("tests/campaign")
        objects = [word for word in words if word.endswith(".o")]
        self.base = self.folder / "base.o"
        self.library = self.folder / "library.a"
        self.make(["ld", "-r", "-S", "-o", self.base, *objects])
        self.make(["strip", "-S", "-o", self.library, "libweft_sim.a"])
        self.libraries = [word for word in words if word.startswith("-l")]
        return self.build / "tests" / "campaign"

    def sources(self, mutation, parts):
        """What has to be compiled again, of these parts of the build: (file, command)."""
        patterns = mutation.keys.get("through", mutation.file).split()
        paths = [path for pattern in patterns for path in sorted(self.root.glob(pattern))]
        found = [(path, self.compiles[part, str(path)]) for path in paths for part in parts
                 if (part, str(path)) in self.compiles]
        if not found:
            raise edits.Refused(f"{mutation.name}: nothing of {' '.join(patterns)} is compiled for {' '.join(parts)}")
        return found

    def generate(self, mutation, copy):
        """What is made of the tables of the OpenSHMEM face with the mistake in them or in what reads them: those files
        that differ, as (file, command)."""
        faces = self.root / "src" / "faces"
        for path in [*faces.glob("*.py"), *faces.glob("shmem/*.py"), *faces.glob("shmem/*.table"), *faces.glob("shmem/*.in")]:
            if path != self.root / mutation.file:
                shutil.copy(path, copy / path.relative_to(self.root))
        made = copy / "made"
        made.mkdir(exist_ok=True)
        self.make([sys.executable, copy / "src" / "faces" / "shmem" / "generate.py", "functions", made], mutation)
        built = self.build / "generated" / "shmem"
        found = [(path, self.compiles["weft_shmem_objects", str(built / path.name)]) for path in sorted(made.glob("*.c"))
                 if path.read_text() != (built / path.name).read_text()]
        if not found:
            raise edits.Refused(f"{mutation.name}: the functions of the face are as before")
        return found

    def compile(self, mutation, *parts):
        """The objects with the mistake. They come before those without it, of which the same names are ignored."""
        copy = self.folder / mutation.name
        changed = copy / mutation.file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(edits.mutate(self.root, mutation))
        overlay = [f"-I{copy / 'include'}", f"-I{copy / 'src'}"]
        objects = []
        is_made_of = changed.suffix in (".table", ".py")
        for path, words in self.generate(mutation, copy) if is_made_of else self.sources(mutation, parts):
            source = changed if path == self.root / mutation.file else path
            objects.append(copy / f"{len(objects)}.o")
            flags = [word for word in words[1 : words.index("-o")] if word not in ("-O3", "-g", "-Werror")]
            self.make([words[0], *overlay, *flags, "-O1", "-w", "-o", objects[-1], "-c", source], mutation)
        return objects

    def link_campaign(self, mutation):
        objects = self.compile(mutation, "weft_sim", "weft_campaign")
        program = self.folder / mutation.name / "campaign"
        compiler = self.compiles["weft_sim", str(self.root / "src/testing/sim/run.c")][0]
        self.make([compiler, MULTIPLE, "-o", program, *objects, self.base, self.library, *self.libraries], mutation)
        return program

    def link_test(self, mutation, target):
        """Programs on a face are linked to the archives, of which parts can be exchanged."""
        words = [part for word in self.link_command(f"tests/{target}")
                 for part in ARCHIVES.get(re.sub(r"\.so.*", ".so", word), [word])]
        library = "weft_sim" if any(word.endswith("libweft_sim.a") for word in words) else "weft_objects"
        objects = self.compile(mutation, library, "weft_shmem_objects", target)
        program = self.folder / mutation.name / target
        words[words.index("-o") + 1] = program
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        self.make([*words[:first], MULTIPLE, *objects, *words[first:]], mutation)
        return program
