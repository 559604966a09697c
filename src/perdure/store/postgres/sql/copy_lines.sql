-- Let new numbers and new places in line come after the copied ones. A sequence is never turned back.
SELECT
    setval('perdure_lanes_lane_seq', greatest((SELECT max(lane) FROM perdure_lanes), nextval('perdure_lanes_lane_seq'))),
    setval('perdure_jobs_j_seq', greatest((SELECT max(j) FROM perdure_jobs), nextval('perdure_jobs_j_seq'))),
    setval('perdure_tasks_n_seq', greatest((SELECT max(n) FROM perdure_tasks), nextval('perdure_tasks_n_seq'))),
    setval('perdure_events_e_seq', greatest((SELECT max(e) FROM perdure_events), nextval('perdure_events_e_seq'))),
    setval('perdure_seq', greatest((SELECT max(seq) FROM perdure_live WHERE seq > 0), nextval('perdure_seq'))),
    setval('perdure_front', greatest((SELECT max(seq) FROM perdure_live WHERE seq < 0), nextval('perdure_front')))
