/* lib/plot.c: a gnuplot script, and who draws it. */
#include "tools/lib/plot.h"

#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/lib/record.h"

extern char **environ;

/* Reads the data and the labels out of the script that it is given. */
static const char matplotlib[] =
    "import re, shlex, sys\n"
    "import matplotlib\n"
    "matplotlib.use('svg')\n"
    "from matplotlib import pyplot\n"
    "script = open(sys.argv[1]).read()\n"
    "rows = [shlex.split(line) for line in script.split('<< END\\n')[1].split('\\nEND\\n')[0].split('\\n')]\n"
    "panels = re.findall(r\"^set title '(.*)'$\", script, re.M)\n"
    "labels = re.findall(r\"^set ylabel '(.*)'$\", script, re.M)\n"
    "figure, axes = pyplot.subplots(len(panels), 1, figsize=(10, 4 * len(panels)), squeeze=False)\n"
    "figure.suptitle(re.search(r'title \"(.*)\"$', script, re.M)[1])\n"
    "for i, (panel, label) in enumerate(zip(panels, labels)):\n"
    "    axis = axes[i][0]\n"
    "    for curve in dict.fromkeys(row[-1] for row in rows):\n"
    "        points = [(float(r[0]), float(r[1 + i])) for r in rows if r[-1] == curve]\n"
    "        axis.loglog(*zip(*points), marker='.', label=curve, base=2)\n"
    "    axis.set(title=panel, ylabel=label, xlabel=re.search(r\"^set xlabel '(.*)'$\", script, re.M)[1])\n"
    "    axis.legend()\n"
    "    axis.grid()\n"
    "figure.savefig(sys.argv[1] + '.svg')\n";

int tool_plot_open(tool_plot *plot, const char *path, int panels)
{
    *plot = (tool_plot){.path = path, .panels = panels};
    if (tool_file_open(path, "w", &plot->file)) {
        return 1;
    }
    if (plot->file != NULL) {
        fputs("# gnuplot script; columns: the parameter, then a value a panel, and the curve's name\n$data << END\n",
              plot->file);
    }
    return 0;
}

/* Remember a curve that is new. */
static void note_curve(tool_plot *plot, const char *curve)
{
    for (int i = 0; i < plot->curve_count; i++) {
        if (strcmp(plot->curves[i], curve) == 0) {
            return;
        }
    }
    char **curves = realloc(plot->curves, ((size_t)plot->curve_count + 1) * sizeof *curves);
    char *copy = strdup(curve);
    if (curves != NULL) {
        plot->curves = curves;
    }
    if (curves == NULL || copy == NULL) {
        free(copy);
        return; /* a curve less */
    }
    plot->curves[plot->curve_count++] = copy;
}

void tool_plot_add(tool_plot *plot, const char *curve, double x, const double *values)
{
    if (plot->file == NULL) {
        return;
    }
    note_curve(plot, curve);
    fprintf(plot->file, "%.0f", x);
    for (int i = 0; i < plot->panels; i++) {
        fprintf(plot->file, " %.6g", values[i]);
    }
    fprintf(plot->file, " \"%s\"\n", curve);
}

static void write_script(tool_plot *plot, const tool_plot_labels *labels)
{
    fputs("END\n", plot->file);
    fprintf(plot->file, "set terminal svg size 1000,%d background 'white'\nset output '%s.svg'\n",
            100 + 333 * plot->panels, plot->path);
    fprintf(plot->file, "set xlabel '%s'\nset logscale xy 2\nset key left top\nset grid\n", labels->x);
    fprintf(plot->file, "set multiplot layout %d,1 title \"%s\"\n", plot->panels, labels->title);
    for (int panel = 0; panel < plot->panels; panel++) {
        fprintf(plot->file, "set title '%s'\nset ylabel '%s'\nplot", labels->panels[panel], labels->y[panel]);
        for (int i = 0; i < plot->curve_count; i++) {
            const char *name = plot->curves[i];
            fprintf(plot->file,
                    "%s $data using 1:(stringcolumn(%d) eq \"%s\" ? column(%d) : NaN) with linespoints title \"%s\"",
                    i == 0 ? "" : ",", plot->panels + 2, name, panel + 2, name);
        }
        fputs("\n", plot->file);
    }
    fputs("unset multiplot\n", plot->file);
}

/* Whether the command was found and ended well. */
static int run(const char *const *command)
{
    pid_t child;
    int status = 0;
    if (posix_spawnp(&child, command[0], NULL, NULL, (char *const *)(uintptr_t)command, environ) != 0) {
        return 0;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status == 0;
}

static void draw(const char *path)
{
    const char *const by_gnuplot[] = {"gnuplot", path, NULL};
    const char *const has_matplotlib[] = {
        "python3", "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('matplotlib'))", NULL};
    const char *const by_python[] = {"python3", "-c", matplotlib, path, NULL};
    if (!run(by_gnuplot) && !(run(has_matplotlib) && run(by_python))) {
        fprintf(stderr, "%s: not drawn, for want of gnuplot and of Python's matplotlib: `gnuplot %s` draws it\n",
                program_invocation_short_name, path);
    }
}

int tool_plot_close(tool_plot *plot, const tool_plot_labels *labels)
{
    int has_points = plot->curve_count > 0;
    if (plot->file != NULL) {
        write_script(plot, labels);
    }
    int failed = tool_file_close(plot->file, plot->path);
    if (!failed && plot->file != NULL && has_points) {
        draw(plot->path);
    }
    for (int i = 0; i < plot->curve_count; i++) {
        free(plot->curves[i]);
    }
    free(plot->curves);
    return failed;
}
