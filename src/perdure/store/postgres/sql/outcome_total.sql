-- All that was counted of a breaker since a change of it: attempts and failures.
SELECT coalesce(sum(attempts), 0)::bigint, coalesce(sum(failures), 0)::bigint
FROM perdure_outcomes AS outcomes
WHERE organization = %(organization)s::text AND kind = %(kind)s::text AND since_us = %(expected)s::bigint
