-- One count down an edge.
UPDATE perdure_live AS live
SET waits = waits - touched.good - touched.bad,
    good = live.good + touched.good,
    bad = live.bad + touched.bad,
    excused = live.excused + touched.excused
FROM touched
WHERE live.n = touched.child AND live.state = 'pending' AND live.waits > 0
