-- One count down an edge.
UPDATE perdure_live AS live
SET (waits, good, bad, excused) = (
    SELECT
        live.waits - touched.good - touched.bad, live.good + touched.good,
        live.bad + touched.bad, live.excused + touched.excused
    FROM touched
    WHERE touched.child = live.n
)
WHERE live.n IN (SELECT child FROM touched) AND live.state = 'pending' AND live.waits > 0
