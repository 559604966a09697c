-- One count down an edge. The rows are locked.
UPDATE perdure_live AS live
SET waits = live.waits - touched.good - touched.bad,
    good = live.good + touched.good,
    bad = live.bad + touched.bad,
    excused = live.excused + touched.excused
FROM jsonb_to_recordset(%(touched)s::jsonb) AS touched (child bigint, good bigint, bad bigint, excused bigint)
WHERE live.n = ANY (ARRAY[touched.child]) AND coalesce(live.state, '') = 'pending' AND live.waits > 0
