/* The laws of the made-up machine: what its clocks, watts, joules and loads are at a moment. */
#define _GNU_SOURCE
#include "gpu_state.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const int64_t CHECK_EVERY_NS = 50000000;

int64_t machine_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t machine_size(void) { return sizeof(machine_t); }

int machine_create(const char *path, int num_devices) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return -1;
    if (ftruncate(fd, sizeof(machine_t)) != 0) {
        close(fd);
        return -1;
    }
    machine_t *m = mmap(NULL, sizeof(machine_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (m == MAP_FAILED) return -1;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m->lock.mutex, &kind);
    m->began_ns = m->now_ns = machine_now_ns();
    m->num_devices = num_devices;
    m->size = sizeof(machine_t);
    munmap(m, sizeof(machine_t));
    return 0;
}

machine_t *machine_open(const char *path) {
    int fd = open(path, O_RDWR);
    if (fd < 0) return NULL;
    struct stat found;
    machine_t *m = MAP_FAILED;
    if (fstat(fd, &found) == 0 && (uint64_t)found.st_size == sizeof(machine_t))
        m = mmap(NULL, sizeof(machine_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return m == MAP_FAILED ? NULL : m;
}

int machine_is_lost(const machine_t *m, int k) {
    int64_t from = m->devices[k].lost_from_ns;
    return from != 0 && m->now_ns >= from;
}

static int capped(const machine_t *m, const device_t *d) {
    return d->cap_mhz != 0 && m->now_ns >= d->cap_from_ns &&
           (d->cap_until_ns == 0 || m->now_ns < d->cap_until_ns);
}

static int on_device(const load_t *load, int k) {
    if (!load->active) return 0;
    for (int i = 0; i < load->num_devices; i++)
        if (load->devices[i] == k) return 1;
    return 0;
}

static double filled(const device_t *d, const load_t *load) {
    return load->size / (load->size + load->num_devices * d->half_size);
}

/* The share of the device that works: 0 where nothing runs. */
double machine_busy_share(const machine_t *m, int k) {
    double share = 0;
    for (int i = 0; i < MAX_LOADS; i++)
        if (on_device(&m->loads[i], k)) share = fmax(share, filled(&m->devices[k], &m->loads[i]));
    return share;
}

static int snapped(const device_t *d, int mhz) {
    int at = d->clocks_mhz[0];
    for (int i = 0; i < d->num_clocks; i++)
        if (d->clocks_mhz[i] <= mhz) at = d->clocks_mhz[i];
    return at;
}

static double top_mhz(const device_t *d) { return d->clocks_mhz[d->num_clocks - 1]; }

static double law_watts(const device_t *d, double share, int mhz) {
    double f = mhz / top_mhz(d);
    return share * (d->alpha_p * f * f * f + d->beta_p * f) + d->gamma_p;
}

static int chosen_mhz(const device_t *d, double share) {
    int mhz = share > 0 ? d->clocks_mhz[d->num_clocks - 1] : d->clocks_mhz[0];
    if (d->locked_high_mhz != 0) {
        if (mhz > d->locked_high_mhz) mhz = d->locked_high_mhz;
        if (mhz < d->locked_low_mhz) mhz = d->locked_low_mhz;
    }
    return snapped(d, mhz);
}

static int within_power_mhz(const device_t *d, double share, int mhz) {
    while (share > 0 && d->power_limit_w > 0 && mhz > d->clocks_mhz[0] &&
           law_watts(d, share, mhz) > d->power_limit_w)
        mhz = snapped(d, mhz - 1);
    return mhz;
}

int machine_clock_mhz(const machine_t *m, int k) {
    const device_t *d = &m->devices[k];
    double share = machine_busy_share(m, k);
    int mhz = within_power_mhz(d, share, chosen_mhz(d, share));
    return capped(m, d) && mhz > d->cap_mhz ? snapped(d, d->cap_mhz) : mhz;
}

uint64_t machine_reasons(const machine_t *m, int k) {
    const device_t *d = &m->devices[k];
    double share = machine_busy_share(m, k);
    if (share == 0) return 1; /* idle */
    int mhz = chosen_mhz(d, share);
    uint64_t reasons = within_power_mhz(d, share, mhz) < mhz ? 4 : 0; /* power cap */
    if (capped(m, d) && within_power_mhz(d, share, mhz) > d->cap_mhz) reasons |= d->cap_reasons;
    return reasons;
}

static double base_watts(const machine_t *m, int k) {
    const device_t *d = &m->devices[k];
    double share = machine_busy_share(m, k);
    if (machine_is_lost(m, k)) return 0;
    return share > 0 ? law_watts(d, share, machine_clock_mhz(m, k)) : d->idle_w;
}

/* How long spikes have lasted, up to a moment. */
static double spiked_s(const machine_t *m, const device_t *d, int64_t at_ns) {
    if (d->spike_period_ns <= 0) return 0;
    int64_t t = at_ns - m->began_ns, rest = t % d->spike_period_ns;
    int64_t whole = t / d->spike_period_ns * d->spike_width_ns;
    return (whole + (rest < d->spike_width_ns ? rest : d->spike_width_ns)) * 1e-9;
}

double machine_watts(const machine_t *m, int k) {
    const device_t *d = &m->devices[k];
    double watts = base_watts(m, k);
    if (d->spike_period_ns > 0 && (m->now_ns - m->began_ns) % d->spike_period_ns < d->spike_width_ns)
        watts += d->spike_w;
    return watts;
}

/* Joules of a past interval that ends now at the latest, from the ring of segments. */
static double joules(const machine_t *m, int k, int64_t from_ns, int64_t to_ns) {
    const device_t *d = &m->devices[k];
    double sum = d->spike_w * (spiked_s(m, d, to_ns) - spiked_s(m, d, from_ns));
    int64_t end_ns = to_ns;
    int64_t oldest = d->num_segments > MAX_SEGMENTS ? d->num_segments - MAX_SEGMENTS : 0;
    for (int64_t i = d->num_segments - 1; i >= oldest && end_ns > from_ns; i--) {
        const segment_t *s = &d->segments[i % MAX_SEGMENTS];
        if (s->from_ns >= end_ns) continue;
        int64_t begin_ns = s->from_ns > from_ns ? s->from_ns : from_ns;
        sum += s->watts * (end_ns - begin_ns) * 1e-9;
        end_ns = begin_ns;
    }
    return sum;
}

double machine_mean_watts(const machine_t *m, int k, int64_t window_ns) {
    int64_t from_ns = m->now_ns - window_ns;
    if (from_ns < m->began_ns) from_ns = m->began_ns;
    if (from_ns >= m->now_ns) return machine_watts(m, k);
    return joules(m, k, from_ns, m->now_ns) / ((m->now_ns - from_ns) * 1e-9);
}

double machine_counter_j(const machine_t *m, int k) {
    const device_t *d = &m->devices[k];
    if (d->counter_step_ns <= 0) return d->energy_j;
    int64_t late_ns = (m->now_ns - m->began_ns) % d->counter_step_ns;
    return d->energy_j - joules(m, k, m->now_ns - late_ns, m->now_ns);
}

static void note_power(machine_t *m) {
    for (int k = 0; k < m->num_devices; k++) {
        device_t *d = &m->devices[k];
        if (d->num_clocks == 0) continue;
        double watts = base_watts(m, k);
        int64_t n = d->num_segments;
        if (n > 0 && d->segments[(n - 1) % MAX_SEGMENTS].watts == watts) continue;
        d->segments[n % MAX_SEGMENTS] = (segment_t){m->now_ns, watts};
        d->num_segments = n + 1;
    }
}

static double units_per_s(const machine_t *m, const load_t *load) {
    const device_t *d = &m->devices[load->devices[0]];
    double f = 1e9, n = load->num_devices, sharers = 1;
    for (int i = 0; i < load->num_devices; i++) {
        int k = load->devices[i], here = 0;
        if (machine_is_lost(m, k)) return 0;
        f = fmin(f, machine_clock_mhz(m, k) / top_mhz(&m->devices[k]));
        for (int j = 0; j < MAX_LOADS; j++) here += on_device(&m->loads[j], k);
        sharers = fmax(sharers, here);
    }
    double alone = d->alpha_t + d->beta_t / f;
    double seconds = load->num_devices == 1 ? alone : (alone + d->gamma_t * n) / n;
    return filled(d, load) / (seconds * sharers);
}

static void earlier(int64_t *at_ns, int64_t event_ns, int64_t now_ns) {
    if (event_ns > now_ns && event_ns < *at_ns) *at_ns = event_ns;
}

/* Power and speeds are constant between events: a load's end, a cap's begin and end, a loss. */
static void advance(machine_t *m, int64_t to_ns) {
    note_power(m);
    while (m->now_ns < to_ns) {
        int64_t at_ns = to_ns, ends_ns[MAX_LOADS];
        double rates[MAX_LOADS];
        for (int k = 0; k < m->num_devices; k++) {
            earlier(&at_ns, m->devices[k].cap_from_ns, m->now_ns);
            earlier(&at_ns, m->devices[k].cap_until_ns, m->now_ns);
            earlier(&at_ns, m->devices[k].lost_from_ns, m->now_ns);
        }
        for (int i = 0; i < MAX_LOADS; i++) {
            load_t *load = &m->loads[i];
            if (!load->active) continue;
            rates[i] = units_per_s(m, load);
            ends_ns[i] = load->until_ns != 0 ? load->until_ns : INT64_MAX;
            if (load->target_units > 0 && rates[i] > 0) {
                double left_ns = ceil((load->target_units - load->units) / rates[i] * 1e9);
                if (left_ns < 1) left_ns = 1;
                if (left_ns < 1e18) ends_ns[i] = m->now_ns + (int64_t)left_ns;
            }
            if (ends_ns[i] <= m->now_ns) ends_ns[i] = m->now_ns + 1;
            earlier(&at_ns, ends_ns[i], m->now_ns);
        }
        double dt_s = (at_ns - m->now_ns) * 1e-9;
        for (int k = 0; k < m->num_devices; k++) {
            device_t *d = &m->devices[k];
            d->energy_j += base_watts(m, k) * dt_s +
                           d->spike_w * (spiked_s(m, d, at_ns) - spiked_s(m, d, m->now_ns));
        }
        m->now_ns = at_ns;
        for (int i = 0; i < MAX_LOADS; i++) {
            load_t *load = &m->loads[i];
            if (!load->active) continue;
            load->units += rates[i] * dt_s;
            if (ends_ns[i] != at_ns) continue;
            if (load->target_units > 0) load->units = load->target_units;
            load->active = 0;
            load->ended_ns = at_ns;
        }
        note_power(m);
    }
}

static int is_dead(int pid) {
    char path[64], state = 'Z';
    if (kill(pid, 0) != 0 && errno == ESRCH) return 1;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 1;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'R';
    fclose(file);
    return state == 'Z';
}

void machine_lock(machine_t *m) {
    if (pthread_mutex_lock(&m->lock.mutex) == EOWNERDEAD) pthread_mutex_consistent(&m->lock.mutex);
    int64_t now_ns = machine_now_ns();
    advance(m, now_ns);
    if (now_ns - m->checked_ns < CHECK_EVERY_NS) return;
    m->checked_ns = now_ns;
    for (int i = 0; i < MAX_LOADS; i++) /* a killed load draws no power any more */
        if (m->loads[i].active && is_dead(m->loads[i].pid)) m->loads[i].active = 0;
    note_power(m);
}

void machine_unlock(machine_t *m) {
    note_power(m);
    pthread_mutex_unlock(&m->lock.mutex);
}

static uint64_t mixed(uint64_t x) { /* splitmix64 */
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* A standard normal number: a function of the seed and of how many were drawn before. */
double machine_gauss(machine_t *m) {
    uint64_t n = m->noise_count++;
    double a = (mixed(mixed(m->noise_seed) + 2 * n) >> 11) * 0x1p-53;
    double b = (mixed(mixed(m->noise_seed) + 2 * n + 1) >> 11) * 0x1p-53;
    return sqrt(-2 * log(1 - a)) * cos(2 * M_PI * b);
}

void machine_note_call(machine_t *m, int device, int kind, int low, int high, int result) {
    call_t *call = &m->calls[m->num_calls++ % MAX_CALLS];
    *call = (call_t){m->now_ns, getpid(), device, kind, low, high, result};
}
