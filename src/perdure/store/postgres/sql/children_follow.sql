-- Count the ends of tasks down the edges that leave them, and let the children join their lane that wait for nothing more:
-- not for a time, a gate, or a look at their rule. The children's rows are locked in ascending order, so that of two
-- transactions that end parents of the same child the second counts on what the first has committed.
-- Answers how many joined, and the children that have to be looked at: those whose rule may be met or never will be.
WITH counted AS MATERIALIZED (
    SELECT
        edges.child,
        count(*) FILTER (WHERE ended.good) AS good,
        count(*) FILTER (WHERE NOT ended.good) AS bad,
        count(*) FILTER (WHERE NOT ended.good AND edges.policy = 'continue') AS excused
    FROM jsonb_to_recordset(%(ended)s::jsonb) AS ended (n bigint, good boolean)
    CROSS JOIN LATERAL (
        SELECT edges.child, edges.policy FROM perdure_edges AS edges
        WHERE edges.parent >= ended.n AND edges.parent <= ended.n
        ORDER BY edges.parent, edges.child
        OFFSET 0
    ) AS edges
    GROUP BY edges.child
    ORDER BY edges.child
),
locked AS MATERIALIZED (
    SELECT
        counted.child, counted.good, counted.bad, counted.excused, live.lane,
        live.waits - counted.good - counted.bad AS waits,
        live.bad + counted.bad = live.excused + counted.excused AS sound,
        live.gated = 0 AND live.gate IS NULL AND live.due_us <= %(now)s::bigint AS free
    FROM counted
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[counted.child])
    WHERE coalesce(live.state, '') = 'pending' AND live.waits > 0
    ORDER BY counted.child
    FOR UPDATE OF live
),
ruled AS MATERIALIZED (
    SELECT locked.*, tasks.rule = 'all_done' OR (tasks.rule = 'all_succeeded' AND locked.sound) AS plain
    FROM locked
    CROSS JOIN LATERAL (
        SELECT CASE WHEN tasks.parents = 0 THEN 'all_done' ELSE tasks.rule END AS rule
        FROM perdure_tasks AS tasks
        WHERE tasks.n = locked.child
        LIMIT 1
    ) AS tasks
    ORDER BY locked.child
),
child AS MATERIALIZED (
    SELECT ruled.*, CASE WHEN plain AND waits = 0 AND free THEN nextval('perdure_seq') END AS seq FROM ruled
),
moved AS (
    UPDATE perdure_live AS live
    SET waits = live.waits - child.good - child.bad,
        good = live.good + child.good,
        bad = live.bad + child.bad,
        excused = live.excused + child.excused,
        state = CASE WHEN child.seq IS NOT NULL THEN 'queued' ELSE live.state END,
        seq = child.seq,
        queued_us = CASE WHEN child.seq IS NOT NULL THEN %(now)s::bigint ELSE live.queued_us END
    FROM child
    WHERE live.n = ANY (ARRAY[child.child]) AND coalesce(live.state, '') = 'pending' AND live.waits > 0
),
moves AS (
    INSERT INTO perdure_count_changes (lane, state, change)
    SELECT joined.lane, change.state, change.count
    FROM (SELECT lane, count(*) AS moved FROM child WHERE seq IS NOT NULL GROUP BY lane) AS joined
    CROSS JOIN LATERAL (VALUES ('pending', -joined.moved), ('queued', joined.moved)) AS change (state, count)
)
SELECT
    (SELECT count(*) FROM child WHERE seq IS NOT NULL),
    (
        SELECT jsonb_agg(jsonb_build_object('child', child) ORDER BY child)::text
        FROM child WHERE seq IS NULL AND (waits = 0 OR NOT plain)
    )
