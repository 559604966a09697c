"""Every bound of the system, with its unit in its name."""

SECOND_US = 1_000_000
"""Microseconds in a second: all times inside are integers of microseconds."""


def seconds(us: int) -> float:
    """Microseconds as the seconds that people and settings speak of."""
    return us / SECOND_US


# What a submitter may send
KIND_MAX_CHARS = 200
NAME_MAX_CHARS = 200
QUEUE_MAX_CHARS = 100
PRIORITY_MIN = 0
PRIORITY_MAX = 9
PRIORITY_DEFAULT = 4
PAYLOAD_MAX_BYTES = 256 * 1024
RESULT_MAX_BYTES = 256 * 1024
METADATA_MAX_BYTES = 8 * 1024
LABELS_MAX = 32
LABEL_MAX_CHARS = 200
CAPABILITIES_MAX = 32
IDEMPOTENCY_KEY_MAX_BYTES = 255
IDEMPOTENCY_KEY_LIFE_US = 7 * 24 * 3600 * SECOND_US
SUBMIT_MAX_TASKS = 10_000
SUBMIT_MAX_BYTES = 64 * 1024 * 1024
"""All payloads of one call together."""
JSON_MAX_DEPTH = 64
INTEGER_MAX_DIGITS = 4_300
DELAY_MAX_US = 10 * 365 * 24 * 3600 * SECOND_US
TTL_MIN_US = 1_000
TTL_MAX_US = DELAY_MAX_US
TIMEOUT_MIN_US = 1_000
TIMEOUT_MAX_US = 30 * 24 * 3600 * SECOND_US
SCHEMA_MAX_BYTES = 256 * 1024
"""The JSON Schema of a kind."""

# How many tasks may run
LIMITS_MAX = 8
"""Of one kind."""
LIMIT_MAX = 100_000
"""At once, or in one stretch of a rate."""
LIMIT_BY_MAX = 8
FIELD_NAME_MAX_BYTES = 128
"""Of a payload's field by which a limit or a unique key holds: eight of them fit into an index of every store."""
LIMIT_PER_MIN_US = 1_000
LIMIT_PER_MAX_US = 31 * 24 * 3600 * SECOND_US
LIMIT_KEY_MAX_CHARS = 200
"""A longer key is kept as its digest."""
GATE_KEYS_MAX = 100
"""For which one may ask at once."""
LIMIT_PER_DEFAULT_US = SECOND_US
"""In what time a queue or an organization starts so many tasks where only the rate is said."""
WEIGHT_MIN = 0.01
WEIGHT_MAX = 1_000
PRIORITY_AGEING_DEFAULT_US = 6 * 3600 * SECOND_US
PRIORITY_AGEING_MAX_US = 365 * 24 * 3600 * SECOND_US

# Breakers of kinds
BREAKER_WINDOW_MIN_US = SECOND_US
BREAKER_WINDOW_MAX_US = 3600 * SECOND_US
BREAKER_BUCKETS = 10
"""So many parts of the window are counted for themselves."""
BREAKER_OPEN_MIN_US = SECOND_US
BREAKER_OPEN_MAX_US = 24 * 3600 * SECOND_US
BREAKER_PROBES_MAX = 1_000

# Unique tasks
UNIQUE_BY_MAX = 8
UNIQUE_WITHIN_MIN_US = 1_000
UNIQUE_WITHIN_MAX_US = 365 * 24 * 3600 * SECOND_US
UNIQUE_WAIT_MIN_US = 1_000
UNIQUE_WAIT_MAX_US = 30 * 24 * 3600 * SECOND_US
UNIQUE_VALUES_MAX_CHARS = 200
"""What is longer in a key is kept as its digest."""

# Jobs
JOB_MAX_TASKS = 20_000
JOB_MAX_EDGES = 100_000
JOB_MAX_WIDTH = 10_000
JOB_MAX_DEPTH = 10_000
BINDINGS_MAX = 1_000
INPUTS_MAX_BYTES = 16 * 1024 * 1024

# Budgets
MAX_ATTEMPTS_DEFAULT = 3
MAX_ATTEMPTS_LIMIT = 1_000
MAX_LOSSES_DEFAULT = 3
MAX_LOSSES_LIMIT = 1_000
SNOOZES_MAX = 1_000
HAND_BACKS_MAX = 100

