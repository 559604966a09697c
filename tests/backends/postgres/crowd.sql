-- A store of :tasks tasks of two organizations: four of five have ended, most of the others wait in line.
INSERT INTO perdure_lanes (organization, queue, kind, priority)
SELECT owner, 'queue-' || queue, 'kind-' || kind, 5
FROM unnest(ARRAY['default', 'other']) AS owner, generate_series(1, 2) AS queue, generate_series(1, 5) AS kind
ORDER BY owner, queue, kind;

-- Jobs 1 to 1000 have ten tasks each, the last has five thousand.
INSERT INTO perdure_jobs
    (organization, id, name, policy, state, principal, initiator, created_us, finished_us, total, open, succeeded)
SELECT
    'default', 'job-' || to_char(j, 'FM000000'), 'nightly', 'fail',
    CASE WHEN j > 1000 THEN 'running' ELSE 'succeeded' END, 'p', 'p', j,
    CASE WHEN j <= 1000 THEN j END, tasks, CASE WHEN j > 1000 THEN tasks ELSE 0 END,
    CASE WHEN j > 1000 THEN 0 ELSE tasks END
FROM generate_series(1, 1001) AS j, LATERAL (SELECT CASE WHEN j > 1000 THEN 5000 ELSE 10 END AS tasks) AS size;

INSERT INTO perdure_tasks (
    organization, id, lane, job, name, payload, encoding, principal, initiator, created_us, execution_limit_us,
    lease_us, max_attempts, max_losses, on_loss, options
)
SELECT
    owner,
    'task-' || to_char(n, 'FM000000000'),
    1 + n / 2 % 10 + CASE owner WHEN 'default' THEN 0 ELSE 10 END,
    job, 'step-' || n, '{}', 'json', 'p', 'p', n, 1, 1, 3, 3, 'retry', '{"labels":{"team":"blue"}}'
FROM generate_series(1, :tasks) AS n,
LATERAL (SELECT CASE WHEN n <= 10000 THEN (n - 1) / 10 + 1 WHEN n > :tasks - 5000 THEN 1001 END AS job) AS family,
LATERAL (SELECT CASE WHEN n % 2 = 0 OR job IS NOT NULL THEN 'default' ELSE 'other' END AS owner) AS owned;

INSERT INTO perdure_ends (
    n, organization, lane, job, state, reason, actor, finished_us, generation, failures, losses, fence, attempt_id,
    due_us, result, result_encoding
)
SELECT
    n, organization, lane, job,
    CASE WHEN n % 1000 = 0 THEN 'cancelled' WHEN n % 1000 = 2 THEN 'failed' ELSE 'succeeded' END,
    'ok', 'w-1', 1000000 + n, 1, 0, 0, n, 'attempt-' || n, n, '[1]', 'json'
FROM perdure_tasks
WHERE n <= :tasks * 4 / 5;

INSERT INTO perdure_attempts
    (n, fence, id, generation, number, worker, state, reason, task_state, actor, leased_us, ended_us, digest)
SELECT n, fence, attempt_id, 1, 1, 'w-1', 'succeeded', 'ok', 'succeeded', 'w-1', n, finished_us, 'd' FROM perdure_ends;

INSERT INTO perdure_live (
    n, organization, lane, job, state, seq, due_us, queued_us, fence, attempt_id, token, worker, leased_us,
    lease_ends_us
)
SELECT
    n, organization, lane, job, state, CASE state WHEN 'queued' THEN n END, n, n, n,
    CASE state WHEN 'leased' THEN 'attempt-' || n END,
    CASE state WHEN 'leased' THEN 't' END,
    CASE state WHEN 'leased' THEN 'w-' || n / 200 % 5 END,
    CASE state WHEN 'leased' THEN n END,
    CASE state WHEN 'leased' THEN n END
FROM perdure_tasks, LATERAL (
    SELECT CASE
        WHEN n % 200 = 0 THEN 'leased' WHEN n % 100 < 5 THEN 'retrying' WHEN n % 100 < 10 THEN 'pending' ELSE 'queued'
    END AS state
) AS standing
WHERE n > :tasks * 4 / 5;

INSERT INTO perdure_events (organization, n, at_us, type, actor)
SELECT organization, n, n, 'promoted', 'p' FROM perdure_tasks WHERE n % 4 = 0;
INSERT INTO perdure_events (organization, job, at_us, type, actor)
SELECT organization, j, j, 'failing', 'p' FROM perdure_jobs;
INSERT INTO perdure_edges (parent, child, policy)
SELECT n - 1, n, 'fail' FROM perdure_tasks WHERE job IS NOT NULL AND n % 10 <> 1;
INSERT INTO perdure_parts (n, attempt_id, sequence, key, named, sha256, final, data, encoding, written_us)
SELECT n, attempt_id, 1, 'k', false, '', true, '[]', 'json', n FROM perdure_ends WHERE n % 4 = 0;
INSERT INTO perdure_progress (n, done) SELECT n, 1 FROM perdure_tasks WHERE n % 4 = 0;
INSERT INTO perdure_workers (
    id, name, host, pid, version, build, kinds, queues, organizations, capabilities, capacity, registered_us, seen_us
)
SELECT 'w-' || w, 'w', 'h', w, '1', '', '["kind-1"]', '[]', '[]', '[]', 10, w, w FROM generate_series(0, 4) AS w;

INSERT INTO perdure_counts (lane, state, count)
SELECT lane, state, count(*) FROM (
    SELECT lane, state FROM perdure_live
    UNION ALL
    SELECT lane, state FROM perdure_ends
    UNION ALL
    SELECT tasks.lane, 'attempts' FROM perdure_attempts AS attempts JOIN perdure_tasks AS tasks ON tasks.n = attempts.n
) AS counted
GROUP BY lane, state;
-- What came and went since the last fold.
INSERT INTO perdure_count_changes (lane, state, change)
SELECT lane, state, 1 - which % 2 * 2 FROM perdure_counts, generate_series(1, 20) AS which;

-- A kind with a limit and many keys; at the first of them are very many tasks.
INSERT INTO perdure_gates (organization, sort, name, key, slots, when_full, said_us, used_us)
SELECT 'default', sort, 'kind-1 by customer', '"' || to_char(c, 'FM00000') || '"', 1, 'queue', 0, 0
FROM unnest(ARRAY['concurrency', 'order']) AS sort, generate_series(1, 10000) AS c
ORDER BY sort, c;
INSERT INTO perdure_slots (gate, n, taken_us) SELECT 1, n, 0 FROM perdure_live WHERE state = 'leased';
INSERT INTO perdure_slots (gate, n, taken_us) SELECT 1, n, 1 FROM perdure_ends WHERE n <= 5000;
INSERT INTO perdure_slots (gate, n, taken_us) SELECT c, c, 0 FROM generate_series(2, 20000) AS c;
UPDATE perdure_live SET gated = 1, gate = 1, turn = n WHERE state = 'pending';
