/* The functions of libnvidia-ml.so.1 that optbench calls, on the machine of $NVML_STUB_STATE.
   With -DOLD_DRIVER the newer ones do not exist. */
#define _GNU_SOURCE
#include "gpu_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int ret_t;
typedef void *handle_t;
enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15
};
enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEM = 2 };
enum { FIELD_ENERGY = 83, FIELD_POWER_AVERAGE = 185, FIELD_POWER_INSTANT = 186 };
enum { TYPE_UNSIGNED_INT = 1, TYPE_UNSIGNED_LONG_LONG = 3 };
static const int64_t WINDOW_NS = 1000000000;

static machine_t *machine = NULL;
static int users = 0;

ret_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    const char *path = getenv("NVML_STUB_STATE");
    if (machine == NULL && path != NULL) machine = machine_open(path);
    if (machine == NULL) return DRIVER_NOT_LOADED;
    if (machine->init_result != SUCCESS) return machine->init_result;
    users++;
    return SUCCESS;
}
ret_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

ret_t nvmlShutdown(void) {
    if (users == 0) return UNINITIALIZED;
    users--;
    return SUCCESS;
}

const char *nvmlErrorString(ret_t result) {
    switch (result) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case GPU_IS_LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

static ret_t copy(const char *text, char *out, unsigned length) {
    if (strlen(text) + 1 > length) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}

ret_t nvmlSystemGetDriverVersion(char *out, unsigned length) {
    return users == 0 ? UNINITIALIZED : copy(machine->driver, out, length);
}
ret_t nvmlSystemGetNVMLVersion(char *out, unsigned length) {
    return users == 0 ? UNINITIALIZED : copy("13.0", out, length);
}

ret_t nvmlDeviceGetCount_v2(unsigned *count) {
    if (users == 0) return UNINITIALIZED;
    *count = machine->num_devices;
    return SUCCESS;
}

/* Take the lock where the device answers: DEVICE begins a function that reads it. */
static ret_t enter(handle_t handle, int *k) {
    *k = (int)(intptr_t)handle - 1;
    if (users == 0) return UNINITIALIZED;
    if (*k < 0 || *k >= machine->num_devices) return INVALID_ARGUMENT;
    machine_lock(machine);
    if (!machine_is_lost(machine, *k)) return SUCCESS;
    machine_unlock(machine);
    return GPU_IS_LOST;
}
static ret_t leave(ret_t result) {
    machine_unlock(machine);
    return result;
}
#define DEVICE(handle)                         \
    int k;                                     \
    ret_t entered = enter(handle, &k);         \
    if (entered != SUCCESS) return entered;    \
    device_t *d = &machine->devices[k];        \
    (void)d

ret_t nvmlDeviceGetHandleByIndex_v2(unsigned index, handle_t *handle) {
    *handle = (handle_t)(intptr_t)(index + 1);
    DEVICE(*handle);
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetHandleByUUID(const char *uuid, handle_t *handle) {
    if (users == 0) return UNINITIALIZED;
    for (int i = 0; i < machine->num_devices; i++)
        if (strcmp(machine->devices[i].uuid, uuid) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, handle);
    return NOT_FOUND;
}
ret_t nvmlDeviceGetIndex(handle_t handle, unsigned *index) {
    DEVICE(handle);
    *index = k;
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetName(handle_t handle, char *out, unsigned length) {
    DEVICE(handle);
    return leave(copy(d->name, out, length));
}
ret_t nvmlDeviceGetUUID(handle_t handle, char *out, unsigned length) {
    DEVICE(handle);
    return leave(copy(d->uuid, out, length));
}
ret_t nvmlDeviceGetMemoryInfo(handle_t handle, unsigned long long *total_free_used) {
    DEVICE(handle);
    total_free_used[0] = total_free_used[1] = (unsigned long long)(d->memory_gb * 1e9);
    total_free_used[2] = 0;
    return leave(SUCCESS);
}

/* Milliwatts, instant or of the last second, with noise. */
static unsigned milliwatts(int k, int instant) {
    double watts = instant ? machine_watts(machine, k) : machine_mean_watts(machine, k, WINDOW_NS);
    double noise = machine->devices[k].noise;
    if (noise > 0) watts *= 1 + noise * machine_gauss(machine);
    return watts > 0 ? (unsigned)(watts * 1e3 + 0.5) : 0;
}
ret_t nvmlDeviceGetPowerUsage(handle_t handle, unsigned *milliwatts_out) {
    DEVICE(handle);
    if (!d->has_power) return leave(NOT_SUPPORTED);
    *milliwatts_out = milliwatts(k, !d->mean_power);
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetEnforcedPowerLimit(handle_t handle, unsigned *limit) {
    DEVICE(handle);
    if (d->power_limit_w <= 0) return leave(NOT_SUPPORTED);
    *limit = (unsigned)(d->power_limit_w * 1e3 + 0.5);
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetPowerManagementLimit(handle_t handle, unsigned *limit) {
    return nvmlDeviceGetEnforcedPowerLimit(handle, limit);
}

ret_t nvmlDeviceGetClockInfo(handle_t handle, int type, unsigned *mhz) {
    DEVICE(handle);
    if (type != CLOCK_GRAPHICS && type != CLOCK_SM && type != CLOCK_MEM)
        return leave(INVALID_ARGUMENT);
    *mhz = type == CLOCK_MEM ? d->memory_clock_mhz : machine_clock_mhz(machine, k);
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetApplicationsClock(handle_t handle, int type, unsigned *mhz) {
    DEVICE(handle);
    if (d->application_clock_mhz == 0) return leave(NOT_SUPPORTED);
    *mhz = type == CLOCK_MEM ? d->memory_clock_mhz : d->application_clock_mhz;
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetSupportedMemoryClocks(handle_t handle, unsigned *count, unsigned *mhz) {
    DEVICE(handle);
    unsigned room = *count;
    *count = 1;
    if (mhz == NULL || room < 1) return leave(INSUFFICIENT_SIZE);
    mhz[0] = d->memory_clock_mhz;
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetSupportedGraphicsClocks(handle_t handle, unsigned memory_mhz, unsigned *count,
                                           unsigned *mhz) {
    DEVICE(handle);
    unsigned room = *count, n = d->num_clocks;
    if ((int)memory_mhz != d->memory_clock_mhz) return leave(NOT_FOUND);
    *count = n;
    if (mhz == NULL || room < n) return leave(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < n; i++) mhz[i] = d->clocks_mhz[n - 1 - i]; /* descending, as NVML */
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetTemperature(handle_t handle, int sensor, unsigned *celsius) {
    DEVICE(handle);
    (void)sensor;
    *celsius = (unsigned)(30 + 0.1 * machine_mean_watts(machine, k, WINDOW_NS));
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetUtilizationRates(handle_t handle, unsigned *gpu_memory) {
    DEVICE(handle);
    if (d->mig > 0) return leave(NOT_SUPPORTED);
    gpu_memory[0] = (unsigned)(100 * machine_busy_share(machine, k) + 0.5);
    gpu_memory[1] = 0;
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetCurrentClocksThrottleReasons(handle_t handle, unsigned long long *reasons) {
    DEVICE(handle);
    *reasons = machine_reasons(machine, k);
    return leave(SUCCESS);
}

/* Processes with a context on the device. The structures of _v2 and _v3 are the same. */
typedef struct {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
} process_t;

ret_t nvmlDeviceGetComputeRunningProcesses_v2(handle_t handle, unsigned *count, process_t *found) {
    DEVICE(handle);
    if (d->pids == 2) return leave(NO_PERMISSION);
    unsigned room = found != NULL ? *count : 0, n = 0;
    for (int i = 0; i < MAX_LOADS && d->pids == 0; i++) {
        const load_t *load = &machine->loads[i];
        for (int j = 0; load->active && j < load->num_devices; j++) {
            if (load->devices[j] != k) continue;
            if (n < room) found[n] = (process_t){load->pid, 1 << 20, -1u, -1u};
            n++;
        }
    }
    *count = n;
    return leave(n > room ? INSUFFICIENT_SIZE : SUCCESS);
}
ret_t nvmlDeviceGetGraphicsRunningProcesses_v2(handle_t handle, unsigned *count, process_t *found) {
    DEVICE(handle);
    (void)found;
    *count = 0;
    return leave(SUCCESS);
}

#ifndef OLD_DRIVER

ret_t nvmlDeviceGetComputeRunningProcesses_v3(handle_t handle, unsigned *count, process_t *found) {
    return nvmlDeviceGetComputeRunningProcesses_v2(handle, count, found);
}
ret_t nvmlDeviceGetGraphicsRunningProcesses_v3(handle_t handle, unsigned *count, process_t *found) {
    return nvmlDeviceGetGraphicsRunningProcesses_v2(handle, count, found);
}
ret_t nvmlDeviceGetCurrentClocksEventReasons(handle_t handle, unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(handle, reasons);
}
ret_t nvmlDeviceGetTotalEnergyConsumption(handle_t handle, unsigned long long *millijoules) {
    DEVICE(handle);
    if (!d->has_counter) return leave(NOT_SUPPORTED);
    *millijoules = (unsigned long long)(machine_counter_j(machine, k) * 1e3);
    return leave(SUCCESS);
}

typedef struct {
    unsigned field, scope;
    long long timestamp_us, latency_us;
    int type, result;
    union {
        double real;
        unsigned whole;
        unsigned long long large;
    } value;
} field_t;

ret_t nvmlDeviceGetFieldValues(handle_t handle, int count, field_t *fields) {
    DEVICE(handle);
    d->num_readings++;
    for (int i = 0; i < count; i++) {
        field_t *f = &fields[i];
        int is_power = f->field == FIELD_POWER_AVERAGE || f->field == FIELD_POWER_INSTANT;
        f->timestamp_us = machine->now_ns / 1000;
        f->latency_us = 0;
        f->result = SUCCESS;
        if (is_power && d->instant_power && d->has_power) {
            f->type = TYPE_UNSIGNED_INT;
            f->value.whole = milliwatts(k, f->field == FIELD_POWER_INSTANT);
        } else if (f->field == FIELD_ENERGY && d->has_counter == 1) {
            f->type = TYPE_UNSIGNED_LONG_LONG;
            f->value.large = (unsigned long long)(machine_counter_j(machine, k) * 1e3);
        } else {
            f->result = NOT_SUPPORTED;
        }
    }
    return leave(SUCCESS);
}

ret_t nvmlDeviceGetArchitecture(handle_t handle, unsigned *architecture) {
    DEVICE(handle);
    if (d->architecture == 0) return leave(NOT_SUPPORTED);
    *architecture = d->architecture;
    return leave(SUCCESS);
}
ret_t nvmlDeviceGetMigMode(handle_t handle, unsigned *current, unsigned *pending) {
    DEVICE(handle);
    if (d->mig < 0) return leave(NOT_SUPPORTED);
    *current = *pending = d->mig;
    return leave(SUCCESS);
}

static ret_t noted(int k, int kind, int low, int high, ret_t result) {
    machine_note_call(machine, k, kind, low, high, result);
    return leave(result);
}
static ret_t lock_clocks(handle_t handle, unsigned low, unsigned high) {
    DEVICE(handle);
    if (d->mig > 0) return noted(k, CALL_LOCK, low, high, NOT_SUPPORTED);
    if (d->deny_clocks) return noted(k, CALL_LOCK, low, high, NO_PERMISSION);
    int lowest = d->clocks_mhz[0], highest = d->clocks_mhz[d->num_clocks - 1];
    if (low > high || (int)high < lowest || (int)low > highest)
        return noted(k, CALL_LOCK, low, high, INVALID_ARGUMENT);
    d->locked_low_mhz = low;
    d->locked_high_mhz = high;
    return noted(k, CALL_LOCK, low, high, SUCCESS);
}
static ret_t reset_clocks(handle_t handle) {
    DEVICE(handle);
    if (d->mig > 0) return noted(k, CALL_RESET, 0, 0, NOT_SUPPORTED);
    if (d->deny_clocks) return noted(k, CALL_RESET, 0, 0, NO_PERMISSION);
    d->locked_low_mhz = d->locked_high_mhz = 0;
    return noted(k, CALL_RESET, 0, 0, SUCCESS);
}

/* A call has begun (kind) or ended (0); the half of its time that passes then. */
static void in_call(handle_t handle, int kind) {
    int k = (int)(intptr_t)handle - 1;
    if (users == 0 || k < 0 || k >= machine->num_devices) return;
    device_t *d = &machine->devices[k];
    machine_lock(machine);
    int64_t half_ns = d->control_ns / 2;
    if (kind != 0) d->in_call = kind, d->in_call_pid = getpid();
    machine_unlock(machine);
    if (half_ns > 0) nanosleep(&(struct timespec){half_ns / 1000000000, half_ns % 1000000000}, NULL);
    if (kind != 0) return;
    machine_lock(machine);
    d->in_call = d->in_call_pid = 0;
    machine_unlock(machine);
}
ret_t nvmlDeviceSetGpuLockedClocks(handle_t handle, unsigned low, unsigned high) {
    in_call(handle, CALL_LOCK);
    ret_t result = lock_clocks(handle, low, high);
    in_call(handle, 0);
    return result;
}
ret_t nvmlDeviceResetGpuLockedClocks(handle_t handle) {
    in_call(handle, CALL_RESET);
    ret_t result = reset_clocks(handle);
    in_call(handle, 0);
    return result;
}

#endif