# Time
EXECUTION_LIMIT_DEFAULT_US = 24 * 3600 * SECOND_US
EXECUTION_LIMIT_MIN_US = SECOND_US
EXECUTION_LIMIT_MAX_US = 30 * 24 * 3600 * SECOND_US
LEASE_DEFAULT_US = 60 * SECOND_US
LEASE_MIN_US = 5 * SECOND_US
LEASE_MAX_US = 3600 * SECOND_US
CANCEL_GRACE_DEFAULT_US = 30 * SECOND_US
CANCEL_GRACE_MAX_US = 3600 * SECOND_US
TIMEOUT_GRACE_US = 30 * SECOND_US
"""How long after its timeout the system waits for the worker to say so before it ends the attempt itself."""
UNROUTABLE_AFTER_DEFAULT_US = 3600 * SECOND_US
RETENTION_DEFAULT_US = 7 * 24 * 3600 * SECOND_US
RETENTION_MAX_US = 10 * 365 * 24 * 3600 * SECOND_US
ACTS_KEPT_US = 365 * 24 * 3600 * SECOND_US
"""How long it is kept who removed something for good."""
WORKER_ACTIVE_DEFAULT_US = 120 * SECOND_US
WORKER_ACTIVE_MAX_US = 3600 * SECOND_US
WORKER_TEXT_MAX_CHARS = 200
WORKER_CAPACITY_MAX = 100_000
CONCURRENCY_MAX = 1_000
"""How many handlers a worker may run at once."""

# What an attempt may report
ERROR_MAX_BYTES = 16 * 1024
SUMMARY_MAX_BYTES = 1024
CHECKPOINT_MAX_BYTES = 64 * 1024
PARTS_MAX = 100_000
PART_MAX_BYTES = 256 * 1024
REASON_TEXT_MAX_CHARS = 500
NOTE_MAX_CHARS = 2_000
PROGRESS_MAX = 2**53
LOG_LINES_MAX = 1_000
"""Lines of one attempt's log."""
LOG_MAX_BYTES = 128 * 1024
"""All messages of one attempt's log together."""
LOG_LINE_MAX_BYTES = 4 * 1024
LOG_LAST_LINES_MAX = 100
"""Of a log that becomes too long, so many lines are kept of its end; the others are its beginning."""
LOG_LAST_MAX_BYTES = 32 * 1024
SNOOZE_MAX_US = 365 * 24 * 3600 * SECOND_US

# Schedules
SCHEDULE_DOCUMENT_MAX_BYTES = 256 * 1024
EVERY_MIN_US = SECOND_US
EVERY_MAX_US = 10 * 365 * 24 * 3600 * SECOND_US
CATCH_UP_DEFAULT_US = 24 * 3600 * SECOND_US
LATE_US = 60 * SECOND_US
"""An instant that comes no later than this is no missed one, however short the catch-up window."""
CATCH_UP_MAX_US = 10 * 365 * 24 * 3600 * SECOND_US
JITTER_MAX_US = 24 * 3600 * SECOND_US
PREVIEW_MAX_INSTANTS = 1_000
BACKFILL_MAX_INSTANTS = 1_000
FIRE_WAIT_US = SECOND_US
"""How often it is looked whether an instant may go on that waits for the end of an earlier one."""
FIRES_OPEN_MAX = 1_000
"""How many open fires of a schedule are looked at in one transaction."""
FIRE_MAX_SCHEDULES = 200
"""How many schedules one run of the duty looks at."""
FIRE_MAX_INSTANTS = 10_000
"""How many instants of one schedule it looks at."""
FIRE_MAX_TASKS = 100
"""How many of them make something."""
FIRE_MAX_JOBS = 10

# One gateway process
CLIENT_RATE_DEFAULT = 10_000
CLIENT_RATE_MAX = 1_000_000
CONNECTIONS_DEFAULT = 4_096
"""A worker that waits for work holds two."""
CONNECTIONS_LIMIT = 65_536

# One transaction
CLAIM_MAX_TASKS = 1_000
SETTLE_MAX_ITEMS = 10_000
RENEW_MAX_ITEMS = 10_000
SWEEP_MAX_TASKS = 1_000
LOOK_AHEAD_US = 120 * SECOND_US
"""What is further ahead than this need not be known: every duty looks again before."""
CASCADE_MAX_TASKS = 10_000
RETAIN_MAX_TASKS = 1_000
LIST_MAX_ROWS = 1_000
LIST_SCAN_MAX_ROWS = 10_000
"""A page of a filtered list looks at no more rows than this and hands out a cursor to go on."""
