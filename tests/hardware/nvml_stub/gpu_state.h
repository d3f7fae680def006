/* The state of a made-up machine with GPUs: one memory-mapped file that the stub of NVML, the load
   program and the tests share. tests/hardware/gpu_state.py holds the same structures for ctypes.

   Times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes of the host.
   Clocks enter the laws as f = clock / highest supported clock:

     P(f) = u (alpha_p f^3 + beta_p f) + gamma_p       watts under load
     T(n, f) = (alpha_t + beta_t / f + gamma_t n) / n  seconds per unit, without gamma_t for n = 1
     u = size / (size + n half_size)                   T is divided by u */
#ifndef GPU_STATE_H
#define GPU_STATE_H

#include <pthread.h>
#include <stdint.h>

enum { MAX_DEVICES = 16, MAX_CLOCKS = 128, MAX_LOADS = 32, MAX_SEGMENTS = 1024, MAX_CALLS = 512 };
enum { CALL_LOCK = 1, CALL_RESET = 2 };

typedef struct {
    int64_t from_ns;
    double watts; /* from then on, without spikes and noise */
} segment_t;

typedef struct {
    /* What the tests choose. */
    char uuid[96], name[96];
    int32_t clocks_mhz[MAX_CLOCKS]; /* ascending */
    int32_t num_clocks, memory_clock_mhz, application_clock_mhz;
    int32_t locked_low_mhz, locked_high_mhz; /* both 0: not locked */
    int32_t instant_power;                   /* NVML_FI_DEV_POWER_INSTANT is present */
    int32_t has_counter; /* the energy counter: 0 none, 1 present, 2 not as a field value */
    int32_t has_power;                       /* power can be read at all */
    int32_t architecture; /* as NVML numbers them: 6 Turing, 7 Ampere, 9 Hopper; 0: not said */
    int32_t mean_power;   /* nvmlDeviceGetPowerUsage is a mean over a second, not of the moment */
    int32_t deny_clocks;                     /* no permission to set clocks */
    int32_t mig;
    int32_t cap_mhz; /* throttling: no clock above it; 0: none */
    uint64_t cap_reasons;
    int64_t cap_from_ns, cap_until_ns; /* until 0: for ever */
    int64_t lost_from_ns;              /* 0: never lost */
    double memory_gb, power_limit_w;
    double alpha_p, beta_p, gamma_p, idle_w;
    double alpha_t, beta_t, gamma_t, half_size;
    double noise;      /* standard deviation of power readings, relative */
    double time_noise; /* of the seconds that the load program prints, relative */
    double spike_w;
    int64_t spike_width_ns, spike_period_ns; /* period 0: no spikes */
    int64_t counter_step_ns;                 /* the counter moves at multiples of this; 0: always */
    int64_t control_ns; /* a call that sets clocks takes this long; half passes before the effect */
    int32_t pids; /* processes: 0 listed, 1 none is seen (as in a container), 2 no permission */
    /* What the library keeps. */
    int32_t in_call, in_call_pid; /* the call that has begun and not ended: its process may be dead */
    double energy_j; /* up to now_ns of the machine, with spikes */
    int64_t num_readings; /* calls of nvmlDeviceGetFieldValues */
    int64_t num_segments;
    segment_t segments[MAX_SEGMENTS]; /* a ring */
} device_t;

typedef struct {
    int32_t active, pid, num_devices;
    int32_t devices[MAX_DEVICES];
    double size, target_units, units; /* target 0: none */
    int64_t began_ns, until_ns, ended_ns; /* until 0: none */
} load_t;

typedef struct {
    int64_t at_ns;
    int32_t pid, device, kind, low_mhz, high_mhz, result;
} call_t;

typedef struct {
    uint64_t size;
    union {
        pthread_mutex_t mutex;
        char room[64];
    } lock;
    char driver[80];
    int64_t began_ns, now_ns, checked_ns;
    uint64_t noise_seed, noise_count;
    int32_t num_devices, init_result; /* what nvmlInit returns */
    int64_t num_calls;
    call_t calls[MAX_CALLS]; /* a ring */
    load_t loads[MAX_LOADS];
    device_t devices[MAX_DEVICES];
} machine_t;

int64_t machine_now_ns(void);
int machine_create(const char *path, int num_devices);
machine_t *machine_open(const char *path);
uint64_t machine_size(void);
/* Take the lock and bring the state to the present; give it back. */
void machine_lock(machine_t *m);
void machine_unlock(machine_t *m);
/* The following need the lock. */
double machine_gauss(machine_t *m);
int machine_is_lost(const machine_t *m, int k);
int machine_clock_mhz(const machine_t *m, int k);
uint64_t machine_reasons(const machine_t *m, int k);
double machine_busy_share(const machine_t *m, int k);
double machine_watts(const machine_t *m, int k);
double machine_mean_watts(const machine_t *m, int k, int64_t window_ns);
double machine_counter_j(const machine_t *m, int k);
void machine_note_call(machine_t *m, int device, int kind, int low, int high, int result);

#endif
