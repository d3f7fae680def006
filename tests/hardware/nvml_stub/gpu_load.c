/* gpu_load DEVICES SIZE [--units N | --seconds S] [--every S]: make devices of the machine busy.

   DEVICES are indices or UUIDs with commas between them, SIZE is the problem size of the law.
   At the end one line says what was done: units=U seconds=S; with --every S such lines come about
   that often, each with what was done since the line before. The exit code is 3 where a device is
   lost. */
#define _GNU_SOURCE
#include "gpu_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const long SLICE_NS = 5000000;

static int fail(const char *message, const char *value) {
    fprintf(stderr, "gpu_load: %s: %s\n", message, value);
    return 2;
}

static int device_of(const machine_t *m, const char *word) {
    for (int k = 0; k < m->num_devices; k++)
        if (strcmp(m->devices[k].uuid, word) == 0) return k;
    char *end;
    long k = strtol(word, &end, 10);
    return *word != 0 && *end == 0 && k >= 0 && k < m->num_devices ? (int)k : -1;
}

static load_t *begin(machine_t *m, load_t wanted, double seconds) {
    load_t *found = NULL;
    machine_lock(m);
    for (int i = 0; i < MAX_LOADS && found == NULL; i++) /* pid 0: its program has gone */
        if (!m->loads[i].active && m->loads[i].pid == 0) found = &m->loads[i];
    for (int i = 0; i < MAX_LOADS && found == NULL; i++)
        if (!m->loads[i].active && m->loads[i].ended_ns == 0) found = &m->loads[i];
    if (found != NULL) {
        wanted.began_ns = m->now_ns;
        if (seconds > 0) wanted.until_ns = m->now_ns + (int64_t)(seconds * 1e9);
        *found = wanted;
    }
    machine_unlock(m);
    return found;
}

/* One line, with the noise of the first device. Needs the lock, which it does not keep while it
   writes. */
static void report(machine_t *m, const load_t *load, double units, int64_t ns) {
    double noise = m->devices[load->devices[0]].time_noise;
    if (noise > 0) noise *= machine_gauss(m);
    machine_unlock(m);
    printf("units=%.9g seconds=%.9f\n", units, ns * 1e-9 * (1 + noise));
    fflush(stdout);
    machine_lock(m);
}

int main(int argc, char **argv) {
    const char *path = getenv("NVML_STUB_STATE");
    machine_t *m = path != NULL ? machine_open(path) : NULL;
    if (m == NULL) return fail("no machine", path != NULL ? path : "NVML_STUB_STATE is not set");
    double every_s = 0;
    if (argc > 4 && strcmp(argv[argc - 2], "--every") == 0) {
        every_s = atof(argv[argc - 1]);
        argc -= 2;
    }
    if (argc != 3 && argc != 5) return fail("usage", "DEVICES SIZE [--units N | --seconds S] [--every S]");
    load_t load = {.active = 1, .pid = getpid(), .size = atof(argv[2])};
    if (load.size <= 0) return fail("the size must be positive", argv[2]);
    char *words = strdup(argv[1]);
    for (char *word = strtok(words, ","); word != NULL; word = strtok(NULL, ",")) {
        int k = device_of(m, word);
        if (k < 0 || load.num_devices == MAX_DEVICES) return fail("no such device", word);
        load.devices[load.num_devices++] = k;
    }
    double seconds = argc == 3 ? 1 : 0;
    if (argc == 5 && strcmp(argv[3], "--units") == 0) load.target_units = atof(argv[4]);
    if (argc == 5 && strcmp(argv[3], "--seconds") == 0) seconds = atof(argv[4]);
    if (load.num_devices == 0 || (load.target_units <= 0 && seconds <= 0))
        return fail("nothing to do", argv[1]);
    load_t *mine = begin(m, load, seconds);
    if (mine == NULL) return fail("too many loads", argv[1]);
    int lost = 0, active = 1;
    double told_units = 0;
    int64_t told_ns = mine->began_ns;
    while (active && !lost) {
        nanosleep(&(struct timespec){0, SLICE_NS}, NULL);
        machine_lock(m);
        active = mine->active;
        for (int i = 0; i < load.num_devices; i++) lost |= machine_is_lost(m, load.devices[i]);
        if (active && !lost && every_s > 0 && m->now_ns - told_ns >= every_s * 1e9) {
            double units = mine->units - told_units;
            int64_t ns = m->now_ns - told_ns;
            told_units += units;
            told_ns += ns;
            report(m, mine, units, ns);
        }
        machine_unlock(m);
    }
    machine_lock(m);
    load_t done = *mine;
    *mine = (load_t){0};
    if (!lost && done.units > told_units)
        report(m, &load, done.units - told_units, done.ended_ns - told_ns);
    machine_unlock(m);
    if (lost) {
        fprintf(stderr, "gpu_load: device lost\n");
        return 3;
    }
    return 0;
}
